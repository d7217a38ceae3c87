"""The lockstep engine: every round moves every live lane on by as many steps as pass with nothing changing.

Between two changes (an arrival to a queue that was empty, a completion, a finished prompt, a full KV) the steps
differ only by contexts that grow by one token each, so their times are an arithmetic series and the clock skips over
them in closed form.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .book import Book
from .checked import CheckedQueue, is_needed
from .chunked import Chunked
from .clock import end_of, steps_to
from .closed import ClosedQueue
from .decode_only import DecodeOnly, LandedQueue
from .inbox import Inbox, PlainInbox
from .kv import KV_POLICIES
from .lanes import Floats, Ints, Lanes, Served
from .patience import Patience
from .policy import Policy
from .prefill_first import PrefillFirst
from .queue import Queue
from .sending import SendingQueue
from .state import NEVER, REBASE_EVERY, LaneState
from .static import Static
from .steplog import LogWriter, Sink
from .work import Work

POLICIES: dict[str, type[Policy]] = {
    "chunked": Chunked,
    "prefill_first": PrefillFirst,
    "static": Static,
    "decode_only": DecodeOnly,
}
"""Batching policies by their name in the scenario, and that of the second pool of ``disaggregated``."""


def make_queue(lanes: Lanes, state: LaneState, book: Book) -> Queue:
    """The simplest queue that these lanes can do with."""
    if lanes.first_s is not None:
        return LandedQueue(lanes, state, book)
    if lanes.travel_s is not None:
        return SendingQueue(lanes, state, book)
    if lanes.closed is not None:
        return ClosedQueue(lanes, state, book, lanes.closed)
    if lanes.fed is not None:
        return Inbox(lanes, state, book) if is_needed(lanes) else PlainInbox(lanes, state, book)
    return CheckedQueue(lanes, state, book) if is_needed(lanes) else Queue(lanes, state, book)


class Lockstep:
    """Runs lanes to their end. Results are flat, as in ``Lanes``, and don't depend on which lanes run together."""

    def __init__(self, lanes: Lanes, sink: Sink) -> None:
        self.s = LaneState(lanes)
        self.base = lanes.base
        self.has_pairs, self.has_seq = bool(lanes.prefill_pair_s.any()), bool(lanes.seq_s.any())
        self.book = Book(lanes)
        self.queue = self._make_queue(lanes)
        self.kv = KV_POLICIES[lanes.kv_policy](lanes, self.s, self.book)
        self.policy = self._make_policy(lanes)
        self.patience = Patience(self.s, self.book, self.queue, self.policy) if lanes.deadlines.while_running else None
        # Lanes that stop now and then have nothing to do in a round; and so has one that finds that everybody whose
        # turn it was has been dropped.
        self.may_be_idle = lanes.fed is not None or lanes.codel is not None
        self.log = LogWriter(sink, empty=self.may_be_idle)
        self.round = 0

    def _make_queue(self, lanes: Lanes) -> Queue:
        return make_queue(lanes, self.s, self.book)

    def _make_policy(self, lanes: Lanes) -> Policy:
        return POLICIES[lanes.policy](lanes, self.s, self.book, self.queue, self.kv)

    def run(self) -> Served:
        """Advance every lane to its end."""
        self._rounds()
        return self._served()

    def _rounds(self) -> None:
        """One round after the other while there is a lane that can go on."""
        while self._wake():
            self.round += 1
            if self.round % REBASE_EVERY == 0:
                self.s.rebase()
            work = self.policy.choose()
            self._advance(work, self.policy.limited_by(work))

    def _served(self) -> Served:
        self.log.flush()
        queue = self.queue
        refused = queue.refused if isinstance(queue, CheckedQueue) else np.empty(0, np.int8)
        asked = queue.asked if isinstance(queue, ClosedQueue) else np.empty(0, np.int64)
        return self.book.served(refused, asked, self.policy.spending, self.policy.waits)

    def _wake(self) -> bool:
        """Look at the queues; idle lanes go to their next arrival; ended lanes are dropped. False when none is left."""
        s, queue = self.s, self.queue
        while s.lane.size:
            queue.look()
            idle = (s.n_slot == 0) & ~queue.wait
            if s.partial:
                idle &= s.part < 0
            if np.count_nonzero(idle):
                s.t = np.where(idle, queue.ta, s.t)
                queue.look()
                if np.count_nonzero(idle & ~queue.wait & (s.t < s.hz)):
                    continue  # that arrival was refused
            self.policy.prepare()
            if self._hold_back():
                continue
            alive = s.t < s.hz
            if np.count_nonzero(alive) == alive.size:
                return True
            for watcher in (self.policy.spending, self.policy.waits, self.patience):
                if watcher is not None:
                    watcher.keep(alive)
            for part in (self.policy, queue, self.kv, s):
                part.keep(alive)
        return False

    def _hold_back(self) -> bool:
        """Move lanes that don't start on their queue yet to when something happens there. False when there are none."""
        s, queue = self.s, self.queue
        start = self.policy.start_at()
        if start is None:
            return False
        early = (s.n_slot == 0) & queue.wait & (s.t < np.minimum(start, s.hz))
        assert isinstance(queue, CheckedQueue)
        s.t = np.where(early, np.minimum(start, queue.next_event()), s.t)
        return bool(np.count_nonzero(early))

    def _advance(self, w: Work, limit: NDArray[np.int8]) -> None:
        """Skip over the steps that this choice lasts, then deliver tokens."""
        s, queue = self.s, self.queue
        tokens, worked, ctx = w.tokens, w.n, s.ctx
        if w.chunks is not None:
            worked, ctx = w.n + w.chunks.count, s.ctx + w.chunks.ctx
            if w.stalled is not None:
                ctx = np.where(w.stalled, w.chunks.ctx, ctx)
        d = self.base.take(s.base_at + tokens)
        if self.has_seq:
            d += s.seq_s * worked
        d += s.kv_s * ctx
        slope = s.kv_s * tokens
        k = s.next_key - s.step
        if w.chunks is not None:
            if self.has_pairs:
                d += s.pair_s * w.chunks.pairs
                slope += s.pair_s * (w.chunks.q * w.chunks.q)
            np.minimum(k, w.chunks.k_max, out=k)
        if w.stalled is not None:
            k[w.stalled] = 1
        self.kv.steps_left(w, tokens, k)
        if self.may_be_idle:
            k *= tokens > 0
        t1 = end_of(s.t, d, slope, k)
        change = self._next_change()
        i = ((t1 > change) & (k > 1)).nonzero()[0]
        if i.size:
            t, di, si = s.t.take(i), d.take(i), slope.take(i)
            k[i], t1[i] = steps_to(t, di, si, k.take(i), change.take(i))
        i = (t1 > s.hz).nonzero()[0]
        if i.size:
            self._cut(w, i[k.take(i) > 0], d, slope, k, t1)
        decoding = w.n if w.gaps is None else w.gaps
        more = () if w.standing is None else (w.standing,)
        self.log.add(s.lane, s.t, d, slope, k, decoding, worked, tokens, s.held, limit, *more)
        if isinstance(queue, CheckedQueue) and queue.shedding is not None:
            queue.shedding.watch(w, limit, s.t, d, slope, k)
        if self.policy.waits is not None:
            self.policy.waits.advance(w, d, slope, k)
        queue.arrive(t1)
        self._deliver(w, t1, k, tokens)

    def _next_change(self) -> Floats:
        """(lanes,): when something may happen that a step boundary has to be found for, seconds."""
        change = self.queue.next_change()
        return change if self.patience is None else np.minimum(change, self.patience.next_deadline())

    def _cut(self, w: Work, i: Ints, d: Floats, slope: Floats, k: Ints, t1: Floats) -> None:
        """Stop lanes ``i`` at their horizon: after the last step that ends in time, or inside the step that doesn't."""
        s = self.s
        whole, end = steps_to(s.t[i], d[i], slope[i], k[i], s.hz[i])
        whole -= end > s.hz[i]
        k[i] = np.maximum(whole, 1)
        t1[i] = end_of(s.t[i], d[i], slope[i], k[i])
        inside = i[whole == 0]
        if inside.size:  # the step started, but its end never happens
            alive = np.ones(k.size, np.bool_)
            alive[inside] = False
            w.joins = [(lanes[alive[lanes]], request[alive[lanes]]) for lanes, request in w.joins]
            s.next_key[inside] = NEVER

    def _deliver(self, w: Work, t1: Floats, k: Ints, tokens: Ints) -> None:
        """``k`` steps have passed and it is ``t1``: contexts have grown, prompts and answers are finished."""
        s, spending, waits = self.s, self.policy.spending, self.policy.waits
        if spending is not None:
            spending.advance(w, t1 - s.t, tokens, k, t1)
        s.t = t1
        s.held = s.held + k * tokens
        s.ctx = s.ctx + k * w.n
        s.step = s.step + (k if w.stalled is None else np.where(w.stalled, 0, k))
        self.policy.read_on(w, k)
        if w.joins:
            joined, request = w.joins[0]
            if len(w.joins) > 1:
                joined, request = (np.concatenate(column) for column in zip(*w.joins, strict=True))
            if waits is not None:
                waits.begin(joined, request)
            self.policy.joined(joined, request)
            self.queue.started(joined, request)
        i = (s.next_key <= s.step).nonzero()[0]
        while i.size:
            i = self._complete(i)
        if self.patience is not None:
            if w.joins:
                self.patience.watch(joined, request)
                self.patience.drop_unstarted(joined, request)
            self.patience.drop_late()

    def _complete(self, i: Ints) -> Ints:
        """Let one request that made its last token go from each lane of ``i``; returns the lanes that have another."""
        s, book = self.s, self.book
        column = s.next_col.take(i)
        request = s.request_in(i, column)
        now = s.t.take(i)
        book.complete(request, now)
        if s.active is not None:
            s.gone[i] += 1
        self.queue.ended(i, request, now)
        output = book.output.take(request)
        s.ctx[i] -= book.prompt.take(request) + output - 1
        if self.policy.spending is not None:
            self.policy.spending.stop(i, request)
        if self.policy.waits is not None:
            self.policy.waits.stop(i, request)
        self.policy.free(i, request, output)
        s.remove(i, column)
        return i[s.next_key.take(i) <= s.step.take(i)]
