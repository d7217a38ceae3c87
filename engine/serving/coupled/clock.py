"""When each seed's lanes have to stop for what goes on between them.

Some stops lie on grids: reports of the replicas, noticing failed attempts, ticks of the autoscaler. With a router that
always knows, every arrival is one too.
"""

from __future__ import annotations

import numpy as np

from engine.serving.lanes import Bools, Floats, Ints


class Grid:
    """Multiples of ``step_s``, of every seed; an infinite step never comes."""

    def __init__(self, step_s: float, seeds: int) -> None:
        self.step_s = step_s
        self._k: Ints = np.ones(seeds, np.int64)
        self.next_s: Floats = np.full(seeds, step_s)

    def due(self, now: Floats) -> Bools:
        """(seeds,): whose next point is at or before ``now``; those points are passed."""
        due = self.next_s <= now
        i = due.nonzero()[0]
        if i.size:
            self._k[i] += 1
            self.next_s[i] = self._k[i] * self.step_s
        return due


def noticing_s(*, backoff_s: float | None, throttle_window_s: float | None, report_interval_s: float | None) -> float:
    """Seconds between two looks at who failed; each ``None`` where there is no such thing.

    A retry is put off to the next look at most, so looks are much closer than the waits before retries.
    """
    steps = [np.inf]
    if report_interval_s:
        steps.append(report_interval_s)
    if backoff_s is not None:
        steps.append(min(max(backoff_s / 10, 0.02), 0.25))
    if throttle_window_s is not None:
        steps.append(min(max(throttle_window_s / 100, 0.05), 1.0))
    return float(min(steps))
