"""The lockstep replica: every round moves every live lane on by as many steps as pass with nothing changing.

The rules are those of continuous batching with chunked prefill (vLLM's V1 scheduler): a step gives each decoding request
one token, continues the partly prefilled request with what is left of the token budget, then admits waiting requests in
order while budget, ``max_num_seqs`` and KV allow. Between two changes (an arrival to a queue that was empty, a completion,
a finished prompt, a full KV) the steps differ only by contexts that grow by one token each, so their times are an
arithmetic series and the clock skips over them in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .door import Door
from .lanes import UNLIMITED, Floats, Ints, Lanes, Served
from .state import NEVER, LaneState
from .steplog import LogWriter, Sink

Bools = NDArray[np.bool_]
_MANY = 2**40


@dataclass(slots=True)
class Work:
    """What one round's steps do, an entry a live lane; the chunk arrays are ``None`` when no lane reads a prompt."""

    n: Ints
    """Decoding requests, one token each."""
    q: Ints | None = None
    """Prompt tokens in chunks."""
    chunks: Ints | None = None
    """Requests that those chunks belong to."""
    chunk_ctx: Ints | None = None
    """Sum of the contexts before the chunks."""
    pairs: Ints | None = None
    """A of the step-time formula."""
    k_max: Ints | None = None
    """Most steps that this choice can last."""
    preempted: Bools | None = None
    going: Ints | None = None
    """Lanes whose partly prefilled request reads on without finishing, by ``q`` tokens a step."""
    joins: list[tuple[Ints, Ints]] = field(default_factory=list)
    """(lanes, requests) whose prompt is finished by this step; no lane twice in one pair."""

    def open_chunks(self) -> None:
        """Allocate the chunk arrays, once a round."""
        if self.q is None:
            self.q, self.chunks, self.chunk_ctx, self.pairs = np.zeros((4, self.n.size), np.int64)
            self.k_max = np.full(self.n.size, _MANY, np.int64)


