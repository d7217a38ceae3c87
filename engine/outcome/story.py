"""Will it hold? The facts that a first answer needs, from which a screen or a report makes its sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from engine.machine import step_time_error
from engine.scenario import Objective, Scenario
from engine.serving import REASONS, REJECTED

from .arriving import Arriving, arriving
from .busiest import Busiest, busiest
from .course import Arrivals, Latencies, Refusals, arrivals, bins_of, latencies, refusals
from .fan_out import FanOut, fan_out
from .margin import Doubt, doubt
from .objectives import Attainment
from .overload import Overload, overload
from .places import first_rows, last_rows
from .promises import Terms, terms
from .relief import Relief, relief
from .result import Result
from .spread import Floats, half_width, number, spread

Verdict = Literal[
    "idle", "refused", "unserved", "unpromised", "turned_away", "overloaded", "broken", "busiest", "holds"
]
"""What to say first. idle: nothing arrived. refused: everything was. unserved: no answer was complete. unpromised:
there is no promise to judge. Of broken promises: turned_away when refusals broke most of it, overloaded when more
arrives than can be served, else broken. Of kept ones: busiest when it is broken in the busiest minutes, else holds."""

_TTFT = "ttft"


@dataclass(frozen=True, slots=True)
class Tail:
    """How long a metric takes, over completed requests that arrived after the warm-up, all runs together; seconds."""

    metric: str
    p50: float | None
    p95: float | None
    p95_ci: tuple[float, float] | None
    """95 % interval from the spread over runs; ``None`` with fewer than two."""
    answered: int
    unanswered: int
    """Requests that arrived after the warm-up and didn't complete: no percentile knows of them."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One objective, and how far it was kept."""

    objective: Objective
    attainment: Attainment
    runs_kept: int
    """Runs that kept it on their own."""
    runs: int
    """Runs in which there was anything to judge."""
    busiest: Busiest | None


@dataclass(frozen=True, slots=True)
class Story:
    """What one result says to somebody with half a minute."""

    verdict: Verdict
    promise: Promise | None
    """The scenario's first objective."""
    tail: Tail
    turned_away: float | None
    """Share of the attempts after the warm-up that were refused; ``None`` when nothing arrived."""
    turned_away_ci: tuple[float, float] | None
    """95 % interval from the spread over runs; ``None`` with fewer than two."""
    reasons: dict[str, int]
    """Refused attempts by reason, only reasons that occur, most frequent first."""
    offered_rps: float | None
    """Arrivals per second after the warm-up."""
    fleet_rps: float | None
    """What all replicas together can serve."""
    arrivals: Arrivals
    latencies: Latencies
    refusals: Refusals
    overload: Overload
    relief: Relief | None
    """When help arrived; ``None`` without an autoscaler."""
    terms: Terms | None
    """What the terms of the first promise do; ``None`` without one, and where nobody asked."""
    arriving: Arriving
    summary: dict[str, Any]
    fan_out: FanOut | None = None
    """Calls and actions; ``None`` where every call is an action of its own."""
    doubt: Doubt = field(default_factory=Doubt)
    """Which judgements would turn within the usual error of step times like these; none with a measured profile."""


def story(result: Result, asked: Scenario | None = None, *, with_terms: bool = True) -> Story:
    """The story of a result. ``asked`` is the scenario of which it is the beginning, when the run was cut short: charts
    get the bins of that one. Without ``with_terms`` it takes about two thirds of the time."""
    ran = result.scenario
    horizon = (asked or ran).run.horizon_s
    bins = bins_of(float(result.run.horizon_s.max(initial=0.0)) if horizon is None else horizon)
    promise = _promise(result)
    metric = promise.objective.metric if promise else _TTFT
    arrived = arrivals(result, bins)
    offered = int(result.counted.sum())
    window = float(result.usage.window_s.sum())
    turned_away = int((result.counted & (result.run.attempts.state == REJECTED)).sum())
    rate = offered / window if window > 0 else None
    return Story(
        verdict=_verdict(result, promise, offered, turned_away, rate, arrived.capacity_rps),
        promise=promise,
        tail=_tail(result, metric, result.measured(promise.objective) if promise else result.ttft_s, offered),
        turned_away=turned_away / offered if offered else None,
        turned_away_ci=_turned_away_ci(result, turned_away / offered) if offered else None,
        reasons=_reasons(result),
        offered_rps=rate,
        fleet_rps=arrived.capacity_rps,
        arrivals=arrived,
        latencies=latencies(result, bins, promise.objective if promise else None),
        refusals=refusals(result, bins),
        overload=overload(result, bins),
        relief=relief(result),
        terms=terms(result) if with_terms else None,
        arriving=arriving(result),
        summary=result.summary(),
        fan_out=fan_out(result) if result.scenario.traffic.client.fan_out > 1 else None,
        doubt=_doubt(result, promise, rate, arrived.capacity_rps),
    )


