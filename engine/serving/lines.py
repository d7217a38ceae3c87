"""Lines of those who wait, one a lane and urgency: who is next, who leaves by itself, and who is dropped at its turn.

Classes are numbered by urgency from 0, and every class is a queue of its own, with preempted requests in front.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .codel import Codel
from .lanes import Bools, Floats, Ints, Lanes
from .queue import Queue
from .shedding import Shedding
from .state import LaneState
from .states import CODEL


class Lines(Queue):
    """Queue with classes, deadlines and other orders than first come, first served.

    The line of class c in a lane lies in a part of ``order`` of its own, from ``head`` up to ``tail``; both, and
    ``back`` and ``n_back``, have one more axis than in ``Queue``: (lanes, classes).
    """

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        count, total = lanes.count, book.total
        self.rank = lanes.rank if lanes.rank is not None else np.zeros(total, np.int64)
        self.classes = self._count_classes(lanes)
        self._lay_out(lanes)
        self.tail = self.head.copy()
        self.n_back = np.zeros((count, self.classes), np.int64)
        self.back = np.empty((count, self.classes, 0), np.int64)
        self.refused = np.zeros(total, np.int8)  # reason of each request that was, else 0
        self.token_limit = lanes.max_queued_tokens
        self.queued: Ints = np.zeros(count, np.int64)  # prompt tokens of waiting requests that have no token yet
        self.lifo_after_s = lanes.lifo_after_s
        self.codel = None if lanes.codel is None else Codel(*lanes.codel, count)
        self.shedding = None if lanes.shed_ttft_s is None else Shedding(lanes, state, self.classes)
        self.patience = lanes.deadlines.while_waiting
        self.timed = self.patience < np.inf

    def _count_classes(self, lanes: Lanes) -> int:
        """How many urgencies there are."""
        ranks = self.rank if lanes.closed is None else lanes.closed.rank
        return int(ranks.max(initial=0)) + 1

    def _lay_out(self, lanes: Lanes) -> None:
        """Room in ``order``: in every class as much as a lane has requests."""
        self.order = np.zeros(self.book.total * self.classes, np.int64)
        self.head = lanes.start[:-1, None] + self.book.total * np.arange(self.classes)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        super().keep(alive)
        self.tail, self.queued = self.tail[alive], self.queued[alive]
        self.token_limit = None if self.token_limit is None else self.token_limit[alive]
        for part in (self.codel, self.shedding):
            if part is not None:
                part.keep(alive)

    # -- what the policy asks --------------------------------------------------------------------------------------

    def heads(self, i: Ints) -> tuple[Ints, Ints, Bools | None]:
        """Request at the head of each lane's queue, tokens that it has to prefill, and whether it had been
        preempted."""
        urgent = self._urgent(i)
        at = self.head[i, urgent]
        if self.lifo_after_s is not None:
            at = np.where(self._turned(i, urgent), self.tail[i, urgent] - 1, at)
        request = self.order.take(at, mode="clip")  # beyond the end where only preempted ones wait
        if not self.preempted:
            return request, self.book.prefill(request), None
        depth = self.n_back[i, urgent]
        again = depth > 0
        if np.count_nonzero(again):
            request = np.where(again, self.back[i, urgent, depth - 1], request)
        return request, self.book.prefill(request), again

    def drop(self, i: Ints, request: Ints, again: Bools | None) -> Bools | None:
        """Which of those whose turn it is leave instead of being admitted; ``None``: nobody."""
        if self.codel is None:
            return None
        now = self.s.t.take(i)
        dropped = np.zeros(i.size, np.bool_)
        fresh = np.ones(i.size, np.bool_) if again is None else ~again
        dropped[fresh] = self.codel.judge(i[fresh], (now - self.book.arrival.take(request))[fresh], now[fresh])
        if not np.count_nonzero(dropped):
            return None
        j, gone = i[dropped], request[dropped]
        self.refused[gone] = CODEL
        self.book.dropped[gone] = now[dropped]
        rank = self.rank.take(gone)
        self.head[j, rank] += 1
        self.queued[j] -= self.book.prompt.take(gone)
        self._owe(j, rank, -self.book.size.take(gone))
        self.ended(j, gone, now[dropped])
        self.wait[j] = self._waits(j)
        return dropped

    def pop(self, i: Ints, request: Ints, again: Bools | None) -> None:
        """Take the head out of the queue of each lane of ``i``: ``heads(i)`` gave ``request`` and ``again``."""
        rank = self.rank.take(request)
        self.book.admit(request)
        if self.shedding is not None:
            self._owe(i, rank, -self.book.prefill(request))
        if again is None or not np.count_nonzero(again):
            self._take_out(i, rank, request)
            self.book.scheduled[request] = self.s.t.take(i)
        else:
            fresh = ~again
            self._take_out(i[fresh], rank[fresh], request[fresh])
            self.book.scheduled[request[fresh]] = self.s.t[i[fresh]]
            self.n_back[i[again], rank[again]] -= 1
            self.preempted -= int(np.count_nonzero(again))
        if self.token_limit is not None:
            self.queued[i] -= np.where(np.isnan(self.book.first.take(request)), self.book.prompt.take(request), 0)
        self.wait[i] = self._waits(i)

    def push_front(self, i: Ints, request: Ints) -> None:
        """Put a preempted request before its class in each lane of ``i`` (no repeats)."""
        rank = self.rank[request]
        depth = self.n_back[i, rank]
        deepest = self.back.shape[-1]
        if depth.max() >= deepest:
            more = np.full((*self.n_back.shape, max(4, deepest)), -1, np.int64)
            self.back = np.concatenate([self.back, more], axis=2)
        self.back[i, rank, depth] = request
        self.n_back[i, rank] = depth + 1
        self.preempted += i.size
        self.wait[i] = True
        if self.token_limit is not None:
            self.queued[i] += np.where(np.isnan(self.book.first[request]), self.book.prompt[request], 0)
        if self.shedding is not None:
            self._owe(i, rank, self.book.prefill(request))

    def peek(self, i: Ints, place: int) -> Ints:
        """The request at ``place`` (0: the head) of each lane's queue, -1 where the queue is shorter."""
        request = np.full(i.size, -1, np.int64)
        left = np.full(i.size, place, np.int64)
        for c in range(self.classes):
            depth, head = self.n_back[i, c], self.head[i, c]
            size = depth + self.tail[i, c] - head
            here = (left >= 0) & (left < size)
            again = here & (left < depth)
            fresh = here & ~again
            request[again] = self.back[i[again], c, depth[again] - 1 - left[again]]
            request[fresh] = self.order[head[fresh] + left[fresh] - depth[fresh]]
            left = np.where(here, -1, left - size)
        return request

    def next_expiry(self) -> Floats:
        """(lanes,): when the next waiting request's deadline passes, seconds; infinity where none does."""
        expiry = np.full(self.head.shape[0], np.inf)
        if self.timed:
            for c in range(self.classes):
                head = self.head[:, c]
                request = self.order.take(head, mode="clip")
                due = self.book.arrival.take(request) + self.patience
                np.minimum(expiry, np.where(head < self.tail[:, c], due, np.inf), out=expiry)
        if self.preempted:
            i = any_class(self.n_back > 0).nonzero()[0]
            expiry[i] = np.minimum(expiry[i], self._back_due(i).min(axis=(1, 2)))
        return expiry

    def waiting(self) -> Ints:
        """(lanes,): requests that wait."""
        return np.asarray((self.tail - self.head + self.n_back).sum(axis=1), np.int64)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _waits(self, i: Ints) -> Bools:
        """Whether anybody waits in each lane of ``i``."""
        waits = any_class(self.head[i] < self.tail[i])
        return waits | any_class(self.n_back[i] > 0) if self.preempted else waits

    def _urgent(self, i: Ints) -> Ints:
        """The most urgent class in which somebody waits, of each lane of ``i``."""
        if self.classes == 1:
            return np.zeros(i.size, np.int64)
        waits = self.head[i] < self.tail[i]
        if self.preempted:
            waits |= self.n_back[i] > 0
        return np.asarray(waits.argmax(axis=1), np.int64)

    def _turned(self, i: Ints, rank: Ints) -> Bools:
        """Whether class ``rank`` of each lane of ``i`` is served newest first."""
        assert self.lifo_after_s is not None
        head = self.head[i, rank]
        since = self.book.arrival.take(self.order.take(head, mode="clip")) + self.lifo_after_s
        return np.asarray((head < self.tail[i, rank]) & (since <= self.s.t.take(i)), np.bool_)

    def _next_turn(self) -> Floats:
        """(lanes,): when a class begins to be served newest first, seconds; infinity where none does."""
        assert self.lifo_after_s is not None
        turns = self.book.arrival.take(self.order.take(self.head, mode="clip")) + self.lifo_after_s
        ahead = (self.head < self.tail) & (turns > self.s.t[:, None])
        return np.asarray(np.where(ahead, turns, np.inf).min(axis=1), np.float64)

    def _take_out(self, i: Ints, rank: Ints, request: Ints) -> None:
        """``request`` leaves its class ``rank`` at whichever end of it it is, in each lane of ``i``."""
        if self.lifo_after_s is None:
            self.head[i, rank] += 1
            return
        oldest = self.order.take(self.head[i, rank]) == request
        self.head[i[oldest], rank[oldest]] += 1
        self.tail[i[~oldest], rank[~oldest]] -= 1

    def _owe(self, i: Ints, rank: Ints, tokens: Ints) -> None:
        """So many more tokens wait to be prefilled."""
        if self.shedding is not None:
            np.add.at(self.shedding.waiting, (i, rank), tokens)

    def _expire(self, now: Floats) -> None:
        """Waiting requests whose deadline is at or before ``now`` (lanes,) leave at that deadline."""
        book = self.book
        for c in range(self.classes):
            while True:
                head = self.head[:, c]
                request = self.order.take(head, mode="clip")
                due = book.arrival.take(request) + self.patience
                i = ((head < self.tail[:, c]) & (due <= now)).nonzero()[0]
                if not i.size:
                    break
                book.dropped[request[i]] = due[i]
                self.ended(i, request[i], due[i])
                self.head[i, c] += 1
                self.queued[i] -= book.prompt[request[i]]
                self._owe(i, np.full(i.size, c), -book.size[request[i]])
        if self.preempted:
            self._expire_preempted(now)

    def _back_due(self, i: Ints) -> Floats:
        """(lanes of i, classes, depth): deadlines of the preempted requests that wait; infinity where there is none."""
        request = self.back[i]
        there = np.arange(request.shape[2]) < self.n_back[i][:, :, None]
        due = self.book.due(np.where(there, request, 0))
        return np.where(there, due, np.inf)

    def _expire_preempted(self, now: Floats) -> None:
        i = any_class(self.n_back > 0).nonzero()[0]
        due = self._back_due(i)
        gone = due <= now[i][:, None, None]
        if not np.count_nonzero(gone):
            return
        lane, rank, depth = gone.nonzero()
        request = self.back[i[lane], rank, depth]
        self.book.dropped[request] = due[gone]
        self.ended(i[lane], request, due[gone])
        fresh = np.isnan(self.book.first[request])
        self._owe(i[lane], rank, -self.book.prefill(request))
        np.subtract.at(self.queued, i[lane], np.where(fresh, self.book.prompt[request], 0))
        # Those that stay move together, in their order.
        stays = np.argsort(gone, axis=2, kind="stable")
        self.back[i] = np.take_along_axis(self.back[i], stays, axis=2)
        self.n_back[i] -= gone.sum(axis=2)
        self.preempted -= request.size


def any_class(flags: Bools) -> Bools:
    """(lanes,): whether any class of a lane's is flagged."""
    return np.asarray(flags.any(axis=1), np.bool_)
