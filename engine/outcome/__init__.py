"""Outcome: what a run says about latencies, promises, capacity and money."""

from __future__ import annotations

from .cost import Cost, cost
from .course import bins_of
from .lag import demand
from .meter import Meter
from .objectives import Attainment, Scored, attain, score
from .overload import Fates, Overload, overload
from .relief import Relief, relief
from .result import Result
from .spread import QUANTILES, Spread, half_width, quantile, spread
from .timeline import bin_width, timeline
from .usage import Usage

__all__ = [
    "QUANTILES",
    "Attainment",
    "Cost",
    "Fates",
    "Meter",
    "Overload",
    "Relief",
    "Result",
    "Scored",
    "Spread",
    "Usage",
    "attain",
    "bin_width",
    "bins_of",
    "cost",
    "demand",
    "half_width",
    "overload",
    "quantile",
    "relief",
    "score",
    "spread",
    "timeline",
]
