"""What keeps each request from going on: others' prompts while it writes, and preemptions. Kept only where asked for.

A step that reads prompts lasts longer for those who write in it: by its length less what it would last without any
chunk, all of it where they stand still. The lane's running sum of these seconds, taken when a request begins to write
and again when it stops, says how long others' prompts have stalled it; its own prompt is read before it begins.
"""

from __future__ import annotations

import numpy as np

from .book import Book
from .lanes import Bools, Floats, Ints, Lanes
from .state import LaneState
from .work import Work


class Waits:
    """Arrays with an entry a request, seconds; of requests that didn't complete only what had passed is meaningful."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        self.s, self.book, self.base = state, book, lanes.base
        self.admitted: Floats = np.full(book.total, np.nan)
        """Start of the last admission before the first token: what was read before it was lost by a preemption."""
        self.stalled: Floats = np.zeros(book.total)
        """By others' prompts, from the first token on."""
        self.preempted: Floats = np.zeros(book.total)
        """From losing its KV to the next token, after the first one."""
        self.sum: Floats = np.zeros(state.lane.size)
        self._began: Floats = np.zeros(book.total)  # ``sum`` when each began to write
        self._lost_at: Floats = np.full(book.total, np.nan)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.sum = self.sum[alive]

    def grow(self, more: int) -> None:
        """Room for ``more`` requests."""
        for name, fill in (("admitted", np.nan), ("stalled", 0.0), ("preempted", 0.0), ("_began", 0.0)):
            setattr(self, name, np.concatenate([getattr(self, name), np.full(more, fill)]))
        self._lost_at = np.concatenate([self._lost_at, np.full(more, np.nan)])

    def advance(self, w: Work, d: Floats, slope: Floats, k: Ints) -> None:
        """``k`` steps of d, d + slope, ... seconds pass, all (lanes,); called before anybody joins or leaves."""
        if w.chunks is None:
            return
        s, reads = self.s, w.chunks.q > 0
        i = (reads & (w.n > 0)).nonzero()[0]
        if i.size:
            n, many = w.n.take(i), k.take(i)
            alone = self.base.take(s.base_at.take(i) + n) + s.seq_s.take(i) * n + s.kv_s.take(i) * s.ctx.take(i)
            growing = slope.take(i) - s.kv_s.take(i) * n
            self.sum[i] += many * (d.take(i) - alone + 0.5 * growing * (many - 1))
        if w.stalled is not None:
            self.sum += np.where(w.stalled & reads, d * k, 0.0)

    def admit(self, i: Ints, request: Ints) -> None:
        """Each ``request`` of lanes ``i`` is admitted now."""
        fresh = np.isnan(self.book.first.take(request))
        self.admitted[request[fresh]] = self.s.t[i[fresh]]

    def begin(self, i: Ints, request: Ints) -> None:
        """Each ``request`` of lanes ``i`` has just made a token, and goes on."""
        self._began[request] = self.sum.take(i)
        lost = self._lost_at.take(request)
        back = (~np.isnan(lost)).nonzero()[0]
        if back.size:
            again = request[back]
            self.preempted[again] += self.s.t[i[back]] - lost[back]
            self._lost_at[again] = np.nan

    def stop(self, i: Ints, request: Ints) -> None:
        """Each ``request`` of lanes ``i`` makes no more tokens."""
        self.stalled[request] += self.sum.take(i) - self._began.take(request)

    def preempt(self, i: Ints, request: Ints) -> None:
        """Each writing ``request`` of lanes ``i`` has lost its KV."""
        self.stop(i, request)
        self._lost_at[request] = self.s.t.take(i)
