"""Studies: running scenarios, one or many."""

from __future__ import annotations

from .capacity import capacity_rps, forget_capacities
from .run import simulate

__all__ = ["capacity_rps", "forget_capacities", "simulate"]
