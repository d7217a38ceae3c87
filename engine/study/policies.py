"""The same traffic on the same accelerators under each batching policy.

All run over the same seconds with the same seeds, so that a difference is the policy's and not the draw's. Two pools
can share the replicas out in as many ways as there are replicas but one; the best of them is compared, and which one
that is depends on the traffic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from engine.machine import replica_model
from engine.outcome import Result, Spread, half_width, spread
from engine.scenario import Scenario, ScenarioError
from engine.traffic import Trace

from .capacity import pool_rates
from .run import simulate
from .suggest import shortened

PolicyName = Literal["chunked", "prefill_first", "static", "disaggregated"]
POLICIES: tuple[PolicyName, ...] = ("chunked", "prefill_first", "static", "disaggregated")
REQUESTS_PER_REPLICA = 600
SEEDS = 8
FEW_SEEDS = 2
"""Of the search for the best split; the one that is found runs with all."""
MOST_SPLITS = 12
"""Splits that are tried; of larger fleets those that can complete most."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, and its 95 % interval from the spread over runs; ``None`` where there is nothing to measure, and an
    interval's ends with fewer than two runs, or of a maximum."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """One way to share the replicas out to two pools, and how it did in the search."""

    prefill_replicas: int
    decode_replicas: int
    attainment: float | None
    """Of the first promise; ``None`` without one."""
    goodput_rps: float
    mean_e2e_s: float | None
    """Of those who were answered."""
    keeps_up: bool
    """Whether both pools complete what comes on average: else one's queue grows as long as the run lasts."""

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Higher is better: first those that keep up, then answers in time, then how long answers take.

        The share that keeps the promise would choose, where that is about first words, as many readers as there are.
        """
        return (self.keeps_up, self.goodput_rps, -(np.inf if self.mean_e2e_s is None else self.mean_e2e_s))


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """What becomes of a scenario's requests under one policy. Latencies are those of completed requests."""

    policy: PolicyName
    changes: dict[str, Any]
    """What `Scenario.replace` takes to use it."""
    replicas: int
    accelerators: int
    ttft_s: dict[str, Figure]
    """``p50``, ``p95``, ``p99``."""
    itl_s: dict[str, Figure]
    """``p95``, ``p99`` of all gaps between two tokens; with two pools the way between them is in the first gap."""
    stall_s: dict[str, Figure]
    """``p50``, ``p95``, ``p99`` and ``max`` of each request's longest gap."""
    output_tokens_per_s: Figure
    attainment: Figure | None
    """Share of requests that kept the first promise; ``None`` without one, or with nothing to judge."""
    goodput_rps: float
    capacity_rps: float | None
    """Requests per second that the whole fleet can complete."""
    answered: int
    unanswered: int
    """Requests that came after the warm-up and didn't complete: no latency knows of them."""
    split: Split | None
    """With two pools the best split."""
    splits: tuple[Split, ...]
    """All that were tried, fewest prefill replicas first."""
    runs: int
    horizon_s: float
    """Simulated seconds of each run."""


def policy_outcome(
    s: Scenario,
    policy: PolicyName,
    trace: Trace | None = None,
    *,
    requests_per_replica: int = REQUESTS_PER_REPLICA,
    seeds: int = SEEDS,
) -> PolicyOutcome:
    """What becomes of the beginning of a scenario's runs, or of all of them where they are short, under a policy.

    Everything but the policy and, for two pools, who does what stays as it is. Raises ``ScenarioError`` when the policy
    doesn't go with the scenario's other settings, or its fleet is too small for two pools; otherwise ``ScenarioError``
    and ``TraceError`` as `simulate` does.
    """
    short = shortened(s, trace, requests_per_replica, seeds)
    if policy != "disaggregated":
        changes: dict[str, Any] = {"batching.policy": policy, "fleet.replicas": s.replicas}
        return _outcome(policy, changes, simulate(short.replace(changes), trace), None, ())
    if s.replicas < 2:
        raise ScenarioError.of(
            "fleet.replicas", str(s.replicas), "is too few for two pools of replicas", "use 2 or more"
        )
    quick = short.replace({"run.seeds": min(short.run.seeds, FEW_SEEDS)})
    tried = tuple(_try(quick, prefill, trace) for prefill in _candidates(quick, trace))
    best = max(tried, key=lambda split: split.rank)
    changes = _changes(best.prefill_replicas, s.replicas)
    return _outcome(policy, changes, simulate(short.replace(changes), trace), best, tried)


