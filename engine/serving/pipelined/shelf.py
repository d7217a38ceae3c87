"""Where the lanes of a replica lie while another one is at work.

Policies, memory and deadlines know replicas with one group of running requests (``LaneState``: the bench). So the lane
that starts or ends a step is laid on its replica's row of the bench, worked on, and put back. What belongs to the
replica as a whole, its clock, its KV, its queue, stays on the bench all the time. Rows on which nobody lies are blank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..lanes import Bools, Floats, Ints
from ..patience import Patience
from ..spending import Spending
from ..state import NEVER, LaneState

_OF_THE_BENCH: dict[str, int] = {
    "n_slot": 0, "next_key": int(NEVER), "next_col": 0, "ctx": 0, "part": -1, "part_left": 0, "part_ctx": 0, "step": 0,
}  # fmt: skip
"""What a lane takes along, and what is in a blank row."""


class Shelf:
    """Arrays over replicas and their lanes, (replicas, stages) each."""

    def __init__(self, bench: LaneState, stages: int, patience: Patience | None, spending: Spending | None) -> None:
        shape = (bench.lane.size, stages)
        self.s, self.patience, self.spending = bench, patience, spending
        self.lanes: dict[str, NDArray[Any]] = {
            name: np.full(shape, blank, np.int64) for name, blank in _OF_THE_BENCH.items()
        }
        self.key = np.full((*shape, bench.width), NEVER, np.int32)
        self.rid = np.full((*shape, bench.width), -1, np.int32)
        self.held: Ints = np.zeros(shape, np.int64)
        """KV tokens that each lane's requests hold, with those that the step under way writes."""
        self.joined: Ints = np.zeros(shape, np.int64)
        """Requests whose prompt the step under way finishes; they are in the lane's last slots."""
        self.end: Floats = np.full(shape, np.inf)
        """When the step under way ends, seconds; infinity in lanes without one."""
        self.work_s: Floats = np.zeros(shape)
        """How long that step takes with nobody in its way, seconds."""
        self.since: Floats = np.full(shape, -np.inf)
        """When each lane's last step ended, seconds."""
        self.due: Floats = np.full(shape, np.inf)
        """When the deadline of a request may pass in a lane without a step, seconds."""
        self.not_before: Floats = np.full(shape, np.inf)  # see ``Patience``
        self.per_token, self.steps = np.zeros(shape), np.zeros(shape, np.int64)  # see ``Spending``
        self._held_before: Ints = np.zeros(0, np.int64)

    @property
    def running(self) -> Bools:
        """(replicas, stages): lanes that have requests."""
        return np.asarray((self.lanes["n_slot"] > 0) | (self.lanes["part"] >= 0), np.bool_)

    def keep(self, alive: Bools) -> None:
        """Drop the replicas where ``alive`` is false; nobody lies on the bench."""
        self.lanes = {name: values[alive] for name, values in self.lanes.items()}
        for name in (
            "key",
            "rid",
            "held",
            "joined",
            "end",
            "work_s",
            "since",
            "due",
            "not_before",
            "per_token",
            "steps",
        ):
            setattr(self, name, getattr(self, name)[alive])

    def take(self, i: Ints, lane: Ints) -> None:
        """Lay ``lane`` of each replica of ``i`` (no repeats) on the bench."""
        s = self.s
        for name, values in self.lanes.items():
            getattr(s, name)[i] = values[i, lane]
        s.key[i], s.rid[i] = self.key[i, lane], self.rid[i, lane]
        s.partial, s.fullest = int(np.count_nonzero(s.part >= 0)), int(s.n_slot.max())
        assert s.elsewhere is not None
        s.elsewhere[i] -= s.running[i]
        self._held_before = s.held.copy()
        if self.patience is not None:
            self.patience.not_before[i] = self.not_before[i, lane]
        if self.spending is not None:
            self.spending.per_token[i], self.spending.steps[i] = self.per_token[i, lane], self.steps[i, lane]

    def put(self, i: Ints, lane: Ints) -> None:
        """Put the lanes that lie there back, all that were taken and in the same order; their rows are blank again."""
        s = self.s
        assert s.elsewhere is not None
        s.elsewhere[i] += s.running[i]
        self.held[i, lane] += self.gained(i)
        if self.patience is not None:
            self.due[i, lane] = np.where(s.running[i] > 0, self.patience.next_deadline()[i], np.inf)
            self.not_before[i, lane] = self.patience.not_before[i]
            self.patience.not_before[i] = np.inf
        if self.spending is not None:
            self.per_token[i, lane], self.steps[i, lane] = self.spending.per_token[i], self.spending.steps[i]
        if s.width > self.key.shape[2]:
            self._widen(s.width - self.key.shape[2])
        for name, blank in _OF_THE_BENCH.items():
            self.lanes[name][i, lane] = getattr(s, name)[i]
            getattr(s, name)[i] = blank
        self.key[i, lane], self.rid[i, lane] = s.key[i], s.rid[i]
        s.key[i], s.rid[i] = NEVER, -1
        s.partial = 0

    def gained(self, i: Ints) -> Ints:
        """(replicas of i,): KV tokens that the lanes on the bench hold more than when they were taken."""
        return self.s.held[i] - self._held_before[i]

    def _widen(self, more: int) -> None:
        room = ((0, 0), (0, 0), (0, more))
        self.key = np.pad(self.key, room, constant_values=NEVER)
        self.rid = np.pad(self.rid, room, constant_values=-1)
