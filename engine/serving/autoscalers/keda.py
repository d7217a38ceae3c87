"""KEDA: it wakes the first replica and sends the last to sleep; in between a HPA decides on the shared-out metric.

Source: kedacore/keda, pkg/scaling/executor/scale_scaledobjects.go (0 and 1) and pkg/fallback/fallback.go.
"""

from __future__ import annotations

import math

from engine.scenario import Autoscaler

from .controller import Controller, View
from .hpa import UNITS, limits, units
from .hpa_metrics import by_average_value

FALLBACKS = ("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower")


def fallback(behavior: str, current: int, replicas: int) -> int:
    """The metric per target that a trigger reports once it has failed too often: replicas of a name in `FALLBACKS`."""
    match behavior:
        case "currentReplicas":
            return current
        case "currentReplicasIfHigher":
            return max(current, replicas)
        case "currentReplicasIfLower":
            return min(current, replicas)
        case _:
            return replicas


class Keda(Controller):
    """The trigger is read every `keda.polling_s`, the HPA decides every interval; each at the first tick that is due.

    All replicas, ready or not, have a share in the metric. With `min_replicas` 0 the last one goes when a poll finds
    the trigger inactive and more than `cooldown_s` have passed since it was last active; the run's start counts as
    active. A cooldown shorter than a start takes replicas away before they were ever of use.
    """

    own_interval_s = 15.0
    own_window_s = 60.0

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        super().__init__(autoscaler, replicas)
        self._hpa_s = self.interval_s
        self.interval_s = min(self.interval_s, autoscaler.keda.polling_s)
        self._limits = limits(autoscaler)
        self._active_s = 0.0
        self._polls = self._decisions = 0

    def _wish(self, view: View) -> int:
        present, reading = view.reading.present, view.reading
        asleep = self._poll(reading.t_s, reading.total, present) if self._poll_is_due(reading.t_s) else not present
        if asleep:
            return -view.hidden
        if not present:  # the HPA rests while there are none
            return max(view.low, 1)
        return self._shared(view) if self._decision_is_due(reading.t_s) else view.current

    def _poll_is_due(self, t_s: float) -> bool:
        before, self._polls = self._polls, _periods(t_s, self.autoscaler.keda.polling_s)
        return self._polls > before

    def _decision_is_due(self, t_s: float) -> bool:
        before, self._decisions = self._decisions, _periods(t_s, self._hpa_s)
        return self._decisions > before

    def _poll(self, t_s: float, value: float, present: int) -> bool:
        """Whether there is to be no replica at all."""
        settings = self.autoscaler.keda
        if value > settings.activation:
            self._active_s = t_s
            return False
        if self.autoscaler.min_replicas:
            return False
        return not present or t_s > self._active_s + settings.cooldown_s

    def _shared(self, view: View) -> int:
        a, current = self.autoscaler, view.current
        low = max(view.low, 1 - view.hidden)
        if not low <= current <= view.high:
            return min(max(current, low), view.high)
        wish = by_average_value(current, units(view.reading.total, a.target), UNITS, a.hpa.tolerance)
        return self._limits.follow(view.reading.t_s, current, wish, low, view.high)


def _periods(t_s: float, period_s: float) -> int:
    """Whole periods since the start; a tick that rounding puts just before the end of one counts for it."""
    return math.floor(t_s / period_s + 1e-9)
