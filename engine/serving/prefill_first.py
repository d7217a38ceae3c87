"""The policy ``prefill_first``: prompts before everything else, and while they are read nobody writes.

If the head of the queue can be admitted, the step reads whole prompts only, in order, while their sum stays within
the token budget (a longer prompt only alone); decoding requests stand still and need no KV. Otherwise the step
decodes only.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .kv import OnDemand
from .lanes import Bools, Floats, Ints, Lanes
from .policy import Policy
from .queue import Queue
from .state import LaneState
from .work import Work


class PrefillFirst(Policy):
    """Whole prompts first. The first step that decodes after a stall stands alone: its gaps differ from request to
    request."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book, queue: Queue, kv: OnDemand) -> None:
        super().__init__(lanes, state, book, queue, kv)
        book.since = np.full(book.total, np.nan)
        self.decoded: Floats = np.zeros(lanes.count)  # end of the lane's last step that decoded
        self.stalling: Bools = np.zeros(lanes.count, np.bool_)  # somebody stands still since then

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.decoded, self.stalling = self.decoded[alive], self.stalling[alive]

    def choose(self) -> Work:
        """The work of the next step of each lane."""
        s = self.s
        decoding = s.decoding()
        w = self._work(np.zeros(decoding.size, np.int64))
        self._admit(w)
        if w.chunks is None:
            w.n = decoding
        else:
            w.stalled = w.chunks.count > 0
            w.n = np.where(w.stalled, 0, decoding)
        w.standing = decoding - w.n
        i = self.kv.overflowing(w)
        if i.size:
            self._preempt(w, i)
        after = self.stalling & (w.n > 0)
        if np.count_nonzero(after):
            w.open().k_max[after] = 1
            w.gaps = np.where(after, 0, w.n)
        return w

    def read_on(self, w: Work, k: Ints) -> None:
        """A step has passed: note who stood still, and the gaps of those who go on."""
        s = self.s
        decoded = w.n > 0
        i = (self.stalling & decoded & (s.t <= s.hz)).nonzero()[0]
        if i.size:
            row, column = (s.rid[i] >= 0).nonzero()
            lane = i[row]
            request = s.rid[lane, column].astype(np.int64)
            self.book.end_stall(request, self.decoded[lane], s.t[lane], s.lane[lane])
        self.decoded = np.where(decoded, s.t, self.decoded)
        stalled = np.zeros(decoded.size, np.bool_) if w.stalled is None else w.stalled
        self.stalling = np.where(decoded, False, self.stalling | stalled)

    def _last_token(self, i: Ints, request: Ints) -> Floats:
        assert self.book.since is not None
        return np.maximum(self.book.since[request], self.decoded[i])

    def _admit(self, w: Work) -> None:
        s, queue = self.s, self.queue
        running = s.running
        i = (queue.wait & (running < s.max_seqs)).nonzero()[0]
        while i.size:
            request, size, again = queue.heads(i)
            may = np.ones(i.size, np.bool_)
            if self.kv.bounded:
                may &= self.kv.fits(w, i, request, size)
            if w.chunks is not None:
                may &= (w.chunks.count.take(i) == 0) | (w.chunks.q.take(i) + size <= s.budget.take(i))
            i, request, size = i[may], request[may], size[may]
            again = None if again is None else again[may]
            if not i.size:
                return
            dropped = queue.drop(i, request, again)
            if dropped is not None:
                gone, stays = i[dropped], ~dropped
                i, request, size = i[stays], request[stays], size[stays]
                again = None if again is None else again[stays]
            queue.pop(i, request, again)
            self.kv.start(i, request, size)
            self._read(w, i, request, size)
            self._join(w, i, request, s.step.take(i) - 1)  # no step number passes while they read
            seqs = running.take(i) + 1
            running[i] = seqs
            i = i[(seqs < s.max_seqs.take(i)) & queue.wait.take(i)]
            if dropped is not None:
                i = np.sort(np.concatenate([i, gone[queue.wait.take(gone)]]))

    def _preempt(self, w: Work, i: Ints) -> None:
        """Free KV in lanes ``i``, last admitted first, until everybody who decodes can make a token."""
        s = self.s
        w.preempted = np.zeros(w.n.size, np.bool_)
        w.preempted[i] = True
        w.open().k_max[i] = 1
        while i.size:
            self._preempt_decoding(w, i, self.book.last_admitted(s.rid[i]).argmax(axis=1))
            i = i[s.held[i] + w.n[i] > s.cap[i]]
