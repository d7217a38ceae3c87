"""Admission at the replica: ``max_outstanding`` checks each arrival against the requests running and waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .lanes import Floats, Ints

if TYPE_CHECKING:
    from .lockstep import Lockstep


class Door:
    """Turns away arrivals that find ``max_outstanding`` requests in their lane; the others join the lane's queue.

    Between two step boundaries nobody leaves, so of the arrivals in between the first few are let in and all later
    ones refused. A lane's queue lies in its own part of ``queue``, from ``head`` up to ``tail``.
    """

    def __init__(self, engine: Lockstep, limit: Ints) -> None:
        s = engine.s
        self.engine = engine
        self.queue = np.zeros(engine.arrival.size, np.int64)
        s.last = engine.lanes_end
        s.limit = limit.astype(np.int64)
        s.next = s.head.copy()  # next arrival that was not checked yet
        s.tail = s.head.copy()
        s.PER_LANE = (*s.PER_LANE, "limit", "next", "tail", "last")

    def look(self) -> None:
        """Check the arrivals up to now, then refresh who waits and when the next one comes."""
        s = self.engine.s
        self.arrive(s.rows, s.t, strict=False)
        s.ta = self.engine.arrival.take(s.next)
        s.wait = s.head < s.tail

    def arrive(self, i: Ints, until: Floats, strict: bool) -> None:
        """Check the arrivals of lanes ``i`` before ``until`` (with ``strict``; else up to it, inclusive), seconds."""
        e, s = self.engine, self.engine.s
        ta = e.arrival.take(s.next.take(i))
        due = ta < until if strict else (ta <= until) & (ta < np.inf)
        if not due.any():
            return
        i, until = i[due], until[due]
        first = s.next[i]
        count = self._count(i, first, until, strict)
        outstanding = s.n_slot[i] + (s.part[i] >= 0) + s.tail[i] - s.head[i] + s.n_back[i]
        accepted = np.minimum(count, np.maximum(s.limit[i] - outstanding, 0))
        self.queue[_ranges(s.tail[i], accepted)] = _ranges(first, accepted)
        e.refused[_ranges(first + accepted, count - accepted)] = True
        s.tail[i] += accepted
        s.next[i] = first + count

    def _count(self, i: Ints, first: Ints, until: Floats, strict: bool) -> Ints:
        """How many arrivals are due, by bisection in each lane's own part of the flat array."""
        e, s = self.engine, self.engine.s
        low, high = first + 1, s.last[i]  # at least one is due, the sentinel never
        while True:
            open_ = low < high
            if not open_.any():
                return low - first
            middle = (low + high) >> 1
            ta = e.arrival[middle]
            due = (ta < until if strict else ta <= until) & open_
            low = np.where(due, middle + 1, low)
            high = np.where(due | ~open_, high, middle)


def _ranges(start: Ints, count: Ints) -> Ints:
    """The integers start[i], start[i] + 1, ..., start[i] + count[i] - 1 of every i, one after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(start - ends + count, count)
