"""AIBrix's APA: a ratio with tolerances each way, at most doubling or halving at once, and a pause between removals.

Source: vllm-project/aibrix, pkg/controller/podautoscaler/algorithm/apa.go, `computeTargetReplicas`.
"""

from __future__ import annotations

import math

from engine.scenario import Autoscaler

from .controller import Controller, View


def apa(
    current: int,
    per_pod: float,
    target: float,
    up_tolerance: float = 0.1,
    down_tolerance: float = 0.1,
    max_up_rate: float = 2.0,
    max_down_rate: float = 2.0,
) -> int:
    """Replicas for a metric of `per_pod` a replica, both in the units of `target` (above 0).

    Beyond a tolerance ceil(current * ratio), but not more than ceil(current * max_up_rate), and not fewer than
    floor(current / max_down_rate).
    """
    ratio = per_pod / target
    if ratio > 1 + up_tolerance:
        return min(math.ceil(current * ratio), math.ceil(max_up_rate * current))
    if ratio < 1 - down_tolerance:
        return max(math.ceil(current * ratio), math.floor(current / max_down_rate))
    return current


class Apa(Controller):
    """The ratio is taken over all replicas that count, so one that is starting has a metric of 0.

    The last replica stays, as AIBrix's default has it: a mean over none would never bring one back. A removal waits
    until `cooldown_down_s` have passed since the one before; there is no pause upward.
    """

    own_interval_s = 15.0
    own_window_s = 60.0

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        super().__init__(autoscaler, replicas)
        self._removed_s = -math.inf

    def _wish(self, view: View) -> int:
        a, current = self.autoscaler, view.current
        if not current:
            return max(view.low, 1 - view.hidden)
        wish = apa(current, view.reading.total / current, a.target, a.aibrix.tolerance, a.aibrix.tolerance)
        wish = min(max(wish, view.low, 1), view.high)
        if wish < current:
            if view.reading.t_s - self._removed_s < a.aibrix.cooldown_down_s:
                return current
            self._removed_s = view.reading.t_s
        return wish
