"""Outcome: what a run says about latencies, promises, capacity and money."""

from __future__ import annotations

from .arriving import SHARES, Arriving, Joint, Lengths, arriving
from .cost import Cost, cost
from .course import bins_of
from .grouping import GroupCourse, group_course
from .inflight import InFlight, kv_in_flight
from .lag import demand
from .meter import Meter
from .objectives import Attainment, Scored, attain, score
from .overload import Fates, Overload, overload
from .pools import POOLS, Pool
from .relief import Relief, relief
from .result import Result
from .spread import QUANTILES, Spread, half_width, quantile, spread
from .timeline import bin_width, timeline
from .usage import Usage

__all__ = [
    "POOLS",
    "QUANTILES",
    "SHARES",
    "Arriving",
    "Attainment",
    "Cost",
    "Fates",
    "GroupCourse",
    "InFlight",
    "Joint",
    "Lengths",
    "Meter",
    "Overload",
    "Pool",
    "Relief",
    "Result",
    "Scored",
    "Spread",
    "Usage",
    "arriving",
    "attain",
    "bin_width",
    "bins_of",
    "cost",
    "demand",
    "group_course",
    "half_width",
    "kv_in_flight",
    "overload",
    "quantile",
    "relief",
    "score",
    "spread",
    "timeline",
]
