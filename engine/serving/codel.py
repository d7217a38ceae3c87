"""Controlled delay: of those whose turn comes, some are dropped when waits have been too long for a while.

Nichols and Jacobson, Controlling Queue Delay (2012), with waits of requests in place of packets' sojourn times.
"""

from __future__ import annotations

import numpy as np

from .lanes import Bools, Floats, Ints


class Codel:
    """The state of every lane's controller."""

    def __init__(self, target_s: float, interval_s: float, lanes: int) -> None:
        self.target_s, self.interval_s = target_s, interval_s
        self.above_from: Floats = np.full(lanes, np.nan)  # when waits will have been above the target for an interval
        self.dropping = np.zeros(lanes, np.bool_)
        self.count: Ints = np.zeros(lanes, np.int64)  # drops since it began dropping
        self.next_drop: Floats = np.zeros(lanes)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.above_from, self.dropping = self.above_from[alive], self.dropping[alive]
        self.count, self.next_drop = self.count[alive], self.next_drop[alive]

    def judge(self, i: Ints, wait: Floats, now: Floats) -> Bools:
        """Whether the request whose turn it is in each lane of ``i`` is dropped; it has waited ``wait`` seconds."""
        since = self.above_from[i]
        short = wait < self.target_s
        begins = ~short & np.isnan(since)
        long_enough = ~short & ~begins & (now >= since)
        self.above_from[i] = np.where(short, np.nan, np.where(begins, now + self.interval_s, since))
        dropping = self.dropping[i]
        again = dropping & long_enough & (now >= self.next_drop[i])
        first = ~dropping & long_enough
        self.dropping[i] = long_enough
        j = i[again]
        self.count[j] += 1
        self.next_drop[j] += self.interval_s / np.sqrt(self.count[j])
        j, t = i[first], now[first]
        # Soon after the last time it starts near the rate that worked then.
        recent = (t - self.next_drop[j] < self.interval_s) & (self.count[j] > 2)
        self.count[j] = np.where(recent, np.maximum(self.count[j] - 2, 1), 1)
        self.next_drop[j] = t + self.interval_s / np.sqrt(self.count[j])
        return again | first
