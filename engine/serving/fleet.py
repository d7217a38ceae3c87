"""A fleet of replicas under a static router: splits each seed's requests into lanes, runs them, gathers the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.machine import ReplicaModel
from engine.scenario import Batching, Scenario
from engine.traffic import Requests

from .lanes import UNLIMITED, Floats, Ints, Lanes, Served, StepLog
from .lockstep import Lockstep
from .split import ROUTERS
from .states import COMPLETED, QUEUE_FULL, REJECTED, TOO_LONG, UNFINISHED
from .steplog import Sink

BATCH_REQUESTS = 3_000_000
BATCH_LANES = 1024
"""Lanes run together at most: beyond, arrays outgrow the cache and nothing is gained."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Every attempt of every seed, one entry each, in order of (seed, request). Times in seconds, ``nan`` where
    absent."""

    seed_start: Ints
    """(seeds + 1,): seed i's attempts are ``seed_start[i]:seed_start[i + 1]``."""
    arrival_s: Floats
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_prefix_tokens: NDArray[np.int32]
    class_id: NDArray[np.int16]
    priority: NDArray[np.int32]
    class_names: tuple[str, ...]
    replica: NDArray[np.int32]
    scheduled_s: Floats
    first_token_s: Floats
    finish_s: Floats
    state: NDArray[np.int8]
    reason: NDArray[np.int8]
    preemptions: NDArray[np.int32]
    last_token_s: Floats
    """When the last token before a preemption came, while the next one hasn't; else 0."""
    stall_gap_s: Floats
    """Largest gap between two tokens that contains a preemption; 0 without one."""

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return self.seed_start.size - 1

    @property
    def left_s(self) -> Floats:
        """(n,): when each left the system, whatever its state; ``nan`` for the unfinished."""
        return np.where(self.state == REJECTED, self.arrival_s, self.finish_s)

    @property
    def seed_index(self) -> NDArray[np.int32]:
        """(n,): which seed of the run each attempt belongs to, from 0."""
        return np.repeat(np.arange(self.seeds, dtype=np.int32), np.diff(self.seed_start))


@dataclass(frozen=True, slots=True)
class FleetRun:
    """What became of a fleet's attempts. Lanes are numbered seed * replicas + replica."""

    attempts: Attempts
    stall_gaps: Floats
    stall_gap_end_s: Floats
    stall_gap_lane: NDArray[np.int32]
    replicas: int
    horizon_s: Floats
    """(seeds,): where each seed's clock stopped."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Identical replicas behind a static router, and when their clock stops."""

    model: ReplicaModel
    batching: Batching
    replicas: int = 1
    routing: str = "round_robin"
    max_outstanding: int | None = None
    horizon_s: float | None = None
    """``None``: until every request has ended."""

    @classmethod
    def of(cls, s: Scenario, model: ReplicaModel) -> Fleet:
        """The scenario's fleet."""
        return cls(
            model, s.batching, s.fleet.replicas, s.fleet.routing.policy, s.admission.max_outstanding, s.run.horizon_s
        )


def run_fleet(fleet: Fleet, requests: Sequence[Requests], first_seed: int, sink: Sink = lambda log: None) -> FleetRun:
    """Serve each seed's requests. ``requests[i]`` belongs to seed ``first_seed + i``.

    ``sink`` is given the steps as they come, in pieces; a lane's pieces are in order of time.
    The result depends on the fleet, the requests and the seeds alone, not on which lanes run together.
    """
    replicas = fleet.replicas
    split = ROUTERS[fleet.routing]
    gathered = _Gathered(requests, replicas)
    for i, r in enumerate(requests):
        gathered.replica[gathered.seed_start[i] : gathered.seed_start[i + 1]] = split(
            r.arrival_s.size, replicas, first_seed + i
        )
    gathered.refuse_too_long(fleet.model)
    gaps, gap_ends, gap_lanes = [], [], []
    for lo, hi in _batches(np.diff(gathered.seed_start), replicas):
        served = gathered.run(fleet, lo, hi, sink)
        gaps.append(served.stall_gaps)
        gap_ends.append(served.stall_gap_end_s)
        gap_lanes.append(served.stall_gap_lane + np.int32(lo * replicas))
    attempts = gathered.finish()
    horizon = np.full(len(requests), np.inf if fleet.horizon_s is None else fleet.horizon_s)
    if fleet.horizon_s is None:
        horizon = _last_events(attempts)
    return FleetRun(
        attempts, np.concatenate(gaps), np.concatenate(gap_ends), np.concatenate(gap_lanes), replicas, horizon
    )


def _batches(counts: Ints, replicas: int) -> Iterator[tuple[int, int]]:
    """Ranges of seeds that run together."""
    lo = total = 0
    for i, count in enumerate(counts):
        if i > lo and (total + count > BATCH_REQUESTS or (i - lo + 1) * replicas > BATCH_LANES):
            yield lo, i
            lo, total = i, 0
        total += int(count)
    yield lo, len(counts)


def _last_events(a: Attempts) -> Floats:
    """(seeds,): time of each seed's last event, seconds; 0 for a seed without requests."""
    last = np.fmax(a.arrival_s, a.left_s)
    return np.array([last[lo:hi].max(initial=0.0) for lo, hi in zip(a.seed_start, a.seed_start[1:], strict=False)])


