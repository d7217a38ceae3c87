"""Outcome: what a run says about latencies, promises, capacity and money."""

from __future__ import annotations

from .cost import Cost, cost
from .meter import Meter
from .objectives import Attainment, Scored, attain, score
from .result import Result
from .spread import QUANTILES, Spread, half_width, quantile, spread
from .timeline import bin_width, timeline
from .usage import Usage

__all__ = [
    "QUANTILES",
    "Attainment",
    "Cost",
    "Meter",
    "Result",
    "Scored",
    "Spread",
    "Usage",
    "attain",
    "bin_width",
    "cost",
    "half_width",
    "quantile",
    "score",
    "spread",
    "timeline",
]
