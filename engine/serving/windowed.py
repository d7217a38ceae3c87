"""Lanes that stop now and then, so that what goes on between them can be decided in step.

A lane stops at its first boundary at or after the end of a window. That boundary may lie beyond it: what comes in
between is told to the lane in the next window, and is judged by what the boundary found (see ``LaneState.gone``).
Nothing that a lane does at or before a window's end depends on what comes later.
"""

from __future__ import annotations

import numpy as np

from .inbox import Inbox, PlainInbox
from .lanes import Floats, Ints, Lanes, Served
from .lockstep import Lockstep
from .steplog import Sink
from .work import Work


class Windowed(Lockstep):
    """Runs lanes window by window; rows and lanes are the same, because none is dropped before the end."""

    queue: Inbox | PlainInbox

    def __init__(self, lanes: Lanes, sink: Sink) -> None:
        super().__init__(lanes, sink)
        s = self.s
        s.active = np.zeros(lanes.count, np.bool_)
        s.gone, s.held_before = np.zeros((2, lanes.count), np.int64)
        self.until: Floats = np.zeros(lanes.count)
        self.busy_s: Floats = np.zeros(lanes.count)
        """Seconds spent in steps so far, up to the boundary at which each lane stands."""
        for keeper in (self.policy.spending, self.policy.waits):
            if keeper is not None:
                self.queue.numbers.on_growth.append(keeper.grow)

    def run_to(self, until: Floats) -> None:
        """Go on to the first boundary at or after ``until`` (lanes,), seconds; what was fed comes before it."""
        self.until = np.minimum(until, self.s.hz)
        self.queue.catch_up(np.minimum(self.s.t, self.until))
        self._rounds()
        self.queue.expire_until(np.minimum(self.s.t, self.until))

    def end(self) -> Served:
        """What became of everybody."""
        if self.policy.spending is not None:
            self.policy.spending.keep(np.zeros(self.s.lane.size, np.bool_))
        return self._served()

    def outstanding(self) -> Ints:
        """(lanes,): requests waiting and running at the end of the window."""
        s = self.s
        return s.running + self.queue.waiting() + np.where(s.t > self.until, s.gone, 0)

    def kv_held(self) -> Ints:
        """(lanes,): KV tokens held at the end of the window."""
        s = self.s
        return np.where(s.t > self.until, s.held_before, s.held)

    def busy_until(self) -> Floats:
        """(lanes,): seconds spent in steps up to the end of the window."""
        return self.busy_s - np.maximum(self.s.t - self.until, 0.0)

    def _wake(self) -> bool:
        s, queue = self.s, self.queue
        while True:
            s.active = s.t < self.until
            queue.look()
            idle = s.active & (s.n_slot == 0) & ~queue.wait
            if s.partial:
                idle &= s.part < 0
            if np.count_nonzero(idle):
                comes = idle & (queue.ta < self.until)
                s.t = np.where(comes, queue.ta, s.t)
                s.active &= ~idle | comes
                queue.look_again(comes)
                if np.count_nonzero(comes & ~queue.wait):
                    continue  # that arrival was refused
            self.policy.prepare()
            if self._hold_back():
                continue
            return bool(np.count_nonzero(s.active))

    def _hold_back(self) -> bool:
        s, queue = self.s, self.queue
        start = self.policy.start_at()
        if start is None:
            return False
        assert isinstance(queue, Inbox)
        early = (s.n_slot == 0) & queue.wait & (s.t < np.minimum(start, s.hz))
        s.t = np.where(early, np.minimum(np.minimum(start, queue.next_event()), self.until), s.t)
        return bool(np.count_nonzero(early))

    def _next_change(self) -> Floats:
        return np.minimum(super()._next_change(), self.until)

    def _deliver(self, w: Work, t1: Floats, k: Ints, tokens: Ints) -> None:
        s = self.s
        assert s.active is not None
        self.busy_s += t1 - s.t
        s.gone[s.active] = 0
        s.held_before = np.where(s.active, s.held + (k - 1) * tokens, s.held_before)
        super()._deliver(w, t1, k, tokens)
