"""Knative's pod autoscaler (KPA): a stable and a panic window.

Source: knative/serving, pkg/autoscaler/scaling/autoscaler.go (`Scale`), pkg/autoscaler/aggregation/max/window.go (the
delay), and pkg/reconciler/autoscaling/kpa/scaler.go (`handleScaleToZero`).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from engine.scenario import Autoscaler

from .controller import Controller, View

TICK_S = 2
"""Seconds between decisions, and the width of the delay's buckets."""
GRACE_S = 30.0
"""`scale-to-zero-grace-period`: the last replica stays this long after it could go."""
_SHORTEST_PANIC_S = 1.0


@dataclass(frozen=True, slots=True)
class Spec:
    """A decider's settings, under the meaning that Knative gives them."""

    target: float = 70.0
    """Metric that a replica should carry: 70 % of 100 concurrent requests."""
    max_up_rate: float = 1000.0
    max_down_rate: float = 2.0
    panic_threshold: float = 2.0
    """Panic when the short window alone asks for this many times the ready replicas."""
    stable_window_s: float = 60.0
    activation_scale: int = 1
    reachable: bool = True
    """Traffic can reach the revision; otherwise it may shrink as fast as it likes."""
    scale_down_delay_s: float = 0.0


class HighestOf:
    """The largest value of a moving window, in buckets of `TICK_S`; the present bucket is one of them."""

    def __init__(self, window_s: float) -> None:
        self._buckets = math.ceil(window_s / TICK_S)
        self._maxima: deque[tuple[int, int]] = deque()  # (bucket, value), values falling

    def record(self, t_s: float, value: int) -> int:
        """Enter a value at `t_s` (not before any earlier one); returns the highest."""
        bucket = math.floor(t_s) // TICK_S
        while self._maxima and self._maxima[-1][1] <= value:
            self._maxima.pop()
        self._maxima.append((bucket, value))
        while bucket - self._maxima[0][0] >= self._buckets:
            self._maxima.popleft()
        return self._maxima[0][1]


class Decider:
    """The rule and what it remembers: whether it panics, and its delayed decisions."""

    def __init__(self, spec: Spec, panic_s: float | None = None, panic_replicas: int = 0) -> None:
        """`panic_s`: when the last cause of a panic was seen (``None``: no panic); `panic_replicas`: its highest."""
        self._spec = spec
        self._panic_s, self._panic_replicas = panic_s, panic_replicas
        self._delay = HighestOf(spec.scale_down_delay_s) if spec.scale_down_delay_s > 0 else None

    def decide(self, t_s: float, ready: int, stable: float, panic: float) -> int:
        """Replicas wanted at `t_s`, from the metric's total over the stable and over the panic window."""
        spec = self._spec
        ready = max(ready, 1)
        wants = math.ceil(stable / spec.target), math.ceil(panic / spec.target)
        most = math.ceil(spec.max_up_rate * ready)
        least = math.floor(ready / spec.max_down_rate) if spec.reachable else 0
        by_stable, by_panic = (self._activated(want, min(max(want, least), most)) for want in wants)
        self._watch(t_s, wants[1] / ready >= spec.panic_threshold)
        wish = by_stable
        if self._panic_s is not None:
            wish = self._panic_replicas = max(by_stable, by_panic, self._panic_replicas)
        return wish if self._delay is None else self._delay.record(t_s, wish)

    def _activated(self, want: int, clipped: int) -> int:
        """A revision that is wanted at all has its activation scale."""
        scale = self._spec.activation_scale
        return max(clipped, scale) if scale > 1 and want > 0 else clipped

    def _watch(self, t_s: float, over: bool) -> None:
        """Begin, extend or end the panic: it ends one stable window after its last cause."""
        if over:
            self._panic_s = t_s
        elif self._panic_s is not None and t_s > self._panic_s + self._spec.stable_window_s:
            self._panic_s, self._panic_replicas = None, 0


class Knative(Controller):
    """`ready` replicas carry the metric; a fleet of several starts in panic, as a scaler does that knows no past.

    The metric window is the stable window; the panic window is its share in whole seconds, at least one. With
    `min_replicas` 0 the last replica stays until nothing has been wanted for `GRACE_S`, and one that is only starting
    isn't given up.
    """

    own_interval_s = float(TICK_S)
    own_window_s = 60.0

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        super().__init__(autoscaler, replicas)
        s = autoscaler.knative
        panic_s = max(float(round(self.window_s * s.panic_window_percent / 100)), _SHORTEST_PANIC_S)
        self.short_window_s = min(panic_s, self.window_s)
        self._unwanted_s: float | None = None
        spec = Spec(
            target=autoscaler.target * s.target_utilization_percent / 100,
            max_up_rate=s.max_scale_up_rate,
            max_down_rate=s.max_scale_down_rate,
            panic_threshold=s.panic_threshold_percent / 100,
            stable_window_s=self.window_s,
            scale_down_delay_s=s.scale_down_delay_s,
        )
        self._decider = Decider(spec, 0.0, replicas) if replicas > 1 else Decider(spec)

    def _wish(self, view: View) -> int:
        reading = view.reading
        wish = self._decider.decide(reading.t_s, reading.ready, reading.total, reading.short_total)
        wish = min(max(wish, view.low), view.high)
        if wish > 0 or view.hidden:
            self._unwanted_s = None
            return wish
        if self._unwanted_s is None or not reading.ready:
            self._unwanted_s = reading.t_s
        return 0 if reading.t_s - self._unwanted_s >= GRACE_S else min(view.current, view.high)
