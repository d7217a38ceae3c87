"""Replicas by the clock, ordered ahead of time by as much as they need to start."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from engine.scenario import Autoscaler

from .controller import Controller, View


def planned(steps: Sequence[tuple[float, int]], lead_s: float, t_s: float) -> int | None:
    """The replicas to be asked for at `t_s`: those of the last step [moment, replicas] whose moment less `lead_s` has
    come; ``None`` before the first. Moments rise."""
    index = bisect_right(steps, t_s, key=lambda step: step[0] - lead_s)
    return steps[index - 1][1] if index else None


class Scheduled(Controller):
    """The plan, within the bounds; before its first step the replicas at the start.

    It is asked just when a step comes due, or, with an interval set, at the first tick from then on. What is starting
    is always part of the plan, whatever `count_starting` says: a plan names totals.
    """

    own_interval_s = math.inf
    own_window_s = 60.0

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        super().__init__(autoscaler, replicas)
        self._replicas = replicas
        self._plan = autoscaler.schedule

    def next_tick_s(self, after_s: float | None = None) -> float:
        """See `Controller`: by itself the steps' moments less the lead, and the start for all that were due before."""
        if self.interval_s < math.inf:
            return super().next_tick_s(after_s)
        due = (max(moment - self._plan.lead_s, 0.0) for moment, _ in self._plan.steps)
        return min((t_s for t_s in due if after_s is None or t_s > after_s), default=math.inf)

    def _wish(self, view: View) -> int:
        wanted = planned(self._plan.steps, self._plan.lead_s, view.reading.t_s)
        return (self._replicas if wanted is None else wanted) - view.hidden