class Lockstep:
    """Runs lanes to their end. Results are flat, as in ``Lanes``, and don't depend on which lanes run together."""

    def __init__(self, lanes: Lanes, sink: Sink) -> None:
        self.s = LaneState(lanes)
        self.arrival, self.base = lanes.arrival_s, lanes.base
        self.prompt, self.output, self.cached = lanes.prompt_tokens, lanes.output_tokens, lanes.cached_prefix_tokens
        self.has_prefix = bool(self.cached.any())
        # S of the fit tests, before any preemption
        self.size = self.prompt - self.cached if self.has_prefix else self.prompt
        self.has_pairs = bool(lanes.prefill_pair_s.any())
        self.has_seq = bool(lanes.seq_s.any())
        self.bounded = bool(lanes.kv_capacity_tokens.min(initial=UNLIMITED) < UNLIMITED)
        self.reserve = lanes.kv_policy == "reserve"
        self.may_preempt = self.bounded and not self.reserve
        total = self.arrival.size
        self.scheduled, self.first, self.finish = np.full((3, total), np.nan)
        self.refused = np.zeros(total if lanes.max_outstanding is not None else 0, np.bool_)
        self.preemptions = np.zeros(0, np.int32)
        # Allocated by the first preemption: tokens out then, when the last of them came, the gap until the next.
        self.out: Ints | None = None
        self.last_token = self.stall_gap = np.zeros(0)
        self.stalls: list[tuple[Floats, Floats, NDArray[np.int32]]] = []  # gap, its end, lane
        self.waiting_again = 0  # preempted requests in all lanes
        self.partial = 0  # partly prefilled requests in all lanes
        self.log = LogWriter(sink)
        self.lanes_end = lanes.start[1:] - 1  # each lane's sentinel
        self.door = Door(self, lanes.max_outstanding) if lanes.max_outstanding is not None else None

    def run(self) -> Served:
        """Advance every lane to its end."""
        while self._wake():
            work = Work(self.s.n_slot.copy())
            if self.partial:
                self._continue_partial(work, (self.s.part >= 0).nonzero()[0])
            if self.may_preempt:
                self._preempt(work)
            if self.partial:
                self._settle_partial(work)
            self._admit(work)
            self._advance(work, self._limited_by(work))
        self.log.flush()
        none = (np.empty(0), np.empty(0), np.empty(0, np.int32))
        gap, gap_end, gap_lane = (np.concatenate(column) for column in zip(*self.stalls or [none], strict=True))
        return Served(
            self.scheduled, self.first, self.finish, self.refused, self.preemptions, self.last_token, self.stall_gap,
            gap, gap_end, gap_lane,
        )  # fmt: skip

    # -- the instant between two steps ---------------------------------------------------------------------------------

    def _wake(self) -> bool:
        """Look at the queues; idle lanes go to their next arrival; ended lanes are dropped. False when none is left."""
        s = self.s
        while s.lane.size:
            self._look()
            idle = (s.n_slot == 0) & ~s.wait
            if self.partial:
                idle &= s.part < 0
            if np.count_nonzero(idle):
                s.t = np.where(idle, s.ta, s.t)
                self._look()
            ended = s.t >= s.hz
            if not np.count_nonzero(ended):
                return True
            self._drop(ended)
        return False

    def _look(self) -> None:
        """Refresh when each lane's next arrival comes and whether anybody waits."""
        s = self.s
        if self.door is None:
            s.ta = self.arrival.take(s.head)
            s.wait = s.ta <= s.t
        else:
            self.door.look()
        if self.waiting_again:
            s.wait |= s.n_back > 0

    def _drop(self, ended: Bools) -> None:
        s = self.s
        self.partial -= int((s.part[ended] >= 0).sum())
        self.waiting_again -= int(s.n_back[ended].sum())
        s.keep(~ended)

    # -- choosing the work of the next step ----------------------------------------------------------------------------

    def _continue_partial(self, w: Work, i: Ints) -> None:
        """Give the partly prefilled request of each lane of ``i`` what the decoding requests leave of the budget."""
        s = self.s
        w.open_chunks()
        assert w.q is not None and w.chunks is not None and w.chunk_ctx is not None and w.pairs is not None
        assert w.k_max is not None
        left, ctx = s.part_left[i], s.part_ctx[i]
        q = np.minimum(left, s.budget[i] - w.n[i])
        w.q[i] = q
        w.chunks[i] = 1
        w.chunk_ctx[i] = ctx
        w.pairs[i] = q * ctx + (q * (q + 1) >> 1)
        w.k_max[i] = np.maximum((left - 1) // q, 1)  # whole chunks before the one that finishes the prompt

    def _settle_partial(self, w: Work) -> None:
        """Requests whose last chunk this is will decode from the next step on; the others go on reading."""
        s = self.s
        i = (s.part >= 0).nonzero()[0]
        if not i.size:
            return
        assert w.q is not None
        last = s.part_left[i] == w.q[i]
        if np.count_nonzero(last):
            j = i[last]
            self._join(w, j, s.part[j])
            s.part[j] = -1
            self.partial -= j.size
        w.going = i[~last]

    def _preempt(self, w: Work) -> None:
        """Free KV, last admitted first, in the lanes where the step's tokens don't fit.

        First come, first served with nobody skipped makes "admitted last" the highest request index.
        """
        s = self.s
        i = (s.held + (w.n if w.q is None else w.n + w.q) > s.cap).nonzero()[0]
        if not i.size:
            return
        if self.out is None:
            total = self.arrival.size
            self.out, self.preemptions = np.zeros(total, np.int64), np.zeros(total, np.int32)
            self.last_token, self.stall_gap = np.zeros((2, total))
        w.open_chunks()
        assert w.q is not None and w.k_max is not None
        w.preempted = np.zeros(w.n.size, np.bool_)
        w.preempted[i] = True
        while i.size:
            column = s.rid[i].argmax(axis=1)
            from_part = s.part[i] > s.rid[i, column]
            if np.count_nonzero(from_part):
                self._preempt_partial(w, i[from_part])
            j, column = i[~from_part], column[~from_part]
            if j.size:
                self._preempt_decoding(w, j, column)
            i = i[s.held[i] + w.n[i] + w.q[i] > s.cap[i]]
        w.k_max[w.preempted] = 1

    def _preempt_partial(self, w: Work, i: Ints) -> None:
        s = self.s
        assert w.q is not None and w.chunks is not None and w.chunk_ctx is not None and w.pairs is not None
        request = s.part[i]
        s.held[i] -= s.part_ctx[i] - self.cached[request]
        s.part[i] = -1
        self.partial -= i.size
        w.q[i] = w.chunks[i] = w.chunk_ctx[i] = w.pairs[i] = 0
        self._send_back(i, request)

    def _preempt_decoding(self, w: Work, i: Ints, column: Ints) -> None:
        s = self.s
        assert self.out is not None
        request = s.rid[i, column].astype(np.int64)
        out = self.output[request] - (s.key[i, column] - s.step[i])
        self.out[request] = out
        self.last_token[request] = s.t[i]
        s.held[i] -= self.size[request] + out - 1
        s.ctx[i] -= self.prompt[request] + out - 1
        s.remove(i, column)
        w.n[i] -= 1
        self._send_back(i, request)
        again = i[s.part[i] >= 0]
        if again.size:  # the partly prefilled request may take what the victim leaves of the budget
            self._continue_partial(w, again)

    def _send_back(self, i: Ints, request: Ints) -> None:
        self.preemptions[request] += 1
        self.waiting_again += i.size
        self.s.push_back(i, request)
        self.s.wait[i] = True

    def _heads(self, i: Ints) -> tuple[Ints, Ints, Bools | None]:
        """Request at the head of each lane's queue, tokens that it has to prefill, and whether it had been preempted."""
        s = self.s
        at = s.head.take(i)
        request = at if self.door is None else self.door.queue.take(at)
        if not self.waiting_again:
            return request, self.size.take(request), None
        depth = s.n_back.take(i)
        again = depth > 0
        if np.count_nonzero(again):
            request = np.where(again, s.back[i, depth - 1], request)
        assert self.out is not None
        return request, self.size.take(request) + self.out.take(request), again

    def _fits(self, w: Work, i: Ints, request: Ints, size: Ints) -> Bools:
        s = self.s
        if self.reserve:
            return s.reserved.take(i) + size + self.output.take(request) <= s.cap.take(i)
        need = s.held.take(i) + w.n.take(i) + size
        if w.q is not None:
            need += w.q.take(i)
        return need <= s.cap.take(i)

    def _admit(self, w: Work) -> None:
        """Admit from the head of each queue until something is full; the first that doesn't fit stops its lane."""
        s = self.s
        room = s.budget - w.n
        may = s.wait & (room > 0)
        if w.q is not None:
            room -= w.q
            may &= room > 0
            if w.preempted is not None:
                may &= ~w.preempted
        running = s.n_slot + (s.part >= 0) if self.partial else s.n_slot.copy()
        may &= running < s.max_seqs
        i = may.nonzero()[0]
        while i.size:
            request, size, again = self._heads(i)
            if self.bounded:
                fits = self._fits(w, i, request, size)
                if np.count_nonzero(fits) < fits.size:
                    i, request, size = i[fits], request[fits], size[fits]
                    again = None if again is None else again[fits]
                    if not i.size:
                        return
            space = room.take(i)
            q = np.minimum(size, space)
            space -= q
            room[i] = space
            self._start(w, i, request, size, q, again)
            seqs = running.take(i) + 1
            running[i] = seqs
            i = i[(space > 0) & (seqs < s.max_seqs.take(i)) & s.wait.take(i)]

    def _start(self, w: Work, i: Ints, request: Ints, size: Ints, q: Ints, again: Bools | None) -> None:
        """Take ``request`` from the queue of each lane of ``i`` and give it a first chunk of ``q`` tokens."""
        s = self.s
        w.open_chunks()
        assert w.q is not None and w.chunks is not None and w.chunk_ctx is not None and w.pairs is not None
        assert w.k_max is not None
        self._dequeue(i, request, again)
        w.q[i] = w.q.take(i) + q
        w.chunks[i] = w.chunks.take(i) + 1
        w.k_max[i] = 1
        if self.has_prefix:
            cached = self.cached.take(request)
            w.chunk_ctx[i] += cached
            w.pairs[i] += q * cached
        if self.has_pairs:
            w.pairs[i] += q * (q + 1) >> 1
        if self.reserve:
            s.reserved[i] += size + self.output.take(request)
        whole = q == size
        if np.count_nonzero(whole) < whole.size:
            part = ~whole
            j, r = i[part], request[part]
            s.part[j] = r
            s.part_left[j] = size[part] - q[part]
            s.part_ctx[j] = self.cached[r] + q[part]
            self.partial += j.size
            i, request = i[whole], request[whole]
        if i.size:
            self._join(w, i, request)

    def _dequeue(self, i: Ints, request: Ints, again: Bools | None) -> None:
        s = self.s
        if again is None or not np.count_nonzero(again):
            head = s.head.take(i) + 1
            s.head[i] = head
            self.scheduled[request] = s.t.take(i)
        else:
            fresh = ~again
            j = i[fresh]
            s.head[j] += 1
            self.scheduled[request[fresh]] = s.t[j]
            s.n_back[i[again]] -= 1
            self.waiting_again -= int(again.sum())
            head = s.head.take(i)
        if self.door is None:
            ta = self.arrival.take(head)
            s.ta[i] = ta
            wait = ta <= s.t.take(i)
        else:
            wait = head < s.tail.take(i)
        if self.waiting_again:
            wait |= s.n_back.take(i) > 0
        s.wait[i] = wait

    def _join(self, w: Work, i: Ints, request: Ints) -> None:
        """These requests make a token at the end of this step and decode from then on."""
        left = self.output.take(request)
        if self.out is not None:
            left -= self.out.take(request)
        self.s.insert(i, request, self.s.step.take(i) + left)
        w.joins.append((i, request))

    def _limited_by(self, w: Work) -> NDArray[np.int8]:
        """Why somebody waits in each lane after admission: a code of ``LIMITS``."""
        s = self.s
        code = np.zeros(w.n.size, np.int8)
        i = s.wait.nonzero()[0]
        if i.size:
            running = s.n_slot.take(i)
            if self.partial:
                running += s.part.take(i) >= 0
            why = np.where(running >= s.max_seqs.take(i), np.int8(1), np.int8(3))
            if self.bounded:
                request, size, _ = self._heads(i)
                kv = ~self._fits(w, i, request, size)
                if w.preempted is not None:
                    kv |= w.preempted.take(i)
                why[kv & (why == 3)] = 2
                if not self.reserve:
                    self._until_kv_limits(w, i, why, size)
            code[i] = why
        return code

    def _until_kv_limits(self, w: Work, i: Ints, why: NDArray[np.int8], size: Ints) -> None:
        """Where only the budget keeps the head waiting, stop when the growing KV begins to: the reason changes then."""
        budget = why == 3
        if np.count_nonzero(budget):
            s, j = self.s, i[budget]
            w.open_chunks()
            assert w.q is not None and w.k_max is not None
            grow = w.n[j] + w.q[j]
            w.k_max[j] = np.minimum(w.k_max[j], (s.cap[j] - size[budget] - s.held[j]) // grow)

    # -- moving the clock ----------------------------------------------------------------------------------------------

    def _advance(self, w: Work, limit: NDArray[np.int8]) -> None:
        """Skip over the steps that this choice lasts, then deliver tokens."""
        s = self.s
        tokens = worked = w.n
        ctx = s.ctx
        if w.q is not None and w.chunks is not None and w.chunk_ctx is not None and w.pairs is not None:
            tokens, worked, ctx = w.n + w.q, w.n + w.chunks, s.ctx + w.chunk_ctx
        d = self.base.take(s.base_at + tokens)
        if self.has_seq:
            d += s.seq_s * worked
        d += s.kv_s * ctx
        slope = s.kv_s * tokens
        if self.has_pairs and w.q is not None:
            d += s.pair_s * w.pairs
            slope += s.pair_s * (w.q * w.q)
        k = s.next_key - s.step
        if w.k_max is not None:
            np.minimum(k, w.k_max, out=k)
        if self.may_preempt:
            i = (s.held + k * tokens > s.cap).nonzero()[0]
            if i.size:
                k[i] = (s.cap[i] - s.held[i]) // tokens[i]
        t1 = _end(s.t, d, slope, k)
        i = ((t1 > s.ta) & (k > 1) & ~s.wait).nonzero()[0]
        if i.size:
            t, di, si = s.t.take(i), d.take(i), slope.take(i)
            ki = _steps_to(t, di, si, k.take(i), s.ta.take(i))
            k[i] = ki
            t1[i] = _end(t, di, si, ki)
        i = (t1 > s.hz).nonzero()[0]
        if i.size:
            self._cut(w, i, d, slope, k, t1)
        self.log.add(s.lane, s.t, d, slope, k, w.n, worked, tokens, s.held, limit)
        self._finish_steps(w, t1, k, tokens)

    def _cut(self, w: Work, i: Ints, d: Floats, slope: Floats, k: Ints, t1: Floats) -> None:
        """Stop lanes ``i`` at their horizon: after the last step that ends in time, or inside the step that doesn't."""
        s = self.s
        whole = _steps_to(s.t[i], d[i], slope[i], k[i], s.hz[i])
        whole -= _end(s.t[i], d[i], slope[i], whole) > s.hz[i]
        k[i] = np.maximum(whole, 1)
        t1[i] = _end(s.t[i], d[i], slope[i], k[i])
        inside = i[whole == 0]
        if inside.size:  # the step started, but its end never happens
            alive = np.ones(k.size, np.bool_)
            alive[inside] = False
            w.joins = [(lanes[alive[lanes]], request[alive[lanes]]) for lanes, request in w.joins]
            s.next_key[inside] = NEVER

    def _finish_steps(self, w: Work, t1: Floats, k: Ints, tokens: Ints) -> None:
        s = self.s
        if self.door is not None:
            self.door.arrive(s.rows, np.minimum(t1, s.hz), strict=True)
        s.t = t1
        s.held = s.held + k * tokens
        s.ctx = s.ctx + k * w.n
        s.step = s.step + k
        if w.going is not None and w.going.size:
            assert w.q is not None
            read = k[w.going] * w.q[w.going]
            s.part_left[w.going] -= read
            s.part_ctx[w.going] += read
        if w.joins:
            lanes, requests = zip(*w.joins, strict=True)
            self._first_tokens(*(w.joins[0] if len(lanes) == 1 else (np.concatenate(lanes), np.concatenate(requests))))
        i = (s.next_key <= s.step).nonzero()[0]
        while i.size:
            i = self._complete(i)

    def _first_tokens(self, i: Ints, request: Ints) -> None:
        """Requests that finished their prompt make a token; a lane may have several."""
        s = self.s
        t = s.t.take(i)
        ctx = self.prompt.take(request)
        if self.out is not None:
            out = self.out.take(request)
            ctx += out
            resumed = out > 0
            if np.count_nonzero(resumed):
                r, lanes = request[resumed], i[resumed]
                gap = t[resumed] - self.last_token[r]
                self.stall_gap[r] = np.maximum(self.stall_gap[r], gap)
                self.last_token[r] = 0.0
                self.stalls.append((gap, t[resumed], s.lane[lanes]))
                first = ~resumed
                request, t = request[first], t[first]
        np.add.at(s.ctx, i, ctx)
        self.first[request] = t

    def _complete(self, i: Ints) -> Ints:
        """Let one request that made its last token go from each lane of ``i``; returns the lanes that have another."""
        s = self.s
        column = s.next_col.take(i)
        request = s.rid.reshape(-1).take(i * s.width + column)
        self.finish[request] = s.t.take(i)
        output = self.output.take(request)
        size = self.size.take(request)
        s.held[i] -= size + output - 1
        s.ctx[i] -= self.prompt.take(request) + output - 1
        if self.reserve:
            s.reserved[i] -= size + output
        s.remove(i, column)
        return i[s.next_key.take(i) <= s.step.take(i)]


def _end(t: Floats, d: Floats, slope: Floats, k: Ints) -> Floats:
    """End of the k-th step from t, seconds: t + k d + slope k (k - 1) / 2."""
    kf = k.astype(np.float64)
    return t + (kf * d + slope * (0.5 * kf * (kf - 1.0)))


def _steps_to(t: Floats, d: Floats, slope: Floats, k: Ints, target: Floats) -> Ints:
    """Fewest steps (at least 1, at most k) after which the clock is at or past ``target``.

    The positive root of slope/2 x^2 + (d - slope/2) x = target - t, rounded up, then corrected by the clock's own
    expression, so that a boundary exactly at the target is found.
    """
    a, gap = 0.5 * slope, target - t
    b = d - a
    root = np.ceil(2.0 * gap / (b + np.sqrt(b * b + 4.0 * a * gap)))
    steps = np.minimum(np.maximum(root, 1), k).astype(np.int64)
    less = np.maximum(steps - 1, 1)
    steps = np.where(_end(t, d, slope, less) >= target, less, steps)
    return np.minimum(np.where(_end(t, d, slope, steps) < target, steps + 1, steps), k)
