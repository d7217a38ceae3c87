"""The queue of a closed loop: the next arrival of a lane is the first of its users to be done with thinking.

A request gets its number when it comes, so a lane's numbers rise in order of arrival as everywhere else; the lane's
next number always holds the request that would come next as things stand, and is written anew when they change.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .checked import CheckedQueue
from .lanes import Bools, ClosedLoop, Floats, Ints, Lanes
from .state import LaneState


class ClosedQueue(CheckedQueue):
    """Users of lane i are columns of row i; ``request_of`` says which request each of them waits for."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book, loop: ClosedLoop) -> None:
        super().__init__(lanes, state, book)
        self.loop = loop
        self.cursor = loop.start.copy()  # what each user asks next
        self.stop = loop.stop
        self.due: Floats = np.where(self.cursor < self.stop, loop.first_s, np.inf)
        self.request_of = np.full(self.due.shape, -1, np.int64)
        self.user = np.zeros(book.total, np.int64)  # column of the user who asked
        self.asked = np.full(book.total, -1, np.int64)  # index into the loop's arrays, -1 for numbers never used
        self.too_long = np.zeros(book.total, np.bool_)
        self._next_user: Ints = np.zeros(self.due.shape[0], np.int64)
        self.gives_up = min(loop.gives_up.timeout_s, loop.gives_up.ttft_timeout_s)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        super().keep(alive)
        self.cursor, self.stop, self.due = self.cursor[alive], self.stop[alive], self.due[alive]
        self.request_of, self._next_user = self.request_of[alive], self._next_user[alive]

    def look(self) -> None:
        """Users whose requests have ended ask next; else as in every queue."""
        self._foresee(np.arange(self.next.size))
        super().look()

    def ended(self, i: Ints, request: Ints, now: Floats) -> None:
        """The user thinks and asks again, unless it had given up on ``request`` before."""
        user = self.user.take(request)
        waits = (self.request_of[i, user] == request) & (now < self._gives_up_at(request))
        self._ask_again(i[waits], user[waits], now[waits])
        self.request_of[i[waits], user[waits]] = -1

    def _gives_up_at(self, request: Ints) -> Floats:
        """When each request's user moves on though the server goes on, seconds."""
        limits, arrival = self.loop.gives_up, self.book.arrival.take(request)
        in_time = self.book.first.take(request) < arrival + limits.ttft_timeout_s
        return arrival + np.where(in_time, limits.timeout_s, self.gives_up)

    def started(self, i: Ints, request: Ints) -> None:
        """A first token in time: the user who would have given up waits for the rest."""
        if self.gives_up < self.loop.gives_up.timeout_s:
            user, until = self.user.take(request), self._gives_up_at(request)
            waits = (self.request_of[i, user] == request) & (self.s.t.take(i) < until)
            self._ask_again(i[waits], user[waits], until[waits])

    def _ask_again(self, i: Ints, user: Ints, after: Floats) -> None:
        """The user's next request comes once it has thought, from ``after`` on; never at or after the horizon."""
        cursor = self.cursor[i, user]
        left = cursor < self.stop[i, user]
        due = after + self.loop.think_s.take(np.where(left, cursor, 0), mode="clip")
        self.due[i, user] = np.where(left & (due < self.s.hz.take(i)), due, np.inf)

    def _foresee(self, i: Ints) -> None:
        """Write down the request that comes next in each lane of ``i``."""
        book, loop = self.book, self.loop
        user = self.due[i].argmin(axis=1)
        due = self.due[i, user]
        number = np.minimum(self.next.take(i), self.last.take(i))
        book.arrival[number] = due
        self._next_user[i] = user
        comes = due < np.inf
        number, asked = number[comes], self.cursor[i[comes], user[comes]]
        book.prompt[number] = loop.prompt_tokens[asked]
        book.output[number] = loop.output_tokens[asked]
        book.cached[number] = loop.cached_prefix_tokens[asked]
        book.size[number] = loop.prompt_tokens[asked] - loop.cached_prefix_tokens[asked]
        self.rank[number] = loop.rank[asked]
        self.too_long[number] = loop.too_long[asked]

    def _check(self, due: Bools, until: Floats, strict: bool) -> None:
        """One arrival, or one deadline, after the other: each may bring forth the next."""
        while True:
            arrival = self.book.arrival.take(self.next)
            expiry = self.next_expiry() if self.timed else np.full(arrival.size, np.inf)
            event = np.minimum(arrival, expiry)
            now = event < until if strict else (event <= until) & (event < np.inf)
            if not np.count_nonzero(now):
                return
            expires = now & (expiry <= arrival)
            if np.count_nonzero(expires):
                self._expire(np.where(expires, expiry, -np.inf))
            i = (now & ~expires).nonzero()[0]
            if i.size:
                self._issue(i)
            self._foresee(now.nonzero()[0])

    def _issue(self, i: Ints) -> None:
        """The request that was foreseen comes in each lane of ``i``."""
        number, user = self.next.take(i), self._next_user.take(i)
        self.user[number] = user
        self.asked[number] = self.cursor[i, user]
        self.cursor[i, user] += 1
        self.request_of[i, user] = number
        self.due[i, user] = np.inf
        arrival = self.book.arrival.take(number)
        if self.gives_up < np.inf:
            self._ask_again(i, user, arrival + self.gives_up)
        self._let_in(i, np.ones(i.size, np.int64))
        refused = self.refused.take(number).nonzero()[0]
        if refused.size:
            lane, who = i[refused], user[refused]
            self.request_of[lane, who] = -1
            self._ask_again(lane, who, arrival[refused])
            self.due[lane, who] += self.loop.backoff_s
            late = self.due[lane, who] >= self.s.hz[lane]
            self.due[lane[late], who[late]] = np.inf

    def _accepted(self, i: Ints, first: Ints, count: Ints) -> Ints:
        accepted = ~self.too_long.take(first)
        if self.limit is not None:
            accepted &= self._outstanding(i) < self.limit.take(i)
        if self.token_limit is not None:
            accepted &= self.queued.take(i) < self.token_limit.take(i)
        self.queued[i] += np.where(accepted, self.book.prompt.take(first), 0)
        return accepted.astype(np.int64)
