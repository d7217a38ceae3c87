"""Where the lanes of a replica lie while another one is at work.

Policies, memory and deadlines know replicas with one group of running requests (``LaneState``: the bench). So the lane
that starts or ends a step is laid on its replica's row of the bench, and stays there until another one is: a lane that
ends a step is mostly the one that starts the next. What belongs to the replica as a whole, its clock, its KV, its
queue, stays on the bench all the time. Rows on which nobody lies are blank.

What is moved is packed on both sides, so that it moves in one go.
"""

from __future__ import annotations

import numpy as np

from ..lanes import Bools, Floats, Ints
from ..patience import Patience
from ..spending import Spending
from ..state import NEVER, LaneState

_OF_THE_BENCH: dict[str, int] = {
    "n_slot": 0, "next_key": int(NEVER), "next_col": 0, "ctx": 0, "part": -1, "part_left": 0, "part_ctx": 0, "step": 0,
}  # fmt: skip
"""What a lane takes along, and what is in a blank row."""
_NAMES = tuple(_OF_THE_BENCH)
N_SLOT, NEXT_KEY, CTX, PART, STEP = (_NAMES.index(name) for name in ("n_slot", "next_key", "ctx", "part", "step"))
"""Rows of ``Shelf.columns``."""
_BLANK = np.array(list(_OF_THE_BENCH.values()), np.int64)[:, None]
_BLANK_SLOTS = np.array([NEVER, -1], np.int32)[:, None, None]
_PER_LANE = (
    "running", "held", "joined", "end", "work_s", "since", "due", "not_before", "per_token", "steps",
)  # fmt: skip
_NOBODY = np.zeros(0, np.int64)


class Shelf:
    """Arrays over replicas and their lanes, (replicas, stages) each."""

    def __init__(self, bench: LaneState, stages: int, patience: Patience | None, spending: Spending | None) -> None:
        shape = (bench.lane.size, stages)
        self.s, self.stages, self.patience, self.spending = bench, stages, patience, spending
        self.columns: Ints = np.tile(_BLANK[:, :, None], (1, *shape))
        """(columns, replicas, stages): what the bench calls by the names in ``_OF_THE_BENCH``."""
        self.slots = np.tile(_BLANK_SLOTS[:, :, None], (1, *shape, bench.width))
        """(2, replicas, stages, width): keys of the requests, and the requests."""
        self.on: Ints = np.full(bench.lane.size, -1)
        """(replicas,): the lane that lies on the bench, -1: none."""
        self.running: Ints = np.zeros(shape, np.int64)
        """Requests in each lane, as in all that follows up to date where a lane lies on the bench, once `settle`d."""
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
        self._held_before: Ints = np.zeros(bench.lane.size, np.int64)
        self._pack()

    def _pack(self) -> None:
        """Make one array of the bench's columns, and one of its keys and requests."""
        s = self.s
        self._bench = np.stack([getattr(s, name) for name in _NAMES])
        for name, row in zip(_NAMES, self._bench, strict=True):
            setattr(s, name, row)
        self._bench_slots = np.stack([s.key, s.rid])
        s.key, s.rid = self._bench_slots

    def keep(self, alive: Bools) -> None:
        """Drop the replicas where ``alive`` is false, as the bench has done; nobody lies on it."""
        self.columns, self.slots = self.columns.compress(alive, axis=1), self.slots.compress(alive, axis=1)
        self.on, self._held_before = self.on[alive], self._held_before[alive]
        for name in _PER_LANE:
            setattr(self, name, getattr(self, name)[alive])
        self._pack()

    def clear(self) -> None:
        """Nobody lies on the bench."""
        self.lay(_NOBODY, _NOBODY)

    def lay(self, i: Ints, lane: Ints) -> None:
        """On the bench lie ``lane`` of each replica of ``i`` (no repeats), and no others."""
        s, elsewhere = self.s, self.s.elsewhere
        assert elsewhere is not None
        wanted = np.full(self.on.size, -1)
        wanted[i] = lane
        other = wanted != self.on
        if np.count_nonzero(other):
            if s.width > self.slots.shape[3]:
                self._widen(s.width - self.slots.shape[3])
            put, take = (other & (self.on >= 0)).nonzero()[0], (other & (wanted >= 0)).nonzero()[0]
            if put.size:
                elsewhere[put] += self.running[put, self.on[put]]
                self._put(put, self.on[put])
            self.on = wanted
            if put.size:
                self._wipe(put[wanted[put] < 0])
            if take.size:
                elsewhere[take] -= self.running[take, wanted[take]]
                self._take(take, wanted[take])
            s.partial, s.fullest = int(np.count_nonzero(s.part >= 0)), int(s.n_slot.max())
        self._held_before[i] = s.held[i]

    def _take(self, i: Ints, lane: Ints) -> None:
        at = i * self.stages + lane
        self._bench[:, i] = self.columns.reshape(len(_NAMES), -1).take(at, axis=1)
        width = self.slots.shape[3]
        self._bench_slots[:, i] = self.slots.reshape(2, -1, width).take(at, axis=1)
        if self.patience is not None:
            self.patience.not_before[i] = self.not_before[i, lane]
        if self.spending is not None:
            self.spending.per_token[i], self.spending.steps[i] = self.per_token[i, lane], self.steps[i, lane]

    def _put(self, i: Ints, lane: Ints) -> None:
        at = i * self.stages + lane
        self.columns.reshape(len(_NAMES), -1)[:, at] = self._bench.take(i, axis=1)
        width = self.slots.shape[3]
        self.slots.reshape(2, -1, width)[:, at] = self._bench_slots.take(i, axis=1)
        if self.patience is not None:
            self.not_before[i, lane] = self.patience.not_before[i]
        if self.spending is not None:
            self.per_token[i, lane], self.steps[i, lane] = self.spending.per_token[i], self.spending.steps[i]

    def _wipe(self, i: Ints) -> None:
        if i.size:
            self._bench[:, i] = _BLANK
            self._bench_slots[:, i] = _BLANK_SLOTS
            if self.patience is not None:
                self.patience.not_before[i] = np.inf

    def settle(self, i: Ints, lane: Ints) -> None:
        """What is to be known of the lanes on the bench, ``lane`` of each replica of ``i``, while they lie there."""
        s = self.s
        running = s.n_slot[i] + (s.part[i] >= 0)
        self.running[i, lane] = running
        self.held[i, lane] += self.gained(i)
        if self.patience is not None:
            self.due[i, lane] = np.where(running > 0, self.patience.next_deadline()[i], np.inf)

    def gained(self, i: Ints) -> Ints:
        """(replicas of i,): KV tokens that the lanes on the bench hold more than when they were laid there."""
        return self.s.held[i] - self._held_before[i]

    def _widen(self, more: int) -> None:
        """The bench has more slots now, in arrays of its own."""
        self.slots = np.concatenate([self.slots, np.tile(_BLANK_SLOTS[:, :, None], (1, *self.end.shape, more))], axis=3)
        self._pack()


def any_lane(flags: Bools) -> Bools:
    """(replicas,): whether any lane of a replica is flagged."""
    return np.asarray(flags.any(axis=1), np.bool_)
