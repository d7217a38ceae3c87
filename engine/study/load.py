"""How the wait grows with the load: the same traffic at other rates, beside what closed forms say.

All rates and repetitions run as lanes of one call. Arrivals are steady, single requests, and nobody is refused or
gives up: a queue in equilibrium is what the closed forms know.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.machine import replica_model
from engine.outcome import half_width, quantile
from engine.scenario import Scenario, Traffic
from engine.serving import LIMITS, Fleet, FleetRun, Routing, StepLog, run_fleet
from engine.theory import allen_cunneen, pollaczek_khinchine
from engine.traffic import Requests, Trace, generate, stream

from .capacity import capacity_rps
from .prompts import prompts_at_once
from .saturated import mix_of, seats_of

Floats = NDArray[np.float64]

LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
"""Rates that are tried, as shares of what the replicas can serve."""
SEEDS = 12
"""Fewer where replicas have many seats."""
_MOST_REPLICAS = 4
_FEWEST = 600
"""Requests that a fully loaded replica gets, at least; as many turns of all its seats, where those are many."""
_TURNS = 8
_WARM_TURNS = 3
_WARM = 0.2
_MOST_A_REPLICA, _MOST = 6_000, 500_000
"""Requests of a fully loaded replica in a run, and of all loads and runs together, about."""
_FEWEST_RUNS = 4
_STEADY = ("deterministic", "poisson", "gamma")


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """Waits until the first step that works on a request, by load; arrays (loads,), seconds."""

    load: Floats
    """Share of the replicas' capacity that arrives."""
    wait_s: Floats
    """Mean."""
    half_width_s: Floats
    """Of its 95 % interval, from the spread over runs."""
    p95_s: Floats
    service_s: Floats
    """Mean time from a request's first step to its last token."""
    seats_s: Floats
    """Allen-Cunneen: as many servers as seats, each as fast as a seat of a full group."""
    single_s: Floats
    """Pollaczek-Khinchine: one server, as fast as the whole group, and one request after the other."""
    seats: int
    """Requests that a fully loaded replica works on."""
    capacity_rps: float
    """Of one replica."""
    own_load: float | None
    """The scenario's average load; ``None`` where its rate isn't known before it runs."""
    replicas: int
    runs: int
    horizon_s: float
    limited_by: str
    """What the queue waits for most of the time at the two highest loads: one of ``LIMITS``, ``none``: nobody waits."""
    busy: Floats
    """Share of the replicas' time in which they were in a step."""


def load_curve(s: Scenario, trace: Trace | None = None) -> LoadCurve | None:
    """The curve of a scenario's requests and machines; ``None`` when none of its requests fits a replica.

    Process ``gamma``, ``deterministic`` and ``poisson`` keep their gaps, others arrive as Poisson; lengths are those of
    the mix, or of the trace; routers that look at load deal out in turn. At most ``_MOST_REPLICAS`` replicas. Raises
    ``ScenarioError`` when the model doesn't fit its hardware.
    """
    model = replica_model(s)
    each, pool = capacity_rps(s, model, trace), mix_of(s, model, trace if s.traffic.process == "trace" else None)
    if not each or not len(pool):
        return None
    seats, replicas = seats_of(s.batching, model, pool), min(s.fleet.replicas, _MOST_REPLICAS)
    warmup, horizon, runs = _length(seats, each, replicas)
    requests = [
        _requests(s, pool, share * each * replicas, horizon, s.run.seed + i) for share in LOADS for i in range(runs)
    ]
    if s.batching.policy != "chunked":
        model = replica_model(s, prompts_at_once(s.batching, requests))
    dealing: Literal["random", "round_robin"] = "random" if s.fleet.routing.policy == "random" else "round_robin"
    fleet = Fleet(model, s.batching, replicas=replicas, routing=Routing(dealing))
    busy, waits = np.zeros(len(requests)), np.zeros(len(LIMITS))

    def watch(log: StepLog) -> None:
        inside, seed = np.maximum(np.minimum(log.t1, horizon) - np.maximum(log.t0, warmup), 0.0), log.lane // replicas
        inside = log.busy(inside)
        busy[:] += np.bincount(seed, inside, busy.size)
        waits[:] += np.bincount(log.limit, inside * (seed >= busy.size - 2 * runs), waits.size)

    there_s = (horizon - warmup) * replicas * model.stages
    run = run_fleet(fleet, requests, s.run.seed, watch)
    seen = _seen(run, warmup, runs)
    return LoadCurve(
        load=np.array(LOADS),
        **_waits(seen),
        seats_s=np.array([_seats_s(share, each, seats, _arrival_scv(s, replicas), seen[share].scv) for share in LOADS]),
        single_s=np.array([pollaczek_khinchine(share * each, 1 / each, seen[share].scv) for share in LOADS]),
        seats=seats,
        capacity_rps=each,
        own_load=_own_load(s, each),
        replicas=replicas,
        runs=runs,
        horizon_s=horizon,
        limited_by=LIMITS[1 + int(waits[1:].argmax())] if waits[1:].any() else LIMITS[0],
        busy=np.minimum(busy.reshape(len(LOADS), runs).mean(axis=1) / there_s, 1.0),
    )


