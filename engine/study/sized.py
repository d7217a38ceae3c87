"""What a service that was sized for the average does in the worst minute, and what being sized for that one takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from engine.machine import replica_model
from engine.outcome import Result, quantile
from engine.scenario import Scenario
from engine.traffic import Trace, clumps, counts, generate

from .capacity import capacity_rps
from .run import simulate

SEEDS = 4
"""Runs of each fleet; what comes on average and in the worst slice is counted over all runs of the scenario."""
_MOST_REQUESTS = 400_000
"""Of all runs together: long runs are counted and simulated fewer times."""
_MOST_REPLICAS = 4096


@dataclass(frozen=True, slots=True)
class SizedFleet:
    """A fixed fleet, and how those fare who come in the worst slice of each run."""

    replicas: int
    kept: float | None
    """Share of all requests after the warm-up for which the first promise was kept; None without one."""
    kept_worst: float | None
    """The same of those who came in the worst slice."""
    p95_s: float | None
    """95th percentile of the first promise's metric, TTFT without one, of all who were answered, seconds."""
    p95_worst_s: float | None
    per_hour: float | None
    """US dollars; None without a price."""


@dataclass(frozen=True, slots=True)
class Sized:
    """The smallest fleets whose replicas can serve the average, and the worst slice."""

    average: SizedFleet
    worst: SizedFleet
    each_rps: float
    """What one replica can serve."""
    rate_rps: float
    worst_rps: float
    slice_s: float
    runs: int


def sized(s: Scenario, trace: Trace | None = None) -> Sized | None:
    """Simulate both fleets, without an autoscaler; ``None`` where nothing arrives or nothing fits, or where users wait
    for their answers and so can't come faster than they are served.

    Raises ``ScenarioError`` and ``TraceError`` as `simulate` does.
    """
    if s.traffic.process == "closed":
        return None
    first = generate(s.traffic, s.run, s.run.seed, trace).arrival_s
    most = max(_MOST_REQUESTS // max(first.size, 1), 1)
    counted, seeds = min(s.run.seeds, most), min(s.run.seeds, most, SEEDS)
    runs = [first, *(generate(s.traffic, s.run, s.run.seed + i, trace).arrival_s for i in range(1, counted))]
    s = s.replace({"run.seeds": seeds, "autoscaler.policy": "none"})
    span = s.run.horizon_s if s.run.horizon_s is not None else float(first[-1]) if first.size else 0.0
    found, each = clumps(runs, span), capacity_rps(s, replica_model(s), trace)
    if not each or found.worst_rps is None:
        return None
    few, many = (min(max(1, ceil(rate / each)), _MOST_REPLICAS) for rate in (found.rate_rps, found.worst_rps))
    average = _fleet(s, few, found.slice_s, span, trace)
    worst = average if many == few else _fleet(s, many, found.slice_s, span, trace)
    return Sized(average, worst, each, found.rate_rps, found.worst_rps, found.slice_s, seeds)


def _fleet(s: Scenario, replicas: int, slice_s: float, span_s: float, trace: Trace | None) -> SizedFleet:
    result = simulate(s.replace({"fleet.replicas": replicas}), trace)
    then = _in_the_worst(result, slice_s, span_s)
    return SizedFleet(
        replicas=replicas,
        kept=_kept(result, result.counted),
        kept_worst=_kept(result, then),
        p95_s=_p95(result, result.observed),
        p95_worst_s=_p95(result, then),
        per_hour=result.cost.per_hour,
    )


def _kept(result: Result, who: NDArray[np.bool_]) -> float | None:
    """Share of some attempts for which the first promise was kept."""
    if not result.scenario.slo:
        return None
    scored = result.scored(result.scenario.slo[0])
    valid = int((scored.valid & who).sum())
    return int((scored.good & who).sum()) / valid if valid else None


def _in_the_worst(result: Result, slice_s: float, span_s: float) -> NDArray[np.bool_]:
    """(attempts,): came in the slice of its run, after the warm-up, in which most first attempts came."""
    a = result.run.attempts
    then = np.zeros(a.arrival_s.size, np.bool_)
    for seed in range(a.seeds):
        part = slice(int(a.seed_start[seed]), int(a.seed_start[seed + 1]))
        times = a.arrival_s[part]
        each = counts(times[a.attempt[part] == 0], slice_s, span_s)
        each[: min(ceil(result.warmup_s / slice_s), max(each.size - 1, 0))] = -1
        at = int(each.argmax()) if each.size else 0
        then[part] = (times >= at * slice_s) & (times < (at + 1) * slice_s)
    return then


def _p95(result: Result, who: NDArray[np.bool_]) -> float | None:
    """Of the first promise's metric, TTFT without one, of those among some attempts who have it."""
    slo = result.scenario.slo
    values = result.metric(slo[0].metric if slo else "ttft")[who]
    values = values[~np.isnan(values)]
    return quantile(np.sort(values), 0.95) if values.size else None
