"""The engine of pipelines: every round moves each live replica on to the next thing that happens in it.

A replica with p stages of equal work is p lanes with one queue and one KV memory. A lane's step is a pass through all
stages: alone it takes D, D/p in each. A stage works on one batch at a time, in the order in which they entered, so a
step starts no sooner than D'/p after the start of the step before it, which lasts D', and ends no sooner than D/p
after that one's end. (The second half is what keeps a short step from overtaking a long one in the stages: of batches
that take the same time in every stage, those in between never delay it more.)

What vLLM's scheduler leaves open, because its batches have no lanes, is decided like this:

* Who waits is admitted by the lane whose step starts, and stays with it until it leaves or is preempted. Of several
  lanes that could start, the one goes first that has been without a step the longest. So newcomers go to an empty lane
  where there is one, as vLLM schedules them at once, in a batch of their own, while other batches are under way.
* A lane holds at most ceil(max_num_seqs / p) requests; the token budget is each step's.
* KV is taken when a step starts, as vLLM allocates it: tokens of steps under way count as held.
* Victims of preemption are requests of the lane whose step starts: the others are being worked on. A lane that loses
  all of them makes no step, and may start anew at that instant like an empty one.
* Running requests whose deadline has passed leave when their lane's step ends, at once where it has none.

Cycles in which nothing changes are skipped over (``cycles``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..lanes import Bools, Floats, Ints, Lanes
from ..lockstep import Lockstep
from ..policy import Policy
from ..queue import Queue
from ..steplog import Sink
from ..work import Work
from .cycles import plan, skip, skip_others
from .plain import go_on
from .shared import ChunkedInTurns, SharedQueue
from .shelf import Shelf

_END, _LATE, _START, _OVER = range(4)
"""What happens next in a replica; of what falls on one instant, in this order."""


class Pipelined(Lockstep):
    """Runs pipelines to their end; ``Lanes.stages`` says how many lanes take turns in each."""

    queue: SharedQueue

    def __init__(self, lanes: Lanes, sink: Sink) -> None:
        super().__init__(lanes, sink)
        s, self.stages = self.s, lanes.stages
        s.active, s.elsewhere = np.zeros(lanes.count, np.bool_), np.zeros(lanes.count, np.int64)
        s.gone = np.zeros(lanes.count, np.int64)
        self.until_scheduled = lanes.until_scheduled
        self.most = lanes.max_num_seqs
        self.seats = -(-self.most // self.stages)
        """(replicas,): of a lane."""
        self.shelf = self.chunked.shelf = Shelf(s, lanes.stages, self.patience, self.policy.spending)
        self.gate: Floats = np.full(lanes.count, -np.inf)
        """When the first stage is free, seconds."""
        self.last_end: Floats = np.full(lanes.count, -np.inf)
        """When the step that started last ends, seconds."""
        self.blocked: Bools = np.zeros(lanes.count, np.bool_)
        """Where the head of the queue has found no room in an empty lane, and nothing has changed since."""
        self.book.stall_gap = np.zeros(self.book.total)

    def _make_queue(self, lanes: Lanes) -> Queue:
        return SharedQueue(lanes, self.s, self.book)

    def _make_policy(self, lanes: Lanes) -> Policy:
        self.chunked = ChunkedInTurns(lanes, self.s, self.book, self.queue, self.kv)
        return self.chunked

    def _rounds(self) -> None:
        """In every round each replica ends the step that ends next, unless one starts before; then one may start."""
        while self.s.lane.size:
            go_on(self)
            what, at, may = self._next()
            over = what == _OVER
            if np.count_nonzero(over):
                self._finish(over)
                continue
            i = (what < _START).nonzero()[0]
            if i.size:
                self._go_to(i, at)
                self._end(i, what[i] == _END)
                what, at, may = self._next()
            i = (what == _START).nonzero()[0]
            if i.size:
                self._go_to(i, at)
                self._start(i, np.where(may[i], self.shelf.since[i], np.inf).argmin(axis=1))

    def _next(self) -> tuple[NDArray[np.int8], Floats, Bools]:
        """(replicas,) each: what happens next, and when, seconds; (replicas, stages): lanes that may start then."""
        s, shelf = self.s, self.shelf
        change = self.queue.next_change()
        turn = np.where(self.queue.wait & ~self.blocked, s.t, change)  # of the queue's head in an empty lane
        still, busy = shelf.end == np.inf, shelf.running > 0
        ready, idle = still & busy, still > busy
        start = np.where(idle.any(axis=1), np.maximum(self.gate, turn), np.inf)
        start = np.maximum(np.where(ready.any(axis=1), self.gate, start), s.t)
        end = shelf.end.min(axis=1)
        what = np.where(end <= start, _END, _START)
        at = np.minimum(end, start)
        if self.patience is not None:
            late = shelf.due.min(axis=1)
            what[(late < end) & (late <= start)] = _LATE
            at = np.minimum(late, at)
        beyond = at >= s.hz
        if np.count_nonzero(beyond):
            what[beyond & ((what == _START) | (at > s.hz) | (at == np.inf))] = _OVER
        if self.until_scheduled:
            what[~self.queue.wait & (self.queue.ta == np.inf)] = _OVER
        return what, at, ready | (idle & (turn <= start)[:, None])

    def _go_to(self, i: Ints, at: Floats) -> None:
        """Replicas ``i`` are where their time is ``at`` (replicas,), seconds."""
        t = self.s.t.copy()
        t[i] = at[i]
        self.queue.arrive(t)
        self.s.t = t

    def _finish(self, over: Bools) -> None:
        """These replicas have come to their horizon, or to the end of their work."""
        s = self.s
        i = over.nonzero()[0]
        self.shelf.clear()
        s.t = np.where(over, np.inf, s.t)
        s.active = over
        self.queue.look()
        spending = self.policy.spending
        if spending is not None:
            for lane in range(self.stages):
                self.shelf.lay(i, np.full(i.size, lane))
                spending.close(i)
            self.shelf.clear()
        alive = ~over
        for watcher in (spending, self.patience):
            if watcher is not None:
                watcher.keep(alive)
        for part in (self.policy, self.queue, self.kv, s, self.shelf):
            part.keep(alive)
        assert s.elsewhere is not None
        s.active, s.gone, s.elsewhere = s.active[alive], s.gone[alive], s.elsewhere[alive]
        self.most, self.seats, self.blocked = self.most[alive], self.seats[alive], self.blocked[alive]
        self.gate, self.last_end = self.gate[alive], self.last_end[alive]

    # -- a step ends -----------------------------------------------------------------------------------------------

    def _end(self, i: Ints, ends: Bools) -> None:
        """Something happens in a lane of each replica of ``i``: its step ``ends`` (replicas of i,), or a deadline
        passes there while it has none."""
        shelf = self.shelf
        lane = shelf.end[i].argmin(axis=1)
        if self.patience is not None:
            lane = np.where(ends, lane, shelf.due[i].argmin(axis=1))
        shelf.lay(i, lane)
        j, at = i[ends], lane[ends]
        if j.size:
            self._deliver_lanes(j, at)
        if self.patience is not None:
            self.patience.drop_late()
        shelf.end[j, at] = np.inf
        shelf.since[j, at] = self.s.t[j]
        shelf.settle(i, lane)
        self.blocked[i] = False

    def _deliver_lanes(self, i: Ints, lane: Ints) -> None:
        """The steps of these lanes end: tokens are delivered, prompts and answers are finished."""
        s, shelf, spending = self.s, self.shelf, self.policy.spending
        size = shelf.joined[i, lane]
        self.note_gaps(s.rid[i], s.n_slot[i] - size, s.t[i] - shelf.since[i, lane])
        row = np.repeat(i, size)
        if row.size:
            nth = np.arange(row.size) - np.repeat(np.cumsum(size) - size, size)
            request = s.request_in(row, np.repeat(s.n_slot[i] - size, size) + nth)
            if spending is not None:
                spending.begin(row, request)
            np.add.at(s.ctx, row, self.book.prompt_done(request, s.t.take(row), row, s.lane))
        done = i[s.next_key.take(i) <= s.step.take(i)]
        while done.size:
            done = self._complete(done)
        if self.patience is not None and row.size:
            self.patience.watch(row, request)
            self.patience.drop_unstarted(row, request)

    def note_gaps(self, rid: NDArray[np.int32], n: Ints, gap: Floats) -> None:
        """The first ``n`` requests in each row of slots have had a gap of so many seconds between two tokens."""
        row, column = (np.arange(rid.shape[1]) < n[:, None]).nonzero()
        request = rid[row, column]
        self.book.stall_gap[request] = np.maximum(self.book.stall_gap[request], gap[row])

    # -- a step starts ---------------------------------------------------------------------------------------------

    def _start(self, i: Ints, lane: Ints) -> None:
        """Lanes whose turn it is choose their work and start, if there is any."""
        s, shelf = self.s, self.shelf
        assert s.elsewhere is not None
        shelf.lay(i, lane)
        before, held = shelf.running[i, lane], shelf.held[i, lane]
        s.active = np.zeros(s.lane.size, np.bool_)
        s.active[i] = True
        s.max_seqs = np.minimum(self.seats, self.most - s.elsewhere)
        self.queue.look()
        work = self.policy.choose()
        limit = self.policy.limited_by(work)
        begun = work.tokens[i] > 0
        # An empty lane waits for a change; one that has just lost all its requests is empty now, and may start anew.
        self.blocked[i] = ~begun & (before == 0)
        held += shelf.gained(i)
        d = self.duration(work)
        cycles = plan(self, work, i, lane, begun, d, limit)
        passes = begun.copy()
        if cycles is not None:
            skip(self, work, cycles)
            passes[cycles.nth] = False
        j = passes.nonzero()[0]
        if j.size:
            self._pass(work, i[j], lane[j], before[j], held[j], d, limit)
        shelf.settle(i, lane)
        shelf.due[i[j], lane[j]] = np.inf
        if cycles is not None:
            skip_others(self, cycles)

    def _pass(
        self, w: Work, i: Ints, lane: Ints, before: Ints, held: Ints, alone_s: Floats, limit: NDArray[np.int8]
    ) -> None:
        """Send ``lane`` of each replica of ``i`` into the first stage, which takes ``alone_s`` (replicas,) seconds to
        the last. It had ``before`` requests when it last had a step, and holds ``held`` tokens of KV."""
        s, shelf = self.s, self.shelf
        d = alone_s[i]
        share, t = d / self.stages, s.t[i]
        end = np.maximum(t + d, self.last_end[i] + share)
        t0, gap_before = self._log_from(t, shelf.since[i, lane], w.n[i], before, s.running[i], s.lane[i], held)
        end = t0 + (end - t0)  # as the log's reader adds up
        tokens = w.tokens[i]
        self._log(s.lane[i], t0, end - t0, w, i, held, limit[i], gap_before, d / (end - t0))
        joined = np.zeros(s.lane.size, np.int64)
        for row, _ in w.joins:
            joined[row] += 1
        self._account(w, i, d, end)
        s.held[i] += tokens
        s.ctx[i] += w.n[i]
        s.step[i] += 1
        one = np.zeros(s.lane.size, np.int64)
        one[i] = 1
        self.policy.read_on(w, one)
        shelf.joined[i, lane], shelf.end[i, lane], shelf.work_s[i, lane] = joined[i], end, d
        self.gate[i], self.last_end[i] = t + share, end

    def _account(self, w: Work, i: Ints, d: Floats, end: Floats) -> None:
        """Charge the steps of replicas ``i`` to their requests, where somebody keeps account."""
        if self.policy.spending is None:
            return
        seconds, until = np.zeros((2, self.s.lane.size))
        one = np.zeros(self.s.lane.size, np.int64)
        seconds[i], until[i], one[i] = d, end, 1
        self.policy.spending.advance(w, seconds, w.tokens, one, until)

    def duration(self, w: Work) -> Floats:
        """(replicas,): seconds of the steps chosen on the bench, with nobody in the way."""
        s = self.s
        worked, ctx = w.n, s.ctx
        if w.chunks is not None:
            worked, ctx = w.n + w.chunks.count, s.ctx + w.chunks.ctx
        d = self.base.take(s.base_at + w.tokens)
        if self.has_seq:
            d += s.seq_s * worked
        d += s.kv_s * ctx
        if w.chunks is not None and self.has_pairs:
            d += s.pair_s * w.chunks.pairs
        return d

    # -- the log ---------------------------------------------------------------------------------------------------

    def _log_from(
        self, t: Floats, last: Floats, n: Ints, before: Ints, running: Ints, row: NDArray[np.int32], held: Ints
    ) -> tuple[Floats, Floats]:
        """Where the log's entry of a step that starts at ``t`` begins, and by how much its gaps are longer.

        At the lane's last token; where somebody joins, at the step's start, and what lies before has its own entry.
        """
        apart = (before > 0) & (running > before) & (t > last)
        j = apart.nonzero()[0]
        if j.size:
            none, ones = np.zeros(j.size, np.int64), np.ones(j.size, np.int64)
            span = (t - last)[j]
            self.log.add(
                row[j], last[j], span, none, ones, none, before[j], none, held[j], none, none, none, np.zeros(j.size)
            )
        return np.where(apart | (before == 0), t, last), np.where(apart & (n > 0), t - last, 0.0)

    def _log(
        self, row: NDArray[np.int32], t0: Floats, d: Floats, w: Work, i: Ints, held: Ints, limit: NDArray[np.int8],
        before: Floats, share: Floats,
    ) -> None:  # fmt: skip
        n = w.n[i]
        worked = n if w.chunks is None else n + w.chunks.count[i]
        none, ones = np.zeros(i.size, np.int64), np.ones(i.size, np.int64)
        self.log.add(row, t0, d, none, ones, n, worked, w.tokens[i], held, limit, none, before, share)