def _promise(result: Result) -> Promise | None:
    if not result.scenario.slo:
        return None
    objective, attainment = result.scenario.slo[0], result.attainments[0]
    judged = attainment.per_seed[~np.isnan(attainment.per_seed)]
    return Promise(
        objective=objective,
        attainment=attainment,
        runs_kept=int((judged >= objective.target).sum()),
        runs=int(judged.size),
        busiest=busiest(result, result.scored(objective)),
    )


def _doubt(result: Result, promise: Promise | None, rate: float | None, fleet_rps: float | None) -> Doubt:
    error = step_time_error(result.scenario)
    if promise is None or promise.attainment.attainment is None or error is None:
        return Doubt()
    return doubt(result, promise.objective, rate, fleet_rps, error.median)


def _verdict(
    result: Result, promise: Promise | None, offered: int, turned_away: int, rate: float | None, capacity: float | None
) -> Verdict:
    if not offered:
        return "idle"
    if turned_away == offered:
        return "refused"
    judged = promise is not None and promise.attainment.attainment is not None
    overloaded = rate is not None and rate > (capacity or 0.0)
    if not result.observed.any() and not (judged and overloaded):
        return "unserved"
    if promise is None or promise.attainment.attainment is None:
        return "unpromised"
    if promise.attainment.attainment < promise.objective.target:
        broken = promise.attainment.valid - promise.attainment.good
        if 2 * _refused(result, promise.objective) >= max(broken, 1):
            return "turned_away"
        return "overloaded" if overloaded else "broken"
    worst = promise.busiest
    if worst is not None and worst.broken is not None and worst.broken > 1.0 - promise.objective.target:
        return "busiest"
    return "holds"


def _refused(result: Result, objective: Objective) -> int:
    """Entries that the promise lost because they were refused; at the client those whose last attempt was."""
    if "rejected" not in objective.failures or objective.measured_at == "server":
        return 0
    a = result.run.attempts
    if objective.measured_at == "gateway":
        return int((result.counted & (a.state == REJECTED)).sum())
    return int((result.counted[first_rows(a)] & (a.state[last_rows(a)] == REJECTED)).sum())


def _tail(result: Result, metric: str, measured: Floats, offered: int) -> Tail:
    values, start = measured[result.observed], result.observed_start
    known = ~np.isnan(values)
    figures = spread(values[known], np.concatenate([[0], np.cumsum(known)])[start])
    interval = (figures.intervals() or {}).get("p95")
    answered = int(result.observed.sum())
    return Tail(
        metric=metric,
        p50=number(figures.figures["p50"]),
        p95=number(figures.figures["p95"]),
        p95_ci=(interval[0], interval[1]) if interval else None,
        answered=answered,
        unanswered=offered - answered,
    )


def _turned_away_ci(result: Result, share: float) -> tuple[float, float] | None:
    a = result.run.attempts
    offered = np.bincount(a.seed_index[result.counted], minlength=a.seeds).astype(np.float64)
    refused = np.bincount(a.seed_index[result.counted & (a.state == REJECTED)], minlength=a.seeds)
    shares = np.divide(refused, offered, out=np.full(a.seeds, np.nan), where=offered > 0)
    half = half_width(shares)
    return None if half is None else (max(0.0, share - half), min(1.0, share + half))


def _reasons(result: Result) -> dict[str, int]:
    a = result.run.attempts
    count = np.bincount(a.reason[result.counted & (a.state == REJECTED)], minlength=len(REASONS))
    order = np.argsort(-count, kind="stable")
    return {REASONS[code]: int(count[code]) for code in order if count[code]}
