"""The queue when something may keep a request out of it: limits at the door, urgency classes, deadlines while waiting.

Arrivals are checked one after the other, in order of time, against what is in the lane then; between two step
boundaries nobody leaves but waiting requests whose deadline passes, so arrivals in between are let in until a limit
is reached and refused from then on, in one go.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .lanes import Bools, Floats, Ints, Lanes
from .lines import Lines, any_class
from .state import LaneState
from .states import QUEUE_FULL, SHED


class CheckedQueue(Lines):
    """Lines with ``max_outstanding``, ``max_queued_tokens`` and early refusal at the door."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        self.next = lanes.start[:-1].copy()  # the next arrival to check
        self.last = lanes.start[1:] - 1  # the sentinel
        self.limit = lanes.max_outstanding
        self.prompts_before = np.concatenate([[0], np.cumsum(self.book.prompt)])  # for the token limit

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        super().keep(alive)
        self.next, self.last = self.next[alive], self.last[alive]
        self.limit = None if self.limit is None else self.limit[alive]

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
        self.wait = any_class(self.head < self.tail)
        if self.preempted:
            self.wait |= any_class(self.n_back > 0)
        if s.active is not None:
            self.wait &= s.active

    def arrive(self, until: Floats) -> None:
        """Let arrivals before ``until``, seconds, see the requests that are there now."""
        until = np.minimum(until, self.s.hz)
        self._check(self.book.arrival.take(self.next) < until, until, strict=True)

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

    def _check(self, due: Bools, until: Floats, strict: bool) -> None:
        """Let in or refuse the arrivals of the lanes that have one ``due`` before ``until`` (or at it, not
        ``strict``)."""
        i = due.nonzero()[0]
        until = until.take(i)
        shedding, sees_leaving = self.shedding is not None, self._sees_leaving
        while i.size:
            if sees_leaving:
                # Of an arrival and a deadline at one instant the deadline comes first.
                arrival = self.book.arrival.take(self.next.take(i))
                leaves = self._next_leaving().take(i)
                first = leaves <= arrival
                if np.count_nonzero(first):
                    cut = np.full(self.head.shape[0], -np.inf)
                    cut[i[first]] = leaves[first]
                    self._leave(cut)
                    continue
                # Whoever is let in now may have left again before the last of them comes.
                leaves = np.minimum(leaves, arrival + self.patience)
                sooner = leaves < until
                count = self._count(i, np.where(sooner, leaves, until), strict | sooner)
            else:
                count = self._count(i, until, np.full(i.size, strict))
            self._let_in(i, np.minimum(count, 1) if shedding else count)
            if not sees_leaving and not shedding:
                return
            arrival = self.book.arrival.take(self.next.take(i))
            more = (arrival < until) if strict else (arrival <= until)
            i, until = i[more], until[more]

    @property
    def _sees_leaving(self) -> bool:
        """Whether it matters to newcomers who leaves between two boundaries."""
        return self.timed and (self.limit is not None or self.token_limit is not None or self.shedding is not None)

    def _next_leaving(self) -> Floats:
        """(lanes,): when the next one leaves by itself, seconds."""
        return self.next_expiry()

    def _leave(self, now: Floats) -> None:
        """Those whose time to leave by themselves is at or before ``now`` (lanes,) are gone."""
        self._expire(now)

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

    def _outstanding(self, i: Ints) -> Ints:
        """Requests that wait or run in each lane of ``i``."""
        waiting = (self.tail[i] - self.head[i] + self.n_back[i]).sum(axis=1)
        return np.asarray(self.s.inside.take(i) + waiting, np.int64)

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


def _ranges(start: Ints, count: Ints) -> Ints:
    """The integers start[i], start[i] + 1, ..., start[i] + count[i] - 1 of every i, one after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(start - ends + count, count)
