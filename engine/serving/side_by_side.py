"""Several fleets in one run of the engine: the lanes of different machines side by side.

A round costs its NumPy calls, whatever the number of lanes. So small fleets that serve the same requests on different
machines are cheaper together, and every lane goes its own way all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.traffic import Requests

from .fleet import BATCH_LANES, Fleet, FleetRun, gathered, run_fleet
from .gathering import OpenGathering, Rows
from .lanes import Lanes, Served, StepLog
from .lockstep import Lockstep
from .pipelined import Pipelined
from .steplog import Sink


def run_fleets(
    fleets: Sequence[Fleet], requests: Sequence[Sequence[Requests]], first_seed: int, sinks: Sequence[Sink]
) -> list[FleetRun]:
    """What ``run_fleet`` gives for each fleet with its requests and its sink, bit by bit.

    Together run fleets that differ in their machines and in their size alone, pipelines with those of as many stages;
    the others, and those whose replicas react to one another, run by themselves.
    """
    found: list[FleetRun | None] = [None] * len(fleets)
    waiting: list[_Fleet] = []
    for i, fleet in enumerate(fleets):
        if fleet.coupled or fleet.decode is not None:
            found[i] = run_fleet(fleet, requests[i], first_seed, sinks[i])
        else:
            waiting.append(_Fleet.of(i, fleet, requests[i], first_seed))
    for batch in _batches(waiting):
        for one, run in zip(batch, _together(batch, sinks), strict=True):
            found[one.number] = run
    return [run for run in found if run is not None]


@dataclass(frozen=True, slots=True)
class _Fleet:
    """A fleet with its requests dealt out to its lanes."""

    number: int
    fleet: Fleet
    gathering: OpenGathering
    rows: Rows
    lanes: Lanes

    @classmethod
    def of(cls, number: int, fleet: Fleet, requests: Sequence[Requests], first_seed: int) -> _Fleet:
        gathering = OpenGathering(fleet, requests)
        gathering.route(first_seed)
        rows = gathering.rows(0, len(requests))
        return cls(number, fleet, gathering, rows, gathering.lanes_of(rows))


def _batches(fleets: Sequence[_Fleet]) -> list[list[_Fleet]]:
    """Those that can run together, up to so many lanes."""
    batches: list[list[_Fleet]] = []
    for one in fleets:
        for batch in batches:
            count = sum(other.lanes.count for other in batch) + one.lanes.count
            if count <= BATCH_LANES and one.lanes.rules == batch[0].lanes.rules:
                batch.append(one)
                break
        else:
            batches.append([one])
    return batches


def _together(batch: Sequence[_Fleet], sinks: Sequence[Sink]) -> list[FleetRun]:
    lane = np.cumsum([0, *(one.lanes.count for one in batch)])
    place = np.cumsum([0, *(one.rows.total for one in batch)])

    def dealt_out(log: StepLog) -> None:
        for one, lo, hi in zip(batch, lane, lane[1:], strict=False):
            mine = ((log.lane >= lo) & (log.lane < hi)).nonzero()[0]
            if mine.size:
                sinks[one.number](_part(log, mine, int(lo)))

    lanes = Lanes.joined([one.lanes for one in batch])
    served = (Pipelined if lanes.stages > 1 else Lockstep)(lanes, dealt_out).run()
    runs = []
    for i, one in enumerate(batch):
        own = _own(served, slice(int(place[i]), int(place[i + 1])), int(lane[i]), int(lane[i + 1]))
        one.gathering.take(own, one.rows.at, one.rows.entry)
        runs.append(gathered(one.fleet, one.gathering, [own], [0]))
    return runs


def _part(log: StepLog, entries: NDArray[np.intp], first_lane: int) -> StepLog:
    columns = (getattr(log, column.name) for column in fields(StepLog))
    part = StepLog(*(column.take(entries) if column.size else column for column in columns))
    part.lane -= np.int32(first_lane)
    return part


def _own(served: Served, flat: slice, first_lane: int, next_lane: int) -> Served:
    """What happened to the requests of some lanes."""
    mine = (served.stall_gap_lane >= first_lane) & (served.stall_gap_lane < next_lane)
    changes: dict[str, Any] = {
        "stall_gaps": served.stall_gaps[mine],
        "stall_gap_end_s": served.stall_gap_end_s[mine],
        "stall_gap_lane": served.stall_gap_lane[mine] - np.int32(first_lane),
    }
    if served.waits is not None:
        changes["waits"] = tuple(column[flat] for column in served.waits)
    others = [column.name for column in fields(Served) if column.name not in {*changes, "waits"}]
    return replace(served, **{name: getattr(served, name)[flat] for name in others}, **changes)
