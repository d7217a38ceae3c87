"""The queue of lanes whose requests come while they run: a router hands them over window by window."""

from __future__ import annotations

import numpy as np

from .book import Book
from .checked import CheckedQueue, _any
from .lanes import Bools, Floats, Ints, Lanes
from .state import LaneState

_ROOM = 64
"""Places in the line of a class to begin with."""


class Inbox(CheckedQueue):
    """Requests get their numbers when they are fed, so numbers rise in order of arrival in every lane.

    What a lane is fed at once lies end to end and is followed by a sentinel; all of it has been let in or refused when
    the lane stops again. Number 0 is the sentinel of lanes that never were fed.
    """

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        self.next, self.last = np.zeros((2, lanes.count), np.int64)
        self.used = 1
        self.leavers: list[tuple[Ints, Floats]] = []
        """(requests, when) that left the system, whatever their state, since ``pop_leavers`` was last asked."""
        self.departing = False

    def _count_classes(self, lanes: Lanes) -> int:
        assert lanes.fed is not None
        return lanes.fed.classes

    def _lay_out(self, lanes: Lanes) -> None:
        self.room = _ROOM
        self._make_lines(lanes.count)
        self.head = self._begin.copy()

    def _make_lines(self, count: int) -> None:
        """An empty line of ``room`` places for every lane and class."""
        self._begin = np.arange(count * self.classes, dtype=np.int64).reshape(count, self.classes) * self.room
        self.order = np.zeros(count * self.classes * self.room, np.int64)

    def feed(self, lane: Ints, arrival: Floats, prompt: Ints, output: Ints, cached: Ints, rank: Ints) -> Ints:
        """Hand requests over, in order of lane and in a lane in order of time; returns their numbers, (n,)."""
        book = self.book
        first = np.concatenate([[0], 1 + (lane[1:] != lane[:-1]).nonzero()[0]])
        size = np.diff(np.concatenate([first, [lane.size]]))
        block = np.arange(first.size)
        number = self.used + np.arange(lane.size) + np.repeat(block, size)
        end = self.used + lane.size + first.size
        self._grow_to(end)
        book.arrival[number], book.prompt[number], book.output[number] = arrival, prompt, output
        book.cached[number], book.size[number], self.rank[number] = cached, prompt - cached, rank
        before = self.prompts_before
        before[self.used : end + 1] = before[self.used] + np.concatenate([[0], np.cumsum(book.prompt[self.used : end])])
        row = lane[first]
        self.next[row] = number[first]
        self.last[row] = number[first] + size
        self.used = end
        self._make_room(row, size)
        return number

    def catch_up(self, until: Floats) -> None:
        """Arrivals before ``until`` (lanes,), of lanes that stand at a later boundary, see who was there before it."""
        self.departing = True
        self._check(self.book.arrival.take(self.next) < until, until, strict=True)
        self.departing = False

    def expire_until(self, now: Floats) -> None:
        """Waiting requests whose deadline is at or before ``now`` (lanes,) leave."""
        if self.timed:
            self._expire(now)

    def ended(self, i: Ints, request: Ints, now: Floats) -> None:
        """Note who left, and when."""
        self.leavers.append((request, now))

    def pop_leavers(self) -> tuple[Ints, Floats]:
        """Who has left since this was last asked, and when."""
        if not self.leavers:
            return np.empty(0, np.int64), np.empty(0)
        request, now = (np.concatenate(column) for column in zip(*self.leavers, strict=True))
        self.leavers = []
        return request, now

    def waiting_since(self) -> Bools:
        """(lanes,): whether anybody waits, whoever acts now."""
        return _any((self.head < self.tail) | (self.n_back > 0))

    def _outstanding(self, i: Ints) -> Ints:
        there = super()._outstanding(i)
        return there + self.s.gone.take(i) if self.departing else there

    def _make_room(self, row: Ints, size: Ints) -> None:
        """As many free places at the end of every line as its lane was fed."""
        end = self._begin + self.room
        if not np.count_nonzero(self.tail[row] + size[:, None] > end[row]):
            return
        length = self.tail - self.head
        need = int(length.max()) + int(size.max())
        old, start = self.order, self.head.ravel()
        while self.room < 2 * need:
            self.room *= 2
        self._make_lines(length.shape[0])
        count = length.ravel()
        nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        self.order[np.repeat(self._begin.ravel(), count) + nth] = old[np.repeat(start, count) + nth]
        self.head = self._begin.copy()
        self.tail = self.head + length

    def _grow_to(self, end: int) -> None:
        if end < self.book.total:
            return
        more = max(end + 1 - self.book.total, self.book.total)
        self.book.grow(more)
        self.rank = np.concatenate([self.rank, np.zeros(more, np.int64)])
        self.refused = np.concatenate([self.refused, np.zeros(more, np.int8)])
        self.prompts_before = np.concatenate([self.prompts_before, np.zeros(more, np.int64)])
        self.on_growth(more)

    def on_growth(self, more: int) -> None:
        """Told when there is room for ``more`` requests; whoever keeps arrays a request sets this."""
