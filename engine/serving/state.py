"""The lockstep engine's state: which requests each lane runs, and what they hold.

Slots are dense: lane i's running requests that have all their prompt are in columns 0..n_slot[i]-1, in no particular
order. A slot's key is the lane's step number at whose end the request makes its last token, so the next completion of a
lane is a minimum. Contexts are never stored: with g tokens out a request's context is P + g - 1, and g follows from the key.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .lanes import Floats, Ints, Lanes

NEVER = np.int32(2**31 - 1)


class LaneState:
    """Arrays over the live lanes; row i of every array belongs to lane ``lane[i]``."""

    PER_LANE = (
        "lane", "t", "hz", "step", "head", "n_slot", "next_key", "next_col", "held", "reserved", "ctx", "base_at", "seq_s", "kv_s", "pair_s", "cap",
        "max_seqs", "budget", "part", "part_left", "part_ctx", "n_back",
    )  # fmt: skip

    def __init__(self, lanes: Lanes) -> None:
        count = lanes.count
        self.lane = np.arange(count, dtype=np.int32)
        self.t: Floats = np.zeros(count)
        self.hz = lanes.horizon_s.astype(np.float64)
        self.step: Ints = np.zeros(count, np.int64)  # steps made so far
        self.head: Ints = lanes.start[:-1].astype(np.int64)  # next of the queue that was never admitted
        self.n_slot: Ints = np.zeros(count, np.int64)
        self.next_key: Ints = np.full(count, NEVER, np.int64)
        self.next_col: Ints = np.zeros(count, np.int64)  # column of the request that next_key belongs to
        self.held: Ints = np.zeros(count, np.int64)  # KV tokens held
        self.reserved: Ints = np.zeros(count, np.int64)  # KV tokens promised to running requests (policy reserve)
        self.ctx: Ints = np.zeros(count, np.int64)  # sum of the decoding requests' contexts
        self.base_at = lanes.base_at.astype(np.int64)
        self.seq_s = lanes.seq_s
        self.kv_s = lanes.kv_token_s
        self.pair_s = lanes.prefill_pair_s
        self.cap = lanes.kv_capacity_tokens.astype(np.int64)
        self.max_seqs = lanes.max_num_seqs.astype(np.int64)
        self.budget = lanes.max_num_batched_tokens.astype(np.int64)
        self.part: Ints = np.full(count, -1, np.int64)  # the partly prefilled request, -1 for none
        self.part_left: Ints = np.zeros(count, np.int64)  # prompt tokens that it still has to prefill
        self.part_ctx: Ints = np.zeros(count, np.int64)  # its context: cached prefix and what is prefilled
        self.n_back: Ints = np.zeros(count, np.int64)  # preempted requests waiting at the front of the queue
        self.back = np.empty((count, 0), np.int64)  # a stack a lane: last preempted, first served
        self.width = 8
        self.fullest = 0  # at least the most slots in use in any lane
        self.key = np.full((count, self.width), NEVER, np.int32)
        self.rid = np.full((count, self.width), -1, np.int32)
        self.rows = np.arange(count)

    def keep(self, alive: np.ndarray, extra: tuple[str, ...] = ()) -> None:
        """Drop the lanes where ``alive`` (bool, one a live lane) is false."""
        for name in (*self.PER_LANE, *extra):
            setattr(self, name, getattr(self, name)[alive])
        self.back, self.key, self.rid = self.back[alive], self.key[alive], self.rid[alive]
        self.rows = np.arange(self.lane.size)

    def insert(self, i: Ints, request: Ints, key: Ints) -> None:
        """Give each lane of ``i`` (no repeats) one more running request that makes its last token at step ``key``."""
        at = self.n_slot.take(i)
        self.fullest += 1
        if self.fullest > self.width:
            self.fullest = int(self.n_slot.max()) + 1
            if self.fullest > self.width:
                self._widen()
        flat = i * self.width + at
        self.key.reshape(-1)[flat] = key
        self.rid.reshape(-1)[flat] = request
        self.n_slot[i] = at + 1
        before = self.next_key.take(i)
        sooner = key < before
        self.next_key[i] = np.where(sooner, key, before)
        self.next_col[i] = np.where(sooner, at, self.next_col.take(i))

    def remove(self, i: Ints, column: Ints) -> None:
        """Take the request in ``column`` of each lane of ``i`` (no repeats) out; the last one moves into its place."""
        last = self.n_slot.take(i) - 1
        start = i * self.width
        hole, end = start + column, start + last
        key, rid = self.key.reshape(-1), self.rid.reshape(-1)
        key[hole] = key.take(end)
        key[end] = NEVER
        rid[hole] = rid.take(end)
        rid[end] = -1
        self.n_slot[i] = last
        column = self.key.take(i, axis=0).argmin(axis=1)
        self.next_col[i] = column
        self.next_key[i] = key.take(start + column)

    def push_back(self, i: Ints, request: Ints) -> None:
        """Put a preempted request at the front of the queue of each lane of ``i`` (no repeats)."""
        depth = self.n_back[i]
        if depth.max() >= self.back.shape[1]:
            more = np.full((self.lane.size, max(4, self.back.shape[1])), -1, np.int64)
            self.back = np.concatenate([self.back, more], axis=1)
        self.back[i, depth] = request
        self.n_back[i] = depth + 1

    def _widen(self) -> None:
        count, more = self.lane.size, max(8, self.width // 2)
        self.key = np.concatenate([self.key, np.full((count, more), NEVER, np.int32)], axis=1)
        self.rid = np.concatenate([self.rid, np.full((count, more), -1, np.int32)], axis=1)
        self.width += more
