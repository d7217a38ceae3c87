"""Early refusal: who would wait too long for a first token, by how fast prompts have been read lately."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .clock import end_of
from .lanes import Bools, Floats, Ints, Lanes
from .state import LaneState
from .work import Work

WINDOW_S = 10.0
"""How far back the pace is measured."""


class Shedding:
    """Predicts a newcomer's time to first token in every lane.

    It is what has to be prefilled before and for the newcomer, over the pace of reading: prompt tokens a second in the
    steps that ended in the last ten seconds and had something to read (a chunk, or somebody waiting). Steps that only
    decode because nobody waits are left out: they would make an idle replica look slow.
    """

    def __init__(self, lanes: Lanes, state: LaneState, classes: int) -> None:
        assert lanes.shed_ttft_s is not None
        self.s, self.limit_s = state, lanes.shed_ttft_s
        self.waiting: Ints = np.zeros((lanes.count, classes), np.int64)
        """(lanes, classes): tokens to prefill of those who wait."""
        self.part_left: Ints = np.zeros(lanes.count, np.int64)  # that no step has begun to read, in the step under way
        self.part: Ints = np.full(lanes.count, -1, np.int64)
        self.at_boundary = False
        budget = lanes.max_num_batched_tokens
        pairs = budget * (budget + 1) // 2
        full = lanes.base.take(lanes.base_at + budget, mode="clip") + lanes.seq_s + lanes.prefill_pair_s * pairs
        self.full_chunks: Floats = budget / full
        self.pace = _Pace(lanes.count)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.waiting, self.part_left, self.part = self.waiting[alive], self.part_left[alive], self.part[alive]
        self.full_chunks = self.full_chunks[alive]
        self.pace.keep(alive)

    def watch(self, w: Work, limit: NDArray[np.int8], t: Floats, d: Floats, slope: Floats, k: Ints) -> None:
        """The steps of a round begin."""
        s = self.s
        q = np.zeros(k.size, np.int64) if w.chunks is None else w.chunks.q
        going = np.zeros(k.size, np.int64)
        if w.going is not None and w.going.size:
            going[w.going] = k[w.going] * q[w.going]
        active = k > 0
        self.part = np.where(active, s.part, self.part)
        self.part_left = np.where(active, s.part_left - going, self.part_left)
        i = (active & ((q > 0) | (limit > 0))).nonzero()[0]
        if i.size:
            self.pace.add(i, t[i], d[i], slope[i], k[i], q[i])

    def too_slow(self, i: Ints, rank: Ints, rank_of: Ints, size: Ints, now: Floats) -> Bools:
        """Whether a newcomer with ``size`` tokens to prefill and urgency ``rank`` comes too late in each lane of ``i``.

        ``rank_of`` is the urgency of every request, ``now`` (n,) when each comes.
        """
        s = self.s
        part = s.part[i] if self.at_boundary else self.part[i]
        left = s.part_left[i] if self.at_boundary else self.part_left[i]
        before = np.where(np.arange(self.waiting.shape[1]) <= rank[:, None], self.waiting[i], 0).sum(axis=1)
        before += np.where((part >= 0) & (rank_of.take(part, mode="clip") <= rank), left, 0)
        tokens, seconds = self.pace.last(i, now)
        measured = (tokens > 0) & (seconds > 0)
        pace = np.where(measured, tokens / np.where(measured, seconds, 1.0), self.full_chunks[i])
        return np.asarray((before + size) / pace > self.limit_s, np.bool_)


class _Pace:
    """The steps with something to read of every lane, oldest first: (lanes, places), from ``first`` up to ``end``."""

    def __init__(self, lanes: int) -> None:
        self.first, self.end = np.zeros((2, lanes), np.int64)
        self.steps = np.zeros((7, lanes, 32))
        """Start, length of the first step, slope, steps, tokens a step; and tokens and seconds of all before."""

    def keep(self, alive: Bools) -> None:
        self.first, self.end, self.steps = self.first[alive], self.end[alive], self.steps[:, alive]

    def add(self, i: Ints, t: Floats, d: Floats, slope: Floats, k: Ints, q: Ints) -> None:
        if self.end[i].max() >= self.steps.shape[2]:
            self._make_room()
        at = self.end[i]
        before = np.maximum(at - 1, 0)
        _, d0, s0, k0, q0, tokens, seconds = self.steps[:, i, before]
        some = at > 0
        tokens = np.where(some, tokens + k0 * q0, 0.0)
        seconds = np.where(some, seconds + end_of(np.zeros(i.size), d0, s0, k0.astype(np.int64)), 0.0)
        self.steps[:, i, at] = t, d, slope, k, q, tokens, seconds
        self.end[i] = at + 1

    def last(self, i: Ints, now: Floats) -> tuple[Floats, Floats]:
        """Tokens read and seconds spent in the steps that ended in (now - WINDOW_S, now]."""
        since = now - WINDOW_S
        while True:  # whatever ended before the window is never asked for again
            at = self.first[i]
            t, d, slope, k, *_ = self.steps[:, i, np.minimum(at, self.steps.shape[2] - 1)]
            over = (at < self.end[i] - 1) & (end_of(t, d, slope, k.astype(np.int64)) <= since)
            if not np.count_nonzero(over):
                break
            self.first[i[over]] += 1
        tokens, seconds = self._until(i, self.end[i] - 1, now)
        tokens0, seconds0 = self._until(i, self.first[i], since)
        some = self.end[i] > 0
        return np.where(some, tokens - tokens0, 0.0), np.where(some, seconds - seconds0, 0.0)

    def _until(self, i: Ints, at: Ints, time: Floats) -> tuple[Floats, Floats]:
        """Tokens and seconds of all steps that ended at or before ``time``, which is in entry ``at`` or after it."""
        t, d, slope, k, q, tokens, seconds = self.steps[:, i, np.maximum(at, 0)]
        gap = np.maximum(time - t, 0.0)
        b = d - 0.5 * slope
        root = b + np.sqrt(b * b + 2.0 * slope * gap)
        n = np.minimum(np.floor(2.0 * gap / np.where(root > 0, root, np.inf)), k)  # unused places have no steps
        n = np.where((n < k) & (end_of(t, d, slope, (n + 1).astype(np.int64)) <= time), n + 1, n)
        n = np.where((n > 0) & (end_of(t, d, slope, n.astype(np.int64)) > time), n - 1, n)
        return tokens + n * q, seconds + end_of(np.zeros(i.size), d, slope, n.astype(np.int64))

    def _make_room(self) -> None:
        """Forget what lies before ``first``, and double the places where that isn't enough."""
        held = int((self.end - self.first).max())
        places = self.steps.shape[2]
        while places < 2 * held + 2:
            places *= 2
        take = np.minimum(self.first[:, None] + np.arange(places), self.steps.shape[2] - 1)
        self.steps = np.take_along_axis(self.steps, np.broadcast_to(take, (7, *take.shape)), axis=2)
        self.end -= self.first
        self.first = np.zeros_like(self.first)
