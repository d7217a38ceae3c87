"""Deadlines: how long clients and the server wait, and what happens to running requests whose deadline has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .lanes import Bools, Floats, Ints

if TYPE_CHECKING:
    from .book import Book
    from .policy import Policy
    from .queue import Queue
    from .state import LaneState


class Patience:
    """Takes running requests out at the first boundary at or after their deadline.

    The answer is due ``timeout_s`` after arrival, its first token ``ttft_timeout_s`` after it.
    """

    def __init__(self, state: LaneState, book: Book, queue: Queue, policy: Policy) -> None:
        self.s, self.book, self.queue, self.policy = state, book, queue, policy
        self.not_before: Floats = np.full(state.lane.size, np.inf)
        """(lanes,): no request in a slot has its deadline before this; brought up to date only when it has passed."""

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.not_before = self.not_before[alive]

    def watch(self, i: Ints, request: Ints) -> None:
        """``request`` decodes in lanes ``i`` from now on."""
        np.minimum.at(self.not_before, i, self.book.issued.take(request) + self.book.deadlines.timeout_s)

    def next_deadline(self) -> Floats:
        """(lanes,): when a running request's deadline may pass, seconds; infinity where none can."""
        s, due = self.s, self.not_before
        if s.partial:
            due = due.copy()
            partly = (s.part >= 0).nonzero()[0]
            due[partly] = np.minimum(due[partly], self.book.due(s.part[partly]))
        return due

    def drop_late(self) -> None:
        """Running requests whose deadline has passed leave now, at a boundary; ``s.t`` is the present time."""
        s, book = self.s, self.book
        inside = s.t <= s.hz  # a boundary beyond the horizon never comes
        i = ((s.part >= 0) & inside).nonzero()[0]
        i = i[book.due(s.part[i]) <= s.t[i]]
        if i.size:
            book.dropped[s.part[i]] = s.t[i]
            self.queue.ended(i, s.part[i], s.t[i])
            self.drop_partial(i)
        i = ((self.not_before <= s.t) & inside).nonzero()[0]
        while i.size:
            oldest = self._oldest(i)
            due = book.issued.take(oldest, mode="clip") + book.deadlines.timeout_s
            late = due <= s.t.take(i)
            self.not_before[i] = due
            i, oldest = i[late], oldest[late]
            self.drop(i, oldest)

    def drop_unstarted(self, i: Ints, request: Ints) -> None:
        """Of ``request`` in lanes ``i``, which have just made their first token, those leave for whom it is too
        late."""
        book = self.book
        late = book.first.take(request) >= book.issued.take(request) + book.deadlines.ttft_timeout_s
        late &= np.isnan(book.dropped.take(request))  # a one-word answer has left already
        i, request = i[late], request[late]
        while i.size:  # a lane may have several
            _, one = np.unique(i, return_index=True)
            self.drop(i[one], request[one])
            i, request = np.delete(i, one), np.delete(request, one)

    def drop(self, i: Ints, request: Ints) -> None:
        """``request`` leaves its slot in each lane of ``i`` (no repeats)."""
        s, book = self.s, self.book
        column = (s.rid[i] == request[:, None]).argmax(axis=1)
        left = s.key[i, column] - s.step[i]
        out = book.output[request] - left
        book.dropped[request] = s.t[i]
        if s.active is not None:
            s.gone[i] += 1
        self.queue.ended(i, request, s.t[i])
        s.ctx[i] -= book.prompt[request] + out - 1
        if self.policy.spending is not None:
            self.policy.spending.stop(i, request)
        self.policy.free(i, request, out)
        s.remove(i, column)

    def drop_partial(self, i: Ints) -> None:
        """The partly prefilled request leaves each lane of ``i``."""
        s, book = self.s, self.book
        request = s.part[i]
        if s.active is not None:
            s.gone[i] += 1
        read = s.part_ctx[i] - book.cached[request]
        self.policy.free(i, request, read - book.size[request] + 1)  # it holds what it has read
        s.part[i] = -1
        s.partial -= i.size

    def _oldest(self, i: Ints) -> Ints:
        """(lanes of i,): the request in a slot that was issued first; beyond all requests where there is none."""
        request = self.s.rid.view(np.uint32).take(i, axis=0)
        if self.book.issued is self.book.arrival:  # then numbers rise with time
            return np.asarray(request.min(axis=1), np.int64)
        first = self.book.issued.take(request, mode="clip").argmin(axis=1)  # beyond all: never
        return np.take_along_axis(request, first[:, None], axis=1)[:, 0].astype(np.int64)
