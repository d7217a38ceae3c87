"""A fleet of identical replicas under a static router."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engine.machine import ReplicaModel
from engine.scenario import AdaptiveLifo, Autoscaler, Batching, Codel, Disaggregated, Scenario
from engine.traffic import Requests, Users

from .apart import PooledGathering, WritingGathering
from .attempts import Attempts
from .coupled import CoupledGathering, Lives, Retries, Routing, Throttle
from .gathering import Gathering, OpenGathering
from .lanes import Deadlines, Floats, Ints, Served
from .steplog import Sink
from .users import ClosedGathering

_GIGABIT_BYTES = 1e9 / 8
BATCH_REQUESTS = 3_000_000
BATCH_LANES = 1024
"""Lanes run together at most: beyond, arrays outgrow the cache and nothing is gained."""


@dataclass(frozen=True, slots=True)
class DecodePool:
    """Replicas that only write answers, and the way of a prompt's KV to them."""

    replicas: int
    token_s: float
    """Seconds that the KV of a token of the prompt, a cached one too, takes."""
    latency_s: float

    @classmethod
    def of(cls, pools: Disaggregated, model: ReplicaModel) -> DecodePool:
        """The scenario's: every prompt travels at the full bandwidth of the link."""
        token_s = model.kv_bytes_per_token / (pools.transfer_gbps * _GIGABIT_BYTES)
        return cls(pools.decode_replicas, token_s, pools.transfer_latency_s)

    def travel_s(self, prompt_tokens: NDArray[np.int32]) -> Floats:
        """(n,): seconds that each prompt's KV is on its way."""
        return np.asarray(prompt_tokens * self.token_s + self.latency_s, np.float64)


@dataclass(frozen=True, slots=True)
class Fleet:
    """Identical replicas behind a static router, whom they refuse, who gives up, and when their clock stops."""

    model: ReplicaModel
    batching: Batching
    replicas: int = 1
    routing: Routing = field(default_factory=Routing)
    max_outstanding: int | None = None
    max_queued_tokens: int | None = None
    rate_limit: tuple[float, float] | None = None
    """Tokens a second, and how many the bucket holds."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    ignores_clients: bool = False
    """Whether the server goes on with requests whose client has given up."""
    horizon_s: float | None = None
    """``None``: until every request has ended."""
    until_scheduled: bool = False
    """Whether a replica that is a pipeline stops once nobody waits or comes any more; what runs then is unfinished."""
    retries: Retries = field(default_factory=Retries)
    throttle: Throttle | None = None
    autoscaler: Autoscaler | None = None
    shed_ttft_s: float | None = None
    codel: tuple[float, float] | None = None
    """Target and interval, seconds."""
    lifo_after_s: float | None = None
    keep_waits: bool = False
    """Whether attempts shall say what kept them from going on."""
    decode: DecodePool | None = None
    """With batching policy ``disaggregated``, where ``replicas`` only read prompts."""

    def __post_init__(self) -> None:
        """ValueError for two pools or pipelines whose replicas would have to react to one another."""
        if self.decode is not None and self.coupled:
            raise ValueError("decode: not with load-aware routing, retries, throttling clients or an autoscaler")
        if self.model.stages > 1 and (self.coupled or self.decode is not None):
            raise ValueError("stages: not with two pools, nor with what is refused to them")

    @property
    def keeps_waits(self) -> bool:
        """Whether attempts say what kept them from going on: of pipelines nobody takes account of that."""
        return self.keep_waits and self.model.stages == 1

    @property
    def drops(self) -> bool:
        """Whether anybody who was let in may leave before the end."""
        return self.deadlines.while_waiting < np.inf or self.codel is not None

    @property
    def coupled(self) -> bool:
        """Whether what happens at one replica changes what another is asked."""
        scaled = self.autoscaler is not None
        return self.routing.load_aware or self.retries.most > 0 or self.throttle is not None or scaled

    @property
    def places(self) -> int:
        """Replicas that may be there at once, those that still finish their work included.

        Where so many still do that there is no place for all that are wanted, the rest is ordered at a later tick.
        """
        if self.autoscaler is None:
            return self.replicas + (0 if self.decode is None else self.decode.replicas)
        most = max(self.replicas, self.autoscaler.max_replicas)
        return most + most // 2 + 1

    @classmethod
    def of(cls, s: Scenario, model: ReplicaModel) -> Fleet:
        """The scenario's fleet."""
        client, admission, order = s.traffic.client, s.admission, s.admission.discipline
        limit, pools = admission.rate_limit, s.batching.disaggregated
        apart = s.batching.policy == "disaggregated"
        return cls(
            model,
            s.batching,
            replicas=pools.prefill_replicas if apart else s.fleet.replicas,
            decode=DecodePool.of(pools, model) if apart else None,
            routing=Routing(
                s.fleet.routing.policy,
                s.fleet.routing.report_interval_s,
                s.fleet.routing.count_own_sends,
                s.fleet.routing.ties == "rotate",
            ),
            max_outstanding=admission.max_outstanding,
            max_queued_tokens=admission.max_queued_tokens,
            rate_limit=None if limit is None else (limit.rate_rps, limit.burst),
            deadlines=Deadlines(
                _or_never(client.timeout_s), _or_never(client.ttft_timeout_s), _or_never(admission.queue_timeout_s)
            ),
            ignores_clients=client.on_timeout == "ignore",
            horizon_s=s.run.horizon_s,
            retries=Retries(client.max_retries, client.backoff_s, client.retry_budget_ratio, client.retry_layers),
            autoscaler=None if s.autoscaler.policy == "none" else s.autoscaler,
            shed_ttft_s=None if admission.shed is None else admission.shed.ttft_s,
            codel=(order.target_s, order.interval_s) if isinstance(order, Codel) else None,
            lifo_after_s=order.after_s if isinstance(order, AdaptiveLifo) else None,
            throttle=None if client.throttle is None else Throttle(client.throttle.k, client.throttle.window_s),
        )

    @property
    def server_deadlines(self) -> Deadlines:
        """Those at which the server drops a request: its own, and its clients' unless it ignores them."""
        return Deadlines(queue_timeout_s=self.deadlines.queue_timeout_s) if self.ignores_clients else self.deadlines


