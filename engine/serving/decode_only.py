"""Replicas that only write: the second pool of the policy ``disaggregated``.

A request comes with its first token made and its prompt's KV. It is admitted at the start of a step, in the order in
which the KV came, whatever its class, while there is a seat and room for its prompt and its whole answer; then it
decodes with all the others. Nobody is preempted.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .lanes import Floats, Ints, Lanes
from .policy import Policy
from .queue import Queue
from .state import LaneState
from .work import Work


class DecodeOnly(Policy):
    """The step in which somebody joins stands alone: the newcomer's gap began in the other pool."""

    def choose(self) -> Work:
        """The work of the next step of each lane."""
        w = self._work(self.s.decoding())
        w.standing = np.zeros(w.n.size, np.int64)  # the other pool's log says how many stand still
        self._admit(w)
        return w

    def joined(self, i: Ints, request: Ints) -> None:
        """``request`` has made the first token of its own in lanes ``i``."""
        self.book.end_travel(request, self.s.t.take(i), self.s.lane.take(i))

    def _admit(self, w: Work) -> None:
        s, queue = self.s, self.queue
        i = (queue.wait & (w.n < s.max_seqs)).nonzero()[0]
        while i.size:
            request, size, _ = queue.heads(i)
            if self.kv.bounded:
                fits = self.kv.fits(w, i, request, size)
                i, request, size = i[fits], request[fits], size[fits]
                if not i.size:
                    return
            queue.pop(i, request, None)
            self.kv.start(i, request, size)
            self._resume(w, i, request, size)
            i = i[(w.n.take(i) < s.max_seqs.take(i)) & queue.wait.take(i)]

    def _resume(self, w: Work, i: Ints, request: Ints, size: Ints) -> None:
        """Each ``request`` of lanes ``i`` decodes from this step on; ``size`` tokens of its KV have come."""
        s, book = self.s, self.book
        if w.gaps is None:
            w.gaps = w.n.copy()
        w.open().k_max[i] = 1
        w.n[i] += 1
        s.held[i] += size
        s.ctx[i] += book.prompt.take(request)
        s.insert(i, request, s.step.take(i) + book.output.take(request) - 1)
        if self.spending is not None:
            self.spending.begin(i, request)
        w.joins.append((i, request))


class LandedQueue(Queue):
    """Requests in the order in which their KV came.

    Their deadlines pass in another order, so nobody is taken out in the middle: who is too late is passed over when it
    comes to the head, and has left at its deadline all the same (``late_in_line``).
    """

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        self.timeout_s = lanes.deadlines.timeout_s
        self.timed = self.timeout_s < np.inf

    def look(self) -> None:
        """Refresh ``wait`` at every lane's present time."""
        if self.timed:
            self.head = self._in_time(self.head, self.s.t)
            self.ta = self.book.arrival.take(self.head)
        super().look()

    def next_change(self) -> Floats:
        """(lanes,): when the queue's head may change by itself, seconds: by its deadline, or a first arrival."""
        return np.where(self.wait, self.book.issued.take(self.head) + self.timeout_s, self.ta)

    def _after(self, i: Ints, head: Ints) -> Ints:
        following = head + 1
        return self._in_time(following, self.s.t.take(i)) if self.timed else following

    def _in_time(self, head: Ints, now: Floats) -> Ints:
        """The first request from each ``head`` on whose deadline is after ``now``; the sentinel has none."""
        while True:
            issued = self.book.issued.take(head)
            late = (issued + self.timeout_s <= now) & (issued < np.inf)
            if not np.count_nonzero(late):
                return head
            head = head + late
