"""Kubernetes' HPA on a `Pods` metric: the mean over ready replicas, every 15 s."""

from __future__ import annotations

from engine.scenario import Autoscaler

from .controller import Controller, View
from .hpa_limits import Behaving, Limits, Plain
from .hpa_metrics import NOTHING, Load, average_ratio, by_pods, combined

UNITS = 1_000_000
"""Whole units in a target. Kubernetes counts in thousandths of the metric, which would round a small target away."""


def limits(autoscaler: Autoscaler) -> Limits:
    """What the scenario's HPA remembers and how far it goes."""
    behavior = autoscaler.hpa.behavior
    return Plain(autoscaler.hpa.downscale_stabilization_s) if behavior is None else Behaving.of(behavior)


def units(metric: float, target: float) -> int:
    """The metric in whole units."""
    return round(metric / target * UNITS)


class Hpa(Controller):
    """Starting replicas that count are pods that aren't ready: idle when the fleet grows, left out when it shrinks.

    Outside the bounds it goes to the nearer one at once. The last replica stays, since a HPA with a minimum of 0 isn't
    accepted on pod metrics; while none is ready there is nothing to average, and nothing changes.
    """

    own_interval_s = 15.0
    own_window_s = 60.0

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        super().__init__(autoscaler, replicas)
        self._limits = limits(autoscaler)

    def _wish(self, view: View) -> int:
        a, reading, current = self.autoscaler, view.reading, view.current
        low = max(view.low, 1 - view.hidden)
        if not low <= current <= view.high:
            return min(max(current, low), view.high)
        proposal = by_pods(
            current,
            reading.ready,
            Load(units(reading.total, a.target), reading.ready, reading.ready),
            NOTHING,
            Load(0, view.starting, view.starting),
            average_ratio(UNITS),
            a.hpa.tolerance,
        )
        wish = combined(current, [proposal])
        return current if wish is None else self._limits.follow(reading.t_s, current, wish, low, view.high)
