"""The queue when something may keep a request out of it: limits at the door, urgency classes, deadlines while waiting.

Arrivals are checked one after the other, in order of time, against what is in the lane then; between two step
boundaries nobody leaves but waiting requests whose deadline passes, so arrivals in between are let in until a limit
is reached and refused from then on, in one go. Classes are numbered by urgency from 0, and every class is a queue of
its own.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .codel import Codel
from .lanes import Bools, Floats, Ints, Lanes
from .queue import Queue
from .shedding import Shedding
from .state import LaneState
from .states import CODEL, QUEUE_FULL, SHED


class CheckedQueue(Queue):
    """Queue with ``max_outstanding``, ``max_queued_tokens``, classes and deadlines.

    The queue of class c in a lane lies in a part of ``order`` of its own, from ``head`` up to ``tail``; both, and
    ``back`` and ``n_back``, have one more axis than in ``Queue``: (lanes, classes).
    """

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        count, total = lanes.count, book.total
        self.rank = lanes.rank if lanes.rank is not None else np.zeros(total, np.int64)
        self.classes = self._count_classes(lanes)
        self.next = self.head  # the next arrival to check
        self.last = lanes.start[1:] - 1  # the sentinel
        self._lay_out(lanes)
        self.tail = self.head.copy()
        self.n_back = np.zeros((count, self.classes), np.int64)
        self.back = np.empty((count, self.classes, 0), np.int64)
        self.refused = np.zeros(total, np.int8)  # reason of each request that was, else 0
        self.limit, self.token_limit = lanes.max_outstanding, lanes.max_queued_tokens
        self.queued: Ints = np.zeros(count, np.int64)  # prompt tokens of waiting requests that have no token yet
        self.prompts_before = np.concatenate([[0], np.cumsum(self.book.prompt)])  # for the token limit
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
        self.next, self.tail, self.last = self.next[alive], self.tail[alive], self.last[alive]
        self.queued = self.queued[alive]
        self.limit = None if self.limit is None else self.limit[alive]
        self.token_limit = None if self.token_limit is None else self.token_limit[alive]
        for part in (self.codel, self.shedding):
            if part is not None:
                part.keep(alive)

    # -- what the policy asks --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check the arrivals up to now, let those go whose deadline has passed, and refresh who waits."""
        s, book = self.s, self.book
        ta = book.arrival.take(self.next)
        now = np.minimum(s.t, s.hz)
        if s.active is not None:
            now = np.where(s.active, now, -np.inf)
        if self.shedding is not None:
            self.shedding.at_boundary = True
        self._check((ta <= now) & (ta < np.inf), now, strict=False)
        if self.shedding is not None:
            self.shedding.at_boundary = False
        if self.timed:
            self._expire(now)
        self.ta = book.arrival.take(self.next)
        self.wait = _any(self.head < self.tail)
        if self.preempted:
            self.wait |= _any(self.n_back > 0)
        if s.active is not None:
            self.wait &= s.active

    def arrive(self, until: Floats) -> None:
        """Let arrivals before ``until``, seconds, see the requests that are there now."""
        until = np.minimum(until, self.s.hz)
        self._check(self.book.arrival.take(self.next) < until, until, strict=True)

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

    def next_change(self) -> Floats:
        """(lanes,): when the queue's head may change by itself, seconds: by an arrival or a deadline."""
        # With classes, or newest first, an arrival may go before those who wait; one who may be shed has to be judged
        # in the step in which it comes.
        any_arrival = self.classes > 1 or self.lifo_after_s is not None or self.shedding is not None
        change = self.ta if any_arrival else np.where(self.wait, np.inf, self.ta)
        if self.lifo_after_s is not None:
            change = np.minimum(change, self._next_turn())
        return np.minimum(change, self.next_expiry()) if self.timed else change

    def next_event(self) -> Floats:
        """(lanes,): when anything happens in the queue by itself, seconds."""
        return np.minimum(self.ta, self.next_expiry()) if self.timed else self.ta

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
            i = _any(self.n_back > 0).nonzero()[0]
            expiry[i] = np.minimum(expiry[i], self._back_due(i).min(axis=(1, 2)))
        return expiry

    # -- order and load --------------------------------------------------------------------------------------------

    def _waits(self, i: Ints) -> Bools:
        """Whether anybody waits in each lane of ``i``."""
        waits = _any(self.head[i] < self.tail[i])
        return waits | _any(self.n_back[i] > 0) if self.preempted else waits

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

    # -- inside ----------------------------------------------------------------------------------------------------

    def _urgent(self, i: Ints) -> Ints:
        """The most urgent class in which somebody waits, of each lane of ``i``."""
        if self.classes == 1:
            return np.zeros(i.size, np.int64)
        waits = self.head[i] < self.tail[i]
        if self.preempted:
            waits |= self.n_back[i] > 0
        return np.asarray(waits.argmax(axis=1), np.int64)

    def _check(self, due: Bools, until: Floats, strict: bool) -> None:
        """Let in or refuse the arrivals of the lanes that have one ``due`` before ``until`` (or at it, not
        ``strict``)."""
        i = due.nonzero()[0]
        until = until.take(i)
        shedding = self.shedding is not None
        sees_expiry = self.timed and (self.limit is not None or self.token_limit is not None or shedding)
        while i.size:
            if sees_expiry:
                # Of an arrival and a deadline at one instant the deadline comes first.
                arrival = self.book.arrival.take(self.next.take(i))
                expiry = self.next_expiry().take(i)
                first = expiry <= arrival
                if np.count_nonzero(first):
                    cut = np.full(self.head.shape[0], -np.inf)
                    cut[i[first]] = expiry[first]
                    self._expire(cut)
                    continue
                # Whoever is let in now may have left again before the last of them comes.
                expiry = np.minimum(expiry, arrival + self.patience)
                sooner = expiry < until
                count = self._count(i, np.where(sooner, expiry, until), strict | sooner)
            else:
                count = self._count(i, until, np.full(i.size, strict))
            self._let_in(i, np.minimum(count, 1) if shedding else count)
            if not sees_expiry and not shedding:
                return
            arrival = self.book.arrival.take(self.next.take(i))
            more = (arrival < until) if strict else (arrival <= until)
            i, until = i[more], until[more]

    def _let_in(self, i: Ints, count: Ints) -> None:
        """The next ``count`` arrivals of each lane of ``i`` come in until a limit is reached."""
        first = self.next.take(i)
        accepted = self._accepted(i, first, count)
        if self.shedding is not None:
            accepted = accepted.copy()  # it may be ``count`` itself
            self._shed(i, first, accepted)
        if count.max() <= 1:
            let_in = accepted > 0
            self._line_up(i[let_in], first[let_in], one_each=True)
            full = first[count > accepted]
            self.refused[full] = np.where(self.refused[full] > 0, self.refused[full], QUEUE_FULL)
        else:
            self._line_up(np.repeat(i, accepted), _ranges(first, accepted), one_each=False)
            self.refused[_ranges(first + accepted, count - accepted)] = QUEUE_FULL
        self.next[i] = first + count

    def _shed(self, i: Ints, request: Ints, accepted: Ints) -> None:
        """Of those ``accepted``, one a lane of ``i`` at most, refuse who would wait too long."""
        assert self.shedding is not None
        j = (accepted > 0).nonzero()[0]
        lane, r = i[j], request[j]
        rank, size = self.rank.take(r), self.book.size.take(r)
        slow = self.shedding.too_slow(lane, rank, self.rank, size, self.book.arrival.take(r))
        self.refused[r[slow]] = SHED
        self.queued[lane[slow]] -= self.book.prompt.take(r[slow])
        accepted[j[slow]] = 0
        self._owe(lane[~slow], rank[~slow], size[~slow])

    def _line_up(self, i: Ints, request: Ints, one_each: bool) -> None:
        """``request`` joins the queue of its lane in ``i``, in ascending order; ``one_each``: no lane twice."""
        for c in range(self.classes):
            here = slice(None) if self.classes == 1 else self.rank.take(request) == c
            r, at = request[here], i[here]
            if one_each:
                end = self.tail[at, c]
                self.order[end] = r
                self.tail[at, c] = end + 1
            else:
                nth = np.arange(at.size) - np.searchsorted(at, at)  # among those of its lane
                self.order[self.tail[at, c] + nth] = r
                np.add.at(self.tail[:, c], at, 1)

    def _accepted(self, i: Ints, first: Ints, count: Ints) -> Ints:
        """How many of the next ``count`` arrivals of each lane of ``i``, beginning with request ``first``, are let
        in."""
        if self.limit is not None:
            room = self.limit.take(i) - self._outstanding(i)
            count = np.minimum(count, np.maximum(room, 0))
        if self.token_limit is not None:
            # The j-th is let in while the prompts queued before it are below the limit.
            before = self.prompts_before
            most = before.take(first) + self.token_limit.take(i) - self.queued.take(i)
            count = np.minimum(count, np.maximum(np.searchsorted(before, most, side="left") - first, 0))
            self.queued[i] += before.take(first + count) - before.take(first)
        return count

    def waiting(self) -> Ints:
        """(lanes,): requests that wait."""
        return np.asarray((self.tail - self.head + self.n_back).sum(axis=1), np.int64)

    def _outstanding(self, i: Ints) -> Ints:
        """Requests that wait or run in each lane of ``i``."""
        waiting = (self.tail[i] - self.head[i] + self.n_back[i]).sum(axis=1)
        return np.asarray(self.s.running.take(i) + waiting, np.int64)

    def _count(self, i: Ints, until: Floats, strict: Bools) -> Ints:
        """How many arrivals are due in each lane of ``i``: usually one, so the steps ahead begin small and double."""
        first = self.next.take(i)
        low, high = first.copy(), self.last.take(i)  # the sentinel is never due
        ahead, after, on = 1, 1, np.arange(i.size)
        while on.size:
            probe = np.minimum(low.take(on) + ahead - 1, high.take(on))
            due = self._due(probe, until.take(on), strict.take(on))
            high[on[~due]] = probe[~due]
            on, probe = on[due], probe[due]
            low[on] = probe + 1
            ahead, after = after, after * 2
        while np.count_nonzero(low < high):
            middle = (low + high) >> 1
            due = self._due(middle, until, strict) & (low < high)
            high = np.where(due, high, np.maximum(middle, low))
            low = np.where(due, middle + 1, low)
        return low - first

    def _due(self, request: Ints, until: Floats, strict: Bools) -> Bools:
        ta = self.book.arrival.take(request)
        return np.where(strict, ta < until, ta <= until)

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
        i = _any(self.n_back > 0).nonzero()[0]
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


def is_needed(lanes: Lanes) -> bool:
    """Whether these lanes need more than the plain queue."""
    return (
        lanes.policy == "static"  # which asks who else waits, and when the next arrival comes
        or lanes.max_outstanding is not None
        or lanes.max_queued_tokens is not None
        or lanes.rank is not None
        or lanes.shed_ttft_s is not None
        or lanes.codel is not None
        or lanes.lifo_after_s is not None
        or (lanes.fed is not None and lanes.fed.classes > 1)
        or lanes.deadlines.while_waiting < np.inf
    )


def _any(flags: Bools) -> Bools:
    """(lanes,): whether any class of a lane's is flagged."""
    return np.asarray(flags.any(axis=1), np.bool_)


def _ranges(start: Ints, count: Ints) -> Ints:
    """The integers start[i], start[i] + 1, ..., start[i] + count[i] - 1 of every i, one after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(start - ends + count, count)
