"""What an autoscaler sees at a tick, what it answers, and what all rules share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.scenario import Autoscaler

_DIGITS = 9
"""Significant digits of a metric: an average over time carries the noise of its sums, which a ceiling would turn into a
replica."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The fleet at a tick of the control loop."""

    t_s: float
    ready: int
    """Replicas that take requests; draining ones have left already."""
    starting: int
    """Replicas ordered and not useful yet."""
    total: float
    """The metric summed over ready replicas and whatever waits for one, averaged over `Controller.window_s`. Shares
    (`kv_usage`, `utilization`) are summed too: 2.0 is two replicas full."""
    short_total: float
    """The same over `Controller.short_window_s`; equal to `total` where a rule has no short window."""

    @property
    def present(self) -> int:
        """All replicas that are paid for and stay."""
        return self.ready + self.starting


class Controller:
    """One autoscaler of one fleet: told of every tick in order, it answers with the replicas it wants.

    A rule sees its fleet either whole or, without `count_starting`, as if replicas that are starting weren't there;
    those come on top of what it then asks for, so the same shortage is answered at every tick until they are ready.
    """

    own_interval_s: ClassVar[float]
    """Seconds between ticks unless the scenario says otherwise."""
    own_window_s: ClassVar[float]
    """Seconds over which the metric is averaged unless the scenario says otherwise."""

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        """`replicas` are ready when the run starts, at t = 0."""
        self.autoscaler = autoscaler
        self.interval_s = self.own_interval_s if autoscaler.interval_s is None else autoscaler.interval_s
        self.window_s = self.own_window_s if autoscaler.metric_window_s is None else autoscaler.metric_window_s
        self.short_window_s: float | None = None
        """Seconds of the second, shorter average; ``None``: the rule needs none."""

    def next_tick_s(self, after_s: float | None = None) -> float:
        """When `decide` is due, seconds: strictly after the tick at `after_s`, or for the first time (``None``).

        Multiples of the interval, the first one an interval from the start; infinity: never.
        """
        k = 1 if after_s is None else max(int(after_s / self.interval_s), 1)
        while after_s is not None and k * self.interval_s <= after_s:
            k += 1
        return k * self.interval_s

    def decide(self, reading: Reading) -> int:
        """The replicas wanted, starting ones included, from `min_replicas` to `max_replicas`."""
        a = self.autoscaler
        seen = Reading(reading.t_s, reading.ready, reading.starting, _clean(reading.total), _clean(reading.short_total))
        hidden = 0 if a.count_starting else reading.starting
        view = View(seen, hidden, max(a.min_replicas - hidden, 0), max(a.max_replicas - hidden, 0))
        return min(max(self._wish(view) + hidden, a.min_replicas), a.max_replicas)

    def _wish(self, view: View) -> int:
        """The replicas wanted, hidden ones left out."""
        raise TypeError(f"{type(self).__name__} has no rule")


@dataclass(frozen=True, slots=True)
class View:
    """A reading as a rule sees it: `hidden` replicas are not in what it counts, nor in its bounds."""

    reading: Reading
    hidden: int
    low: int
    high: int

    @property
    def current(self) -> int:
        """Replicas that the rule counts as present."""
        return self.reading.present - self.hidden

    @property
    def starting(self) -> int:
        """Starting replicas that the rule knows of."""
        return self.reading.starting - self.hidden


def _clean(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
