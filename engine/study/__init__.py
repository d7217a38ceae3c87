"""Studies: running scenarios, one or many."""

from __future__ import annotations

from .capacity import capacity_rps
from .run import simulate

__all__ = ["capacity_rps", "simulate"]