def _length(seats: int, each_rps: float, replicas: int) -> tuple[float, float, int]:
    """End of the warm-up and horizon, seconds, and how many runs of each load there is time for."""
    cut = min(1.0, _MOST_A_REPLICA / ((_WARM_TURNS + _TURNS) * seats))
    warmup = max(_WARM * _FEWEST, cut * _WARM_TURNS * seats) / each_rps
    horizon = warmup + max(_FEWEST, cut * _TURNS * seats) / each_rps
    each_run = horizon * each_rps * replicas * sum(LOADS)
    return warmup, horizon, int(np.clip(_MOST / each_run, _FEWEST_RUNS, SEEDS))


def _requests(s: Scenario, pool: Requests, rate_rps: float, horizon_s: float, seed: int) -> Requests:
    """Steady arrivals at a rate, one by one, with lengths drawn from the mix: the same for every rate."""
    t = s.traffic
    process = t.process if t.process in _STEADY else "poisson"
    plain = Traffic.model_validate({"rate_rps": rate_rps, "process": process, "cv": t.cv})
    arrivals = generate(plain, s.run.model_copy(update={"horizon_s": horizon_s}), seed).arrival_s
    rows = stream(seed, "load").integers(len(pool), size=arrivals.size)
    return Requests(
        arrival_s=arrivals,
        prompt_tokens=pool.prompt_tokens[rows],
        output_tokens=pool.output_tokens[rows],
        cached_prefix_tokens=pool.cached_prefix_tokens[rows],
        class_id=pool.class_id[rows],
        priority=np.zeros(rows.size, np.int32),
        class_names=pool.class_names,
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """Waits and services at one load, and the mean wait of each run."""

    wait: Floats
    service: Floats
    means: Floats

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of the services."""
        return float(self.service.var() / self.service.mean() ** 2) if self.service.size else 0.0


def _seen(run: FleetRun, warmup_s: float, runs: int) -> dict[float, _Seen]:
    """By load: requests that arrived after the warm-up; all of them were served in the end."""
    a, found = run.attempts, {}
    wait, service = a.scheduled_s - a.arrival_s, a.finish_s - a.scheduled_s
    for n, share in enumerate(LOADS):
        start = a.seed_start[n * runs : (n + 1) * runs + 1]
        counted = a.arrival_s >= warmup_s
        waits = [wait[lo:hi][counted[lo:hi]] for lo, hi in pairwise(start)]
        part = slice(int(start[0]), int(start[-1]))
        means = np.array([w.mean() if w.size else np.nan for w in waits])
        found[share] = _Seen(np.sort(wait[part][counted[part]]), service[part][counted[part]], means)
    return found


def _waits(seen: dict[float, _Seen]) -> dict[str, Floats]:
    """Columns of the curve that are measured."""
    each = list(seen.values())
    return {
        "wait_s": np.array([one.wait.mean() if one.wait.size else np.nan for one in each]),
        "half_width_s": np.array([half_width(one.means) or np.nan for one in each]),
        "p95_s": np.array([quantile(one.wait, 0.95) for one in each]),
        "service_s": np.array([one.service.mean() if one.service.size else np.nan for one in each]),
    }


def _seats_s(share: float, each_rps: float, seats: int, arrival_scv: float, service_scv: float) -> float:
    """Every seat is a server that is as slow as in a full group, so that all together serve what the replica can."""
    return allen_cunneen(share * each_rps, seats / each_rps, seats, arrival_scv, service_scv)


def _arrival_scv(s: Scenario, replicas: int) -> float:
    """Of the gaps between the arrivals at one replica: the sum of as many gaps as there are replicas, or a random
    number of them."""
    scv = {"deterministic": 0.0, "gamma": s.traffic.cv**2}.get(s.traffic.process, 1.0)
    return 1.0 + (scv - 1.0) / replicas if s.fleet.routing.policy == "random" else scv / replicas


def _own_load(s: Scenario, each_rps: float) -> float | None:
    """The scenario's average load, if it has a rate."""
    if s.traffic.process in ("trace", "closed") or s.run.horizon_s is None:
        return None
    return s.traffic.rate_rps * s.traffic.shape.mean_factor(s.run.horizon_s) / (each_rps * s.fleet.replicas)
