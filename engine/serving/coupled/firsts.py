"""First attempts, which are known before the run begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.serving.lanes import UNLIMITED, Floats, Ints
from engine.traffic import Requests

from .retries import Tries

if TYPE_CHECKING:
    from engine.serving.fleet import Fleet


class Firsts:
    """First attempts of every seed end to end, and how many have come."""

    def __init__(self, fleet: Fleet, requests: Sequence[Requests], seed_start: Ints) -> None:
        self.start, self.taken = seed_start, np.zeros(seed_start.size - 1, np.int64)
        self.arrival: Floats = np.concatenate([[], *(r.arrival_s for r in requests)])
        self.prompt, self.output, self.cached = (
            np.concatenate([np.empty(0, np.int64), *(getattr(r, name).astype(np.int64) for r in requests)])
            for name in ("prompt_tokens", "output_tokens", "cached_prefix_tokens")
        )
        reserved = fleet.batching.reserve_output_tokens
        if reserved is not None:
            self.output = np.minimum(self.output, reserved)
        self.class_id = np.concatenate([r.class_id for r in requests]).astype(np.int16)
        self.priority = np.concatenate([r.priority for r in requests]).astype(np.int32)
        self.class_names = requests[0].class_names
        urgency, rank = np.unique(self.priority, return_inverse=True)
        self.urgencies, self.rank = max(int(urgency.size), 1), rank.astype(np.int64)
        kv, context = fleet.model.kv_capacity_tokens or UNLIMITED, fleet.model.context_limit or UNLIMITED
        answer = self.output if reserved is None else reserved
        self.too_long = (self.prompt + answer > kv) | (self.prompt + self.output > context)
        # A row a seed, padded with infinity, so that the next arrival is always there to look at.
        most = int(np.diff(seed_start).max(initial=0)) + 1
        self._times = np.full((self.taken.size, most), np.inf)
        for i, row in enumerate(self._times):
            row[: seed_start[i + 1] - seed_start[i]] = self.arrival[seed_start[i] : seed_start[i + 1]]

    def left(self) -> bool:
        """Whether any is still to come."""
        return bool((self.taken < np.diff(self.start)).any())

    def next_after(self, now: Floats) -> Floats:
        """(seeds,): when the next comes after ``now`` (seeds,), seconds."""
        at, rows = self.taken.copy(), np.arange(self.taken.size)
        while True:
            found = self._times[rows, at]
            same = found <= now
            if not np.count_nonzero(same):
                return np.asarray(found)
            at += same

    def take(self, until: Floats) -> Tries:
        """Those that come before ``until`` (seeds,)."""
        first = self.taken
        at = [
            row.searchsorted(end) if row[begin] < end else begin
            for row, begin, end in zip(self._times, first.tolist(), until.tolist(), strict=True)
        ]
        self.taken = np.array(at, np.int64)
        count = self.taken - first
        seed = np.repeat(np.arange(first.size), count)
        request = np.arange(seed.size) - np.repeat(np.cumsum(count) - count, count) + first[seed]
        return Tries(self._times[seed, request], seed, request, np.zeros(seed.size, np.int64))