class _Gathered:
    """The seeds' requests end to end, and their outcomes as batches of lanes report them."""

    def __init__(self, requests: Sequence[Requests], replicas: int) -> None:
        def column(name: str) -> NDArray[np.generic]:
            return np.concatenate([getattr(r, name) for r in requests])

        sizes = [r.arrival_s.size for r in requests]
        self.seed_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.arrival_s = column("arrival_s").astype(np.float64, copy=False)
        self.prompt = column("prompt_tokens").astype(np.int32, copy=False)
        self.output = column("output_tokens").astype(np.int32, copy=False)
        self.cached = column("cached_prefix_tokens").astype(np.int32, copy=False)
        self.class_id = column("class_id").astype(np.int16, copy=False)
        self.priority = column("priority").astype(np.int32, copy=False)
        self.class_names = requests[0].class_names
        self.replicas = replicas
        n = self.arrival_s.size
        self.replica = np.zeros(n, np.int32)
        self.scheduled, self.first, self.finish_s = np.full((3, n), np.nan)
        self.state = np.full(n, UNFINISHED, np.int8)
        self.reason = np.zeros(n, np.int8)
        self.preemptions = np.zeros(n, np.int32)
        self.last_token, self.stall_gap = np.zeros((2, n))

    def refuse_too_long(self, model: ReplicaModel) -> None:
        """Requests that could never finish are refused at the replica that was their turn."""
        total = self.prompt + self.output
        limit = min(model.kv_capacity_tokens or UNLIMITED, model.context_limit or UNLIMITED)
        refused = total > limit
        self.state[refused] = REJECTED
        self.reason[refused] = TOO_LONG

    def run(self, fleet: Fleet, lo: int, hi: int, sink: Sink) -> Served:
        """Serve seeds lo..hi-1 as one batch of lanes and take their outcomes over."""
        part = slice(int(self.seed_start[lo]), int(self.seed_start[hi]))
        entry = np.flatnonzero(self.state[part] != REJECTED)
        seed = np.repeat(np.arange(hi - lo), np.diff(self.seed_start[lo : hi + 1]))
        lane = (seed * self.replicas + self.replica[part])[entry]
        count = (hi - lo) * self.replicas
        if count <= 1 << 16:
            lane = lane.astype(np.uint16)  # NumPy's stable sort of 16-bit keys is a radix sort
        order = np.argsort(lane, kind="stable")
        entry = entry[order] + part.start
        sizes = np.bincount(lane, minlength=count)
        start = np.concatenate([[0], np.cumsum(sizes + 1)]).astype(np.int64)
        at = np.arange(entry.size) + lane[order]  # one sentinel for every lane before
        lanes = self._lanes(fleet, start, at, entry)

        def numbered(log: StepLog) -> None:
            log.lane += lo * self.replicas
            sink(log)

        served = Lockstep(lanes, numbered).run()
        self._take(served, at, entry)
        return served

    def _lanes(self, fleet: Fleet, start: Ints, at: Ints, entry: Ints) -> Lanes:
        count, total = start.size - 1, int(start[-1])

        def flat(values: NDArray[np.int32]) -> Ints:
            out = np.ones(total, np.int64)
            out[at] = values[entry]
            return out

        def each(value: int | None) -> Ints:
            return np.full(count, UNLIMITED if value is None else value, np.int64)

        arrival = np.full(total, np.inf)
        arrival[at] = self.arrival_s[entry]
        cached = flat(self.cached) if self.cached.any() else np.zeros(total, np.int64)
        cached[start[1:] - 1] = 0
        model, b = fleet.model, fleet.batching
        return Lanes(
            arrival_s=arrival,
            prompt_tokens=flat(self.prompt),
            output_tokens=flat(self.output),
            cached_prefix_tokens=cached,
            start=start,
            horizon_s=np.full(count, np.inf if fleet.horizon_s is None else fleet.horizon_s),
            base=model.base,
            base_at=np.zeros(count, np.int64),
            seq_s=np.full(count, model.seq_s),
            kv_token_s=np.full(count, model.kv_token_s),
            prefill_pair_s=np.full(count, model.prefill_pair_s),
            kv_capacity_tokens=each(model.kv_capacity_tokens),
            max_num_seqs=each(b.max_num_seqs),
            max_num_batched_tokens=each(b.max_num_batched_tokens),
            max_outstanding=None if fleet.max_outstanding is None else each(fleet.max_outstanding),
            kv_policy=b.kv_policy,
        )

    def _take(self, served: Served, at: Ints, entry: Ints) -> None:
        self.scheduled[entry] = served.scheduled_s[at]
        self.first[entry] = served.first_token_s[at]
        finish = served.finish_s[at]
        self.finish_s[entry] = finish
        if served.preemptions.size:
            self.preemptions[entry] = served.preemptions[at]
            self.last_token[entry] = served.last_token_s[at]
            self.stall_gap[entry] = served.stall_gap_s[at]
        done = ~np.isnan(finish)
        self.state[entry[done]] = COMPLETED
        if not served.refused.size:
            return
        refused = entry[served.refused[at]]
        self.state[refused] = REJECTED
        self.reason[refused] = QUEUE_FULL

    def finish(self) -> Attempts:
        """All attempts with their outcomes."""
        return Attempts(
            self.seed_start, self.arrival_s, self.prompt, self.output, self.cached, self.class_id, self.priority,
            self.class_names, self.replica, self.scheduled, self.first, self.finish_s, self.state, self.reason,
            self.preemptions, self.last_token, self.stall_gap,
        )  # fmt: skip
