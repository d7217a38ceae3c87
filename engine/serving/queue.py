"""Who waits in each lane: arrivals first come, first served, with preempted requests in front of them."""

from __future__ import annotations

import numpy as np

from .book import Book
from .lanes import Bools, Floats, Ints, Lanes
from .state import LaneState


class Queue:
    """The queue of every live lane. Nobody is refused, so it is the lane's own list of requests from ``head`` on.

    ``ta`` is when the lane's next arrival comes, ``wait`` whether anybody waits now.
    """

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        self.s, self.book = state, book
        self.head: Ints = lanes.start[:-1].copy()
        self.n_back: Ints = np.zeros(lanes.count, np.int64)  # preempted requests waiting in front
        self.back = np.empty((lanes.count, 0), np.int64)  # a stack a lane: last preempted, first served
        self.preempted = 0  # of all lanes
        self.ta: Floats = book.arrival.take(self.head)
        self.wait: Bools = np.empty(0, np.bool_)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.preempted -= int(self.n_back[~alive].sum())
        self.head, self.n_back, self.back = self.head[alive], self.n_back[alive], self.back[alive]
        self.ta = self.ta[alive]

    def look(self) -> None:
        """Refresh ``wait`` at every lane's present time."""
        self.wait = self.ta <= self.s.t
        if self.preempted:
            self.wait |= self.n_back > 0

    def arrive(self, until: Floats) -> None:
        """Let arrivals before ``until``, seconds, see the requests that are there now."""

    def heads(self, i: Ints) -> tuple[Ints, Ints, Bools | None]:
        """Request at the head of each lane's queue, tokens that it has to prefill, and whether it had been
        preempted."""
        request = self._request(self.head.take(i))
        if not self.preempted:
            return request, self.book.prefill(request), None
        depth = self.n_back.take(i)
        again = depth > 0
        if np.count_nonzero(again):
            request = np.where(again, self.back[i, depth - 1], request)
        return request, self.book.prefill(request), again

    def drop(self, i: Ints, request: Ints, again: Bools | None) -> Bools | None:
        """Which of those whose turn it is leave instead of being admitted; ``None``: nobody."""
        return None

    def pop(self, i: Ints, request: Ints, again: Bools | None) -> None:
        """Take the head out of the queue of each lane of ``i``: ``heads(i)`` gave ``request`` and ``again``."""
        if again is None or not np.count_nonzero(again):
            head = self._after(i, self.head.take(i))
            self.head[i] = head
            self.book.scheduled[request] = self.s.t.take(i)
        else:
            fresh = ~again
            j = i[fresh]
            self.head[j] = self._after(j, self.head[j])
            self.book.scheduled[request[fresh]] = self.s.t[j]
            self.n_back[i[again]] -= 1
            self.preempted -= int(np.count_nonzero(again))
            head = self.head.take(i)
        wait = self._refresh(i, head)
        if self.preempted:
            wait |= self.n_back.take(i) > 0
        self.wait[i] = wait

    def push_front(self, i: Ints, request: Ints) -> None:
        """Put a preempted request at the front of the queue of each lane of ``i`` (no repeats)."""
        depth = self.n_back[i]
        if depth.max() >= self.back.shape[1]:
            more = np.full((self.n_back.size, max(4, self.back.shape[1])), -1, np.int64)
            self.back = np.concatenate([self.back, more], axis=1)
        self.back[i, depth] = request
        self.n_back[i] = depth + 1
        self.preempted += i.size
        self.wait[i] = True

    def ended(self, i: Ints, request: Ints, now: Floats) -> None:
        """``request`` has left lane ``i`` at ``now``, seconds, whatever its state; nobody here reacts to it."""

    def started(self, i: Ints, request: Ints) -> None:
        """``request`` of lanes ``i`` has just made its first token."""

    def next_change(self) -> Floats:
        """(lanes,): when the queue's head may change by itself, seconds: by an arrival where nobody waits."""
        return np.where(self.wait, np.inf, self.ta)

    def _after(self, i: Ints, head: Ints) -> Ints:
        """The requests that follow those at the head of lanes ``i``, which are taken out."""
        return head + 1

    def _request(self, head: Ints) -> Ints:
        return head

    def _refresh(self, i: Ints, head: Ints) -> Bools:
        ta = self.book.arrival.take(head)
        self.ta[i] = ta
        return ta <= self.s.t.take(i)