@dataclass(frozen=True, slots=True)
class FleetRun:
    """What became of a fleet's attempts. Lanes are numbered seed * replicas + replica, in a disaggregated fleet the
    replicas that read prompts before those that write answers."""

    attempts: Attempts
    stall_gaps: Floats
    """(m,): every gap between two tokens that contains a preemption, another stall or the way between two pools,
    seconds."""
    stall_gap_end_s: Floats
    stall_gap_lane: NDArray[np.int32]
    replicas: int
    """Places for replicas that each seed has."""
    horizon_s: Floats
    """(seeds,): where each seed's clock stopped."""
    stages: int = 1
    """Of each replica: above 1 it is a pipeline, whose utilization is that of its stages."""
    lives: Lives | None = None
    """Where an autoscaler rules: when replicas came and went; else all are there all the time."""


def run_fleet(fleet: Fleet, requests: Sequence[Requests], first_seed: int, sink: Sink = lambda log: None) -> FleetRun:
    """Serve each seed's requests. ``requests[i]`` belongs to seed ``first_seed + i``.

    ``sink`` is given the steps as they come, in pieces; a lane's pieces are in order of time. The result depends on the
    fleet, the requests and the seeds alone, not on which lanes run together.
    """
    if fleet.coupled:
        coupled = CoupledGathering(fleet, requests, first_seed, sink)
        run = gathered(fleet, coupled, [coupled.run()], [0])
        return replace(run, lives=coupled.lives(run.attempts, run.horizon_s))
    gathering = (OpenGathering if fleet.decode is None else PooledGathering)(fleet, requests)
    gathering.route(first_seed)
    served, before = [], []
    for lo, hi in _batches(np.diff(gathering.seed_start), fleet.places):
        served.append(gathering.run(lo, hi, sink))
        before.append(lo * fleet.places)
    return gathered(fleet, gathering, served, before)


def run_writers(fleet: Fleet, requests: Sequence[Requests], sink: Sink = lambda log: None) -> FleetRun:
    """Serve requests, each seed's on one replica that only writes: their KV has come when they arrive.

    Deadlines and limits don't count. Answers have two tokens or more, the first of which was made at the arrival.
    """
    gathering = WritingGathering(fleet, requests)
    return gathered(fleet, gathering, [gathering.run(0, len(requests), sink)], [0])


def run_users(fleet: Fleet, users: Sequence[Users], backoff_s: float, sink: Sink = lambda log: None) -> FleetRun:
    """Serve each seed's users in a closed loop; after a refusal a user waits ``backoff_s`` seconds more."""
    gathering = ClosedGathering(fleet, users, backoff_s)
    served = gathering.run(sink)
    return gathered(fleet, gathering, [served], [0])


def gathered(fleet: Fleet, gathering: Gathering, served: list[Served], before: list[int]) -> FleetRun:
    """The run of a fleet from its batches of lanes, each with the number of lanes before it."""
    attempts = gathering.finish_up()
    seeds = attempts.seeds
    return FleetRun(
        attempts,
        np.concatenate([s.stall_gaps for s in served]),
        np.concatenate([s.stall_gap_end_s for s in served]),
        np.concatenate([s.stall_gap_lane + np.int32(n) for s, n in zip(served, before, strict=True)]),
        fleet.places,
        _last_events(attempts) if fleet.horizon_s is None else np.full(seeds, fleet.horizon_s),
        fleet.model.stages,
    )


def _or_never(seconds: float | None) -> float:
    return np.inf if seconds is None else seconds


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
