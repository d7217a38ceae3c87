"""Studies: running scenarios, one or many."""

from __future__ import annotations

from .capacity import capacity_rps, forget_capacities
from .run import simulate
from .suggest import Suggestion, suggest

__all__ = ["Suggestion", "capacity_rps", "forget_capacities", "simulate", "suggest"]
