"""The policy ``static``: one group at a time.

With no active group, the group is the longest part of the queue, from its head and at most ``max_num_seqs``, that
fits. It starts at once when it can't grow any more (it is full, or the next in the queue doesn't fit), else
``batch_wait_s`` after its earliest arrival. All prompts are read in one step, then everybody decodes and nobody
joins. Who has finished leaves, but its slot and its KV stay taken until the group ends.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .checked import CheckedQueue
from .kv import OnDemand
from .lanes import Bools, Floats, Ints, Lanes
from .policy import Policy
from .queue import Queue
from .state import LaneState
from .work import Work


class Static(Policy):
    """Groups; a lane's group has ended when none of its members is unfinished."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book, queue: Queue, kv: OnDemand) -> None:
        super().__init__(lanes, state, book, queue, kv)
        assert isinstance(queue, CheckedQueue), "is_needed says so"
        self.queue: CheckedQueue = queue
        self.batch_wait_s = lanes.batch_wait_s
        self.members: Ints = np.zeros(lanes.count, np.int64)  # slots taken, finished members included
        self.preempted: Bools = np.zeros(lanes.count, np.bool_)  # somebody was, before the next step

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.members, self.preempted = self.members[alive], self.preempted[alive]

    def free(self, i: Ints, request: Ints, out: Ints) -> None:
        """Nothing is free before the group ends."""

    def prepare(self) -> None:
        """Preempt unfinished members, last admitted first, until the others can make a token; without any the group
        ends."""
        s = self.s
        self._end_groups()
        i = self._overflowing()
        while i.size:
            w = Work(s.n_slot.copy())
            self._preempt_decoding(w, i, self.book.last_admitted(s.rid[i]).argmax(axis=1))
            self.members[i] -= 1
            self.preempted[i] = True
            self._end_groups()
            i = self._overflowing()

    def _overflowing(self) -> Ints:
        """Lanes in which a step is due that doesn't fit; none starts at the horizon."""
        i = self.kv.overflowing(Work(self.s.decoding()))
        return i[self.s.t[i] < self.s.hz[i]]

    def start_at(self) -> Floats | None:
        """(lanes,): when the group that could be formed now starts, seconds."""
        start = np.full(self.members.size, -np.inf)
        i = ((self.s.n_slot == 0) & self.queue.wait).nonzero()[0]
        if i.size:
            _, earliest, complete = self._form(i)
            start[i] = np.where(complete, -np.inf, earliest + self.batch_wait_s)
        return start

    def choose(self) -> Work:
        """The work of the next step of each lane."""
        w = self._work(self.s.decoding())
        if np.count_nonzero(self.preempted):
            w.preempted = self.preempted & (w.n > 0)
            w.open().k_max[w.preempted] = 1
            active = self.s.active
            self.preempted = np.zeros(w.n.size, np.bool_) if active is None else self.preempted & ~active
        self._start_groups(w)
        return w

    def _end_groups(self) -> None:
        s = self.s
        i = (s.n_slot == 0).nonzero()[0]
        s.held[i] = 0
        self.members[i] = 0
        self.kv.release_all(i)

    def _form(self, i: Ints) -> tuple[Ints, Floats, Bools]:
        """Of the group that the queue of each lane of ``i`` offers now: members, earliest arrival, and if it can't
        grow."""
        s, book = self.s, self.book
        count, used = np.zeros(i.size, np.int64), np.zeros(i.size, np.int64)
        earliest, complete = np.full(i.size, np.inf), np.zeros(i.size, np.bool_)
        open_ = np.arange(i.size)
        place = 0
        while open_.size:
            full = count[open_] >= s.max_seqs.take(i[open_])
            complete[open_[full]] = True
            open_ = open_[~full]
            request = self.queue.peek(i[open_], place)
            there = request >= 0
            open_, request = open_[there], request[there]
            used[open_] += self.kv.need(request, book.prefill(request))
            limit = self.kv.limit(i[open_]) if place else s.cap.take(i[open_])
            fits = used[open_] <= limit
            complete[open_[~fits]] = True
            open_, request = open_[fits], request[fits]
            earliest[open_] = np.minimum(earliest[open_], book.arrival[request])
            count[open_] += 1
            place += 1
        return count, earliest, complete

    def _start_groups(self, w: Work) -> None:
        s, queue = self.s, self.queue
        i = ((w.n == 0) & queue.wait).nonzero()[0]
        if not i.size:
            return
        count, _, _ = self._form(i)
        while i.size:
            request, size, again = queue.heads(i)
            queue.pop(i, request, again)
            self.kv.start(i, request, size)
            self._read(w, i, request, size)
            self._join(w, i, request, s.step.take(i))
            self.members[i] += 1
            count -= 1
            i, count = i[count > 0], count[count > 0]

    def _slots_taken(self, i: Ints) -> Ints:
        return self.members.take(i)
