"""Studies: running scenarios, one or many."""

from __future__ import annotations

from .capacity import capacity_rps, forget_capacities, remember_capacity
from .refusing import Tried, Way, try_way, ways
from .run import simulate
from .suggest import Suggestion, suggest

__all__ = [
    "Suggestion",
    "Tried",
    "Way",
    "capacity_rps",
    "forget_capacities",
    "remember_capacity",
    "simulate",
    "suggest",
    "try_way",
    "ways",
]
