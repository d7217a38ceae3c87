"""The lockstep engine's state: where each lane's clock stands, which requests it runs, and what they hold.

Slots are dense: lane i's requests that have all their prompt are in columns 0..n_slot[i]-1, in no particular order. A
slot's key is the lane's step number at whose end the request makes its last token, so the next completion of a lane
is a minimum. Contexts are never stored: with g tokens out a request's context is P + g - 1, and g follows from the
key.
"""

from __future__ import annotations

import numpy as np

from .lanes import Bools, Floats, Ints, Lanes

NEVER = np.int32(2**31 - 1)
_REBASE_AT = 2**30
REBASE_EVERY = 32
"""Rounds between two looks at the step numbers: a round passes at most 2^24 steps, the longest answer's."""


class LaneState:
    """Arrays over the live lanes; row i of every array belongs to lane ``lane[i]``."""

    def __init__(self, lanes: Lanes) -> None:
        count = lanes.count
        self.lane = np.arange(count, dtype=np.int32)
        self.t: Floats = np.zeros(count)
        self.hz = lanes.horizon_s
        self.step: Ints = np.zeros(count, np.int64)  # steps made so far
        self.n_slot: Ints = np.zeros(count, np.int64)
        self.next_key: Ints = np.full(count, NEVER, np.int64)
        self.next_col: Ints = np.zeros(count, np.int64)  # column of the request that next_key belongs to
        self.held: Ints = np.zeros(count, np.int64)  # KV tokens held
        self.ctx: Ints = np.zeros(count, np.int64)  # sum of the decoding requests' contexts
        self.base_at = lanes.base_at
        self.seq_s, self.kv_s, self.pair_s = lanes.seq_s, lanes.kv_token_s, lanes.prefill_pair_s
        self.cap, self.max_seqs = lanes.kv_capacity_tokens, lanes.max_num_seqs
        self.budget = lanes.max_num_batched_tokens
        self.part: Ints = np.full(count, -1, np.int64)  # the partly prefilled request, -1 for none
        self.part_left: Ints = np.zeros(count, np.int64)  # prompt tokens that it still has to prefill
        self.part_ctx: Ints = np.zeros(count, np.int64)  # its context: cached prefix and what is prefilled
        self._per_lane = tuple(vars(self))
        # Only of lanes that stop now and then: who acts in this round, and what the last boundary changed.
        self.active: Bools | None = None
        self.gone: Ints = np.zeros(0, np.int64)  # requests that left at it
        self.held_before: Ints = np.zeros(0, np.int64)  # KV tokens held during the step that it ended
        # Only of pipelines: requests that run in lanes of the replica other than the one that is at work here.
        self.elsewhere: Ints | None = None
        self.partial = 0  # lanes that have one
        self.width = 8
        self.fullest = 0  # at least the most slots in use in any lane
        self.key = np.full((count, self.width), NEVER, np.int32)
        self.rid = np.full((count, self.width), -1, np.int32)

    def decoding(self) -> Ints:
        """(lanes,): requests in slots, 0 in lanes that don't act in this round; the caller's own to change."""
        return self.n_slot.copy() if self.active is None else np.where(self.active, self.n_slot, 0)

    def partly(self) -> Ints:
        """Lanes that act in this round and have a partly prefilled request."""
        has = self.part >= 0
        return (has if self.active is None else has & self.active).nonzero()[0]

    @property
    def running(self) -> Ints:
        """(lanes,): requests in slots and partly prefilled ones."""
        return self.n_slot + (self.part >= 0) if self.partial else self.n_slot.copy()

    @property
    def inside(self) -> Ints:
        """(lanes,): requests that run in the replica, in whichever lane of a pipeline."""
        return self.running if self.elsewhere is None else self.running + self.elsewhere

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` (one a live lane) is false."""
        if self.partial:
            self.partial -= int(np.count_nonzero(self.part[~alive] >= 0))
        for name in self._per_lane:
            setattr(self, name, getattr(self, name)[alive])
        self.key, self.rid = self.key[alive], self.rid[alive]

    def rebase(self) -> None:
        """Count steps from here: keys are 32 bits wide, and a week of short steps has more."""
        if self.step.max(initial=0) > _REBASE_AT:
            used = self.rid >= 0
            self.key[used] -= np.broadcast_to(self.step[:, None], used.shape)[used].astype(np.int32)
            self.next_key -= np.where(self.next_key < NEVER, self.step, 0)
            self.step = np.zeros_like(self.step)

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
        sooner = (key < self.next_key.take(i)).nonzero()[0]
        if sooner.size:
            first = i.take(sooner)
            self.next_key[first] = key.take(sooner)
            self.next_col[first] = at.take(sooner)

    def request_in(self, i: Ints, column: Ints) -> Ints:
        """The request in ``column`` of each lane of ``i``."""
        return self.rid.reshape(-1).take(i * self.width + column).astype(np.int64)

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

    def _widen(self) -> None:
        count, more = self.lane.size, max(8, self.width // 2)
        self.key = np.concatenate([self.key, np.full((count, more), NEVER, np.int32)], axis=1)
        self.rid = np.concatenate([self.rid, np.full((count, more), -1, np.int32)], axis=1)
        self.width += more
