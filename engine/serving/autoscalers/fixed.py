"""No autoscaler: the replicas that the fleet began with."""

from __future__ import annotations

import math

from engine.scenario import Autoscaler

from .controller import Controller, Reading


class Fixed(Controller):
    """Never asked, and never changes its mind; the bounds of an autoscaler don't apply."""

    own_interval_s = math.inf
    own_window_s = 60.0

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        super().__init__(autoscaler, replicas)
        self._replicas = replicas

    def next_tick_s(self, after_s: float | None = None) -> float:
        """Infinity."""
        return math.inf

    def decide(self, reading: Reading) -> int:
        """The replicas at the start."""
        return self._replicas