def _changes(prefill: int, replicas: int) -> dict[str, Any]:
    pools = "batching.disaggregated"
    return {
        "batching.policy": "disaggregated",
        f"{pools}.prefill_replicas": prefill,
        f"{pools}.decode_replicas": replicas - prefill,
    }


def _candidates(s: Scenario, trace: Trace | None) -> list[int]:
    """Numbers of prefill replicas to try."""
    every = range(1, s.replicas)
    if len(every) <= MOST_SPLITS:
        return list(every)
    apart = s.replace(_changes(1, s.replicas))
    rates = pool_rates(apart, replica_model(apart), trace)
    if rates is None:
        return [s.replicas // 2]
    return sorted(sorted(every, key=lambda n: -rates.fleet_rps(n, s.replicas - n))[:MOST_SPLITS])


def _try(s: Scenario, prefill: int, trace: Trace | None) -> Split:
    result = simulate(s.replace(_changes(prefill, s.replicas)), trace)
    mean = result.latency["e2e"].figures["mean"]
    return Split(
        prefill_replicas=prefill,
        decode_replicas=s.replicas - prefill,
        attainment=result.attainments[0].attainment if result.attainments else None,
        goodput_rps=result.throughput["goodput_per_s"] or 0.0,
        mean_e2e_s=None if np.isnan(mean) else mean,
        keeps_up=result.capacity_rps is None or _offered_rps(result) <= result.capacity_rps * s.replicas,
    )


def _offered_rps(result: Result) -> float:
    """Requests per second in the window."""
    return float(result.counted.sum() / max(result.usage.window_s.sum(), 1e-9))


def _outcome(
    policy: PolicyName, changes: dict[str, Any], result: Result, split: Split | None, splits: tuple[Split, ...]
) -> PolicyOutcome:
    replicas, answered = result.scenario.replicas, int(result.observed.sum())
    return PolicyOutcome(
        policy=policy,
        changes=changes,
        replicas=replicas,
        accelerators=replicas * result.model.accelerators,
        ttft_s=_figures(result.latency["ttft"], "p50", "p95", "p99"),
        itl_s=_figures(result.latency["itl"], "p95", "p99"),
        stall_s=_figures(_stalls(result), "p50", "p95", "p99", "max"),
        output_tokens_per_s=_tokens(result),
        attainment=_attainment(result),
        goodput_rps=result.throughput["goodput_per_s"] or 0.0,
        capacity_rps=None if result.capacity_rps is None else result.capacity_rps * replicas,
        answered=answered,
        unanswered=int(result.counted.sum()) - answered,
        split=split,
        splits=splits,
        runs=result.run.attempts.seeds,
        horizon_s=float(result.run.horizon_s.max(initial=0.0)),
    )


def _figures(told: Spread, *keys: str) -> dict[str, Figure]:
    intervals = told.intervals() or {}
    return {key: _figure(told.figures[key], intervals.get(key)) for key in keys}


def _figure(value: float, interval: list[float] | None) -> Figure:
    if np.isnan(value):
        return Figure(None)
    return Figure(float(value), *(interval or (None, None)))


def _stalls(result: Result) -> Spread:
    """The longest gap of each completed request that has one, requests of the window."""
    longest, start = result.metric("max_itl")[result.observed], result.observed_start
    known = ~np.isnan(longest)
    return spread(longest[known], np.concatenate([[0], np.cumsum(known)])[start])


def _tokens(result: Result) -> Figure:
    window = result.usage.window_s
    rate, half = result.throughput["output_tokens_per_s"], None
    if rate is None:
        return Figure(None)
    if window.min() > 0:
        half = half_width(result.tokens_made / window)
    return Figure(rate) if half is None else Figure(rate, max(0.0, rate - half), rate + half)


def _attainment(result: Result) -> Figure | None:
    if not result.attainments or result.attainments[0].attainment is None:
        return None
    judged = result.attainments[0]
    return _figure(judged.attainment or 0.0, judged.ci95)
