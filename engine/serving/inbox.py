"""Queues of lanes whose requests come while they run: a router hands them over window by window.

Requests get their numbers when they are fed, so numbers rise in order of arrival in every lane. What a lane is fed at
once lies end to end and is followed by a sentinel. Number 0 is the sentinel of lanes that never were fed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .book import Book
from .checked import CheckedQueue
from .lanes import Bools, Floats, Ints, Lanes
from .queue import Queue
from .state import LaneState

_ROOM = 64
"""Places in the line of a class to begin with."""


class Numbers:
    """Hands out the numbers of requests as they come, and makes room for them."""

    def __init__(self, book: Book) -> None:
        self.book, self.used = book, 1
        self.on_growth: list[Callable[[int], None]] = [book.grow]
        """Told when there has to be room for so many more requests."""

    def feed(
        self, lane: Ints, arrival: Floats, prompt: Ints, output: Ints, cached: Ints
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """Enter requests that are in order of lane and in a lane in order of time, each (n,).

        Returns their numbers (n,), and of each lane fed: the lane, its first new number, how many it was fed.
        """
        book = self.book
        first = np.concatenate([[0], 1 + (lane[1:] != lane[:-1]).nonzero()[0]])
        size = np.diff(np.concatenate([first, [lane.size]]))
        number = self.used + np.arange(lane.size) + np.repeat(np.arange(first.size), size)
        end = self.used + lane.size + first.size
        if end >= book.total:
            more = max(end + 1 - book.total, book.total)
            for grow in self.on_growth:
                grow(more)
        book.arrival[number], book.prompt[number], book.output[number] = arrival, prompt, output
        book.cached[number], book.size[number] = cached, prompt - cached
        self.used = end
        return number, lane[first], number[first], size


class Leavers:
    """Who left the system, and when."""

    def __init__(self) -> None:
        self._open: list[tuple[Ints, Floats]] = []

    def add(self, request: Ints, now: Floats) -> None:
        """Each ``request`` has left, whatever its state."""
        self._open.append((request, now))

    def pop(self) -> tuple[Ints, Floats]:
        """Those since this was last asked."""
        if not self._open:
            return np.empty(0, np.int64), np.empty(0)
        request, now = (np.concatenate(column) for column in zip(*self._open, strict=True))
        self._open = []
        return request, now


class PlainInbox(Queue):
    """Where nothing keeps a request out: each number knows the next of its lane."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        self.numbers = Numbers(book)
        self.numbers.on_growth.append(self._grow)
        self.head = np.zeros(lanes.count, np.int64)
        self.ta = np.full(lanes.count, np.inf)
        self.newest = np.zeros(lanes.count, np.int64)
        self.following: Ints = np.zeros(book.total, np.int64)
        self.in_line: Ints = np.zeros(lanes.count, np.int64)
        self.leavers: Leavers | None = None

    def _grow(self, more: int) -> None:
        self.following = np.concatenate([self.following, np.zeros(more, np.int64)])

    def feed(self, lane: Ints, arrival: Floats, prompt: Ints, output: Ints, cached: Ints, rank: Ints) -> Ints:
        """Hand requests over, in order of lane and in a lane in order of time; returns their numbers, (n,)."""
        number, row, first, size = self.numbers.feed(lane, arrival, prompt, output, cached)
        self.following[number] = number + 1
        self.following[self.newest[row]] = first
        empty = row[self.in_line[row] == 0]
        self.head[empty] = first[self.in_line[row] == 0]
        self.ta[empty] = self.book.arrival.take(self.head.take(empty))
        self.newest[row] = first + size - 1
        self.in_line[row] += size
        return number

    def look(self) -> None:
        """Refresh ``wait`` at the present time of every lane that acts."""
        super().look()
        assert self.s.active is not None
        self.wait &= self.s.active

    def look_again(self, i: Bools) -> None:
        """Lanes ``i`` (lanes,) have moved to their next arrival."""
        self.wait |= i

    def refusals(self, number: Ints) -> NDArray[np.int8]:
        """(n,): nobody is refused."""
        return np.zeros(number.size, np.int8)

    def catch_up(self, until: Floats) -> None:
        """Nobody is kept out, whoever was there."""

    def expire_until(self, now: Floats) -> None:
        """Nobody's patience ends."""

    def waiting(self) -> Ints:
        """(lanes,): requests that wait."""
        return self.in_line + self.n_back

    def ended(self, i: Ints, request: Ints, now: Floats) -> None:
        """Note who left, if anybody wants to know."""
        if self.leavers is not None:
            self.leavers.add(request, now)

    def _after(self, i: Ints, head: Ints) -> Ints:
        self.in_line[i] -= 1
        return self.following.take(head)


class Inbox(CheckedQueue):
    """Where something may: all that was fed has been let in or refused when the lane stops again."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        self.numbers = Numbers(book)
        self.numbers.on_growth.append(self._grow)
        self.next, self.last = np.zeros((2, lanes.count), np.int64)
        self._sums = np.zeros(book.total + 1, np.int64)
        if self.classes > 1:
            book.rank = self.rank
        self.leavers: Leavers | None = None
        self.departing = False

    def _grow(self, more: int) -> None:
        self.rank = np.concatenate([self.rank, np.zeros(more, np.int64)])
        if self.classes > 1:
            self.book.rank = self.rank
        self.refused = np.concatenate([self.refused, np.zeros(more, np.int8)])
        self._sums = np.concatenate([self._sums, np.zeros(more, np.int64)])

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
        begin = self.numbers.used
        number, row, first, size = self.numbers.feed(lane, arrival, prompt, output, cached)
        self.rank[number] = rank
        end, before = self.numbers.used, self._sums
        before[begin : end + 1] = before[begin] + np.concatenate([[0], np.cumsum(self.book.prompt[begin:end])])
        self.prompts_before = before[: end + 1]
        self.next[row] = first
        self.last[row] = first + size
        self._make_room(row, size)
        return number

    def look_again(self, i: Bools) -> None:
        """Lanes ``i`` (lanes,) have moved to their next arrival."""
        self.look()

    def refusals(self, number: Ints) -> NDArray[np.int8]:
        """(n,): reason of each that was refused, else 0."""
        return self.refused.take(number)

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
        """Note who left, if anybody wants to know."""
        if self.leavers is not None:
            self.leavers.add(request, now)

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
