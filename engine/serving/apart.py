"""Two pools of replicas, the policy ``disaggregated``: one reads prompts, the other writes answers.

With a static router nothing comes back from the second pool to the first, so the first runs to its end, then the
second with what the first has sent it. To the lanes of the first pool every answer is one token long: its KV is free
when the prompt has been read. ``kv_policy`` says how those lanes admit (``reserve``: the prompt and one token); the
second pool always reserves prompt and answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.traffic import ROUTER, Requests

from .attempts import Handover
from .gathering import OpenGathering, Rows
from .lanes import Deadlines, Ints, Lanes, Served, StepLog
from .lockstep import Lockstep
from .split import ROUTERS
from .states import COMPLETED, REJECTED, UNFINISHED
from .steplog import Sink

if TYPE_CHECKING:
    from .fleet import Fleet

_WRITES: dict[str, Any] = {
    "policy": "decode_only",
    "kv_policy": "reserve",
    "watermark": 0.0,
    "max_outstanding": None,
    "max_queued_tokens": None,
    "shed_ttft_s": None,
    "codel": None,
    "lifo_after_s": None,
    "keep_waits": False,
}
"""What replicas that write do differently: nobody is refused there, and room for the whole answer is set aside."""
DECODE_ROUTER = f"{ROUTER}.decode"
"""Stream of the random choices among the replicas that write."""


class PooledGathering(OpenGathering):
    """Requests that go from one pool to the other. Replicas that write are numbered after those that read."""

    def __init__(self, fleet: Fleet, requests: Sequence[Requests]) -> None:
        super().__init__(fleet, requests)
        assert fleet.decode is not None
        self.decode = fleet.decode
        n = self.arrival.size
        self.travel_s = self.decode.travel_s(self.prompt)
        self.handover = self.way = Handover(np.full(n, -1, np.int32), *np.full((2, n), np.nan))
        self.first_seed = 0

    def route(self, first_seed: int) -> None:
        """Pass the gateway, choose replicas that read, and refuse what could never finish anywhere."""
        super().route(first_seed)
        self.first_seed = first_seed

    def run(self, lo: int, hi: int, sink: Sink) -> Served:
        """Serve seeds lo..hi-1 in one pool, then in the other, and take their outcomes over."""
        readers, writers, places = self.fleet.replicas, self.decode.replicas, self.fleet.places
        begin, count = int(self.seed_start[lo]), hi - lo
        seed_of = self.seeds_of(lo, hi)

        entry = begin + np.flatnonzero(self.state[begin : int(self.seed_start[hi])] != REJECTED)
        lane = seed_of[entry - begin] * readers + self.replica[entry]
        rows = Rows.of(entry, lane, count * readers)
        self.take(Lockstep(self._reading(rows), _placed(sink, readers, places, lo * places)).run(), rows.at, rows.entry)

        entry = self._land(lo, hi)
        lane = seed_of[entry - begin] * writers + self.way.replica[entry] - readers
        rows = Rows.of(entry, lane, count * writers)
        served = Lockstep(self._writing(rows), _placed(sink, writers, places, lo * places + readers)).run()
        self._take_written(served, rows)
        return replace(served, stall_gap_lane=_places(served.stall_gap_lane, writers, places, readers))

    def _reading(self, rows: Rows) -> Lanes:
        """Lanes in which everybody is through with a first token."""
        travel = None
        if self.fleet.max_outstanding is not None:
            travel = rows.times(np.where(self.output > 1, self.travel_s, 0.0))
        return replace(
            self.lanes_of(rows),
            policy="prefill_first",
            output_tokens=np.ones(rows.total, np.int64),
            reserve_output_tokens=None,
            travel_s=travel,
        )

    def _land(self, lo: int, hi: int) -> Ints:
        """Send on who wants more than one token: the attempts of seeds lo..hi-1 that come to a replica that writes,
        seed by seed in order of time, equal times in order of arrival.

        Who is too late when the KV has come leaves then and takes no turn in the router.
        """
        fleet, h = self.fleet, self.way
        part = slice(int(self.seed_start[lo]), int(self.seed_start[hi]))
        sent = part.start + np.flatnonzero((self.state[part] == COMPLETED) & (self.output[part] > 1))
        self.finish[sent], self.state[sent] = np.nan, UNFINISHED
        landed = self.first[sent] + self.travel_s[sent]
        if fleet.horizon_s is not None:
            there = landed <= fleet.horizon_s
            sent, landed = sent[there], landed[there]
        h.landed_s[sent] = landed
        late = landed >= self.arrival[sent] + fleet.server_deadlines.timeout_s
        if np.count_nonzero(late):
            self.dropped[sent[late]] = landed[late]
            sent, landed = sent[~late], landed[~late]
        seed = self.seeds_of(lo, hi)[sent - part.start]
        order = np.lexsort((landed, seed))
        sent, sizes = sent[order], np.bincount(seed, minlength=hi - lo)
        ends, split = np.cumsum(sizes), ROUTERS[fleet.routing.policy]
        for i, (end, size) in enumerate(zip(ends.tolist(), sizes.tolist(), strict=True)):
            chosen = split(size, self.decode.replicas, self.first_seed + lo + i, DECODE_ROUTER)
            h.replica[sent[end - size : end]] = fleet.replicas + chosen
        return sent

    def _writing(self, rows: Rows) -> Lanes:
        """Lanes in which everybody has come with a first token."""
        arrival = rows.times(self.way.landed_s)
        prompt, output = rows.flat(self.prompt), rows.flat(self.output)
        return replace(
            self.lanes(rows.start, arrival, prompt, output, self.cached_of(rows)),
            **_WRITES,
            deadlines=Deadlines(timeout_s=self.fleet.server_deadlines.timeout_s),
            issued_s=rows.times(self.arrival),
            first_s=rows.times(self.first),
        )

    def _take_written(self, served: Served, rows: Rows) -> None:
        at, entry = rows.at, rows.entry
        resumed, finish = served.scheduled_s[at], served.finish_s[at]
        self.way.resumed_s[entry] = resumed
        self.finish[entry] = finish
        self.state[entry[~np.isnan(finish)]] = COMPLETED
        if served.stall_gap_s.size:
            self.stall_gap[entry] = served.stall_gap_s[at]
        if served.dropped_s.size:
            due = self.arrival[entry] + self.fleet.server_deadlines.timeout_s
            waited = np.isnan(resumed) & (due <= (np.inf if self.fleet.horizon_s is None else self.fleet.horizon_s))
            self.dropped[entry] = np.where(waited, due, served.dropped_s[at])
        if served.spent_s.size:
            self.spent_tokens[entry] += served.spent_tokens[at]
            self.spent_s[entry] += served.spent_s[at]


class WritingGathering(OpenGathering):
    """Requests whose KV comes, and whose first token was made, when they arrive."""

    def lanes_of(self, rows: Rows) -> Lanes:
        """Lanes that only write."""
        arrival = rows.times(self.arrival)
        return replace(super().lanes_of(rows), rank=None, issued_s=arrival, first_s=arrival.copy(), **_WRITES)


def _places(lane: NDArray[np.int32], replicas: int, places: int, before: int) -> NDArray[np.int32]:
    """Numbers in the whole run of the lanes of one pool, of so many ``replicas`` a seed."""
    return lane // np.int32(replicas) * np.int32(places) + lane % np.int32(replicas) + np.int32(before)


def _placed(sink: Sink, replicas: int, places: int, before: int) -> Sink:
    """``sink`` with the lanes of one pool numbered so."""

    def take(log: StepLog) -> None:
        log.lane = _places(log.lane, replicas, places, before)
        sink(log)

    return take
