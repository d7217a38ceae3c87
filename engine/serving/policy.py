"""What all batching policies share: starting requests, preempting them, and saying why somebody waits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .book import Book
from .kv import OnDemand
from .lanes import Bools, Floats, Ints, Lanes
from .queue import Queue
from .spending import Spending
from .state import LaneState
from .waits import Waits
from .work import Work

MAX_NUM_SEQS, KV, TOKEN_BUDGET = np.int8(1), np.int8(2), np.int8(3)
"""Codes of ``LIMITS``."""


class Policy:
    """Chooses the work of every live lane's next step. A lane that is asked has something running or somebody
    waiting."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book, queue: Queue, kv: OnDemand) -> None:
        self.s, self.book, self.queue, self.kv = state, book, queue, kv
        self.has_pairs = bool(lanes.prefill_pair_s.any())
        self.spending = Spending(state, book) if lanes.deadlines.while_waiting < np.inf or lanes.keep_account else None
        self.waits = Waits(lanes, state, book) if lanes.keep_waits else None

    def _work(self, n: Ints) -> Work:
        return Work(n, reads=None if self.spending is None else [])

    def choose(self) -> Work:
        """The work of the next step of each lane."""
        raise TypeError(f"{type(self).__name__} chooses no work")

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""

    def prepare(self) -> None:
        """Called at every boundary before ``start_at``; a policy that may be left with nothing to do preempts here."""

    def start_at(self) -> Floats | None:
        """(lanes,): when a lane that runs nothing starts on those who wait, seconds; ``None``: at once."""
        return None

    def read_on(self, w: Work, k: Ints) -> None:
        """``k`` steps have passed: move partly prefilled requests on."""

    def joined(self, i: Ints, request: Ints) -> None:
        """The step that ``request`` joined with has ended in lanes ``i``: its prompt is read, and it has made a
        token."""
        s = self.s
        if self.spending is not None:
            self.spending.begin(i, request)
        np.add.at(s.ctx, i, self.book.prompt_done(request, s.t.take(i), i, s.lane))

    def free(self, i: Ints, request: Ints, out: Ints) -> None:
        """``request`` with ``out`` tokens made leaves each lane of ``i`` (no repeats) for good: its KV is free."""
        book = self.book
        size = book.size.take(request)
        self.s.held[i] -= size + out - 1
        self.kv.finish(i, request, size)

    def limited_by(self, w: Work) -> NDArray[np.int8]:
        """Why somebody waits in each lane after admission: a code of ``LIMITS``."""
        s = self.s
        code = np.zeros(w.n.size, np.int8)
        i = self.queue.wait.nonzero()[0]
        if i.size:
            why = np.where(self._slots_taken(i) >= s.max_seqs.take(i), MAX_NUM_SEQS, TOKEN_BUDGET)
            if self.kv.bounded:
                request, size, _ = self.queue.heads(i)
                full = ~self.kv.fits(w, i, request, size)
                if w.preempted is not None:
                    full |= w.preempted.take(i)
                why[full & (why == TOKEN_BUDGET)] = KV
                if self.kv.grows:
                    self._until_kv_limits(w, i, why, size)
            code[i] = why
        return code

    def _slots_taken(self, i: Ints) -> Ints:
        s = self.s
        return s.running.take(i) if s.partial else s.n_slot.take(i)

    def _until_kv_limits(self, w: Work, i: Ints, why: NDArray[np.int8], size: Ints) -> None:
        """Where only the budget keeps the head waiting, stop when the growing KV begins to: the reason changes then."""
        budget = why == TOKEN_BUDGET
        if np.count_nonzero(budget):
            s, c, j = self.s, w.open(), i[budget]
            limit = self.kv.limit(j) - size[budget] - s.held[j]
            c.k_max[j] = np.minimum(c.k_max[j], (limit // (w.n[j] + c.q[j])).astype(np.int64))

    def _read(self, w: Work, i: Ints, request: Ints, q: Ints) -> None:
        """Each ``request`` reads the first ``q`` of its tokens in this step; at most one a lane of ``i``."""
        c = w.open()
        if w.reads is not None:
            w.reads.append((i, request, q))
        if self.waits is not None:
            self.waits.admit(i, request)
        c.q[i] = c.q.take(i) + q
        c.count[i] = c.count.take(i) + 1
        c.k_max[i] = 1
        if self.book.has_prefix:
            cached = self.book.cached.take(request)
            c.ctx[i] += cached
            c.pairs[i] += q * cached
        if self.has_pairs:
            c.pairs[i] += q * (q + 1) >> 1

    def _join(self, w: Work, i: Ints, request: Ints, step: Ints) -> None:
        """These requests make a token at the end of this step, the lane's step number ``step``, and decode after it."""
        self.s.insert(i, request, step + self.book.remaining(request))
        w.joins.append((i, request))

    def _last_token(self, i: Ints, request: Ints) -> Floats:
        """When each decoding ``request`` of lanes ``i`` made its last token, seconds: in the step that ends now."""
        return self.s.t[i]

    def _preempt_decoding(self, w: Work, i: Ints, column: Ints) -> None:
        """The request in ``column`` of each lane of ``i`` (no repeats) loses its KV and goes back to the queue."""
        s, book = self.s, self.book
        request = s.request_in(i, column)
        out = book.output[request] - (s.key[i, column] - s.step[i])
        book.preempt(request)
        book.stop_decoding(request, out, self._last_token(i, request))
        s.held[i] -= book.size[request] + out - 1
        s.ctx[i] -= book.prompt[request] + out - 1
        if self.spending is not None:
            self.spending.stop(i, request)
        if self.waits is not None:
            self.waits.preempt(i, request)
        s.remove(i, column)
        w.n[i] -= 1
        self.queue.push_front(i, request)
