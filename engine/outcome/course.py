"""How a run goes over time, as charts show it: arrivals of one run, latencies and refusals of all runs together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scenario import Objective
from engine.serving import COMPLETED, REASONS, REJECTED, TIMED_OUT

from .places import asked_s
from .result import Result
from .spread import Floats, grouped_quantiles, half_widths

_QUANTILES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_WIDTHS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600)
_MOST_BINS = 120
"""More can't be told apart on a screen, and each needs enough requests for a percentile."""


@dataclass(frozen=True, slots=True)
class Bins:
    """Equal bins from 0 on; the last one may be cut short by a run's end."""

    width_s: float
    start_s: Floats
    """(bins,): where each bin begins."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Requests per second, bin by bin, against what the fleet can serve."""

    bins: Bins
    rate_rps: Floats
    """(bins,): of the first run."""
    seed: int
    """Which run that is."""
    capacity_rps: float | None
    """Of all replicas, on average; ``None`` when nothing fits, so nothing can be served."""
    capacity_course_rps: Floats | None
    """(bins,): of the replicas that were ready in the first run; ``None`` where they are always the same."""
    above_s: float
    """Seconds after the warm-up in which more arrived than can be served, bin by bin; mean over runs."""
    window_s: float
    """Length of a run after the warm-up; mean over runs."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Percentiles of a metric by time of arrival, over the completed requests of all runs; seconds."""

    bins: Bins
    figures: dict[str, Floats]
    """``p50``, ``p95`` and ``p99``, each (bins,); ``nan`` where nobody who arrived completed."""
    low: dict[str, Floats]
    """Lower ends of 95 % intervals from the spread over runs, same keys; ``nan`` with fewer than two runs."""
    high: dict[str, Floats]
    worst_s: float
    """The highest p95 of a bin after the warm-up, ``nan`` without any."""
    worst_at_s: float
    """The middle of that bin."""
    broken_s: float | None
    """Seconds after the warm-up, bin by bin, in which the promise was kept for fewer than its target; ``None`` without
    a promise."""
    silent_from_s: float | None
    """When the arrivals begin of whom nobody has completed by the end; ``None`` when that is less than three bins."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """Who got no answer, by time of arrival, as shares of what arrived in all runs together."""

    bins: Bins
    shares: dict[str, Floats]
    """By reason, (bins,) each, only reasons that occur; ``nan`` where nobody arrived."""
    worst: float
    """The highest total of a bin after the warm-up."""
    worst_at_s: float


def bins_of(horizon_s: float) -> Bins:
    """Round bins, at most 120, that cover [0, horizon_s)."""
    width = next((w for w in _WIDTHS_S if horizon_s <= w * _MOST_BINS), _WIDTHS_S[-1])
    return Bins(float(width), np.arange(max(1, int(np.ceil(horizon_s / width - 1e-9))), dtype=np.float64) * width)


def arrivals(result: Result, bins: Bins) -> Arrivals:
    """Arrivals of the first run, and how long they were more than the fleet can serve, in all runs."""
    a, horizon = result.run.attempts, result.run.horizon_s
    rate = np.full((a.seeds, bins.start_s.size), np.nan)
    length = _lengths(bins, horizon)
    counts = np.bincount(_cell(bins, a.seed_index, a.arrival_s), minlength=rate.size).reshape(rate.shape)
    np.divide(counts, length, out=rate, where=length > 0)
    each = result.capacity_rps
    can = _ready(result, bins) * (each or 0.0)
    after = bins.start_s >= result.warmup_s
    above = np.where(rate > can, length, 0.0)[:, after]
    return Arrivals(
        bins=bins,
        rate_rps=rate[0],
        seed=result.first_seed,
        capacity_rps=None if each is None else each * result.replicas.mean_ready(0.0, horizon),
        capacity_course_rps=None if result.run.lives is None or each is None else can[0],
        above_s=float(above.sum(axis=1).mean()),
        window_s=float(np.maximum(horizon - result.warmup_s, 0.0).mean()),
    )


def _ready(result: Result, bins: Bins) -> Floats:
    """(seeds, bins): replicas that took requests in the middle of each bin."""
    seeds = result.run.horizon_s.size
    if result.run.lives is None:
        return np.full((seeds, bins.start_s.size), float(result.run.replicas))
    middle = bins.start_s + bins.width_s / 2
    return np.array([result.replicas.ready.count(seed, middle) for seed in range(seeds)], np.float64)


def latencies(result: Result, bins: Bins, objective: Objective | None) -> Latencies:
    """The course of the objective's metric, TTFT without one, and of the promise itself."""
    a, many = result.run.attempts, bins.start_s.size
    values = result.measured(objective) if objective else result.ttft_s
    seen = (a.state == COMPLETED) & ~np.isnan(values)
    slot = _slot(bins, (asked_s(objective, a) if objective else a.arrival_s)[seen])
    cell = a.seed_index[seen].astype(np.int64) * many + slot
    qs = np.array(list(_QUANTILES.values()))
    pooled = grouped_quantiles(values[seen], slot, many, qs)
    by_seed = grouped_quantiles(values[seen], cell, a.seeds * many, qs).reshape(qs.size, a.seeds, many)
    half = half_widths(by_seed)
    p95 = np.where(bins.start_s >= result.warmup_s, pooled[1], np.nan)
    some = not np.isnan(p95).all()
    at = int(np.nanargmax(p95)) if some else 0
    return Latencies(
        bins=bins,
        figures=dict(zip(_QUANTILES, pooled, strict=True)),
        low=dict(zip(_QUANTILES, np.maximum(pooled - half, 0.0), strict=True)),
        high=dict(zip(_QUANTILES, pooled + half, strict=True)),
        worst_s=float(p95[at]) if some else float("nan"),
        worst_at_s=float(bins.start_s[at]) + bins.width_s / 2,
        broken_s=None if objective is None else _broken_s(result, bins, objective),
        silent_from_s=_silent_from(result, bins, slot),
    )


def _broken_s(result: Result, bins: Bins, objective: Objective) -> float:
    a, scored = result.run.attempts, result.scored(objective)
    slot = _slot(bins, a.arrival_s)
    valid = np.bincount(slot[scored.valid], minlength=bins.start_s.size)
    good = np.bincount(slot[scored.good], minlength=bins.start_s.size)
    broken = (good < objective.target * valid - 1e-9) & (bins.start_s >= result.warmup_s)
    return float(_lengths(bins, result.run.horizon_s).max(axis=0)[broken].sum())


def _silent_from(result: Result, bins: Bins, answered: NDArray[np.int64]) -> float | None:
    """``answered``: the bin of each request that completed."""
    last_arrival = int(_slot(bins, result.run.attempts.arrival_s).max(initial=-1))
    first_silent = int(answered.max(initial=-1)) + 1
    return float(bins.start_s[first_silent]) if last_arrival - first_silent >= 2 else None


def refusals(result: Result, bins: Bins) -> Refusals:
    """Refused and timed-out requests, by reason, as shares of the arrivals of each bin."""
    a, many = result.run.attempts, bins.start_s.size
    slot = _slot(bins, a.arrival_s)
    offered = np.bincount(slot, minlength=many).astype(np.float64)
    lost = (a.state == REJECTED) | (a.state == TIMED_OUT)
    shares: dict[str, Floats] = {}
    for code in np.unique(a.reason[lost]):
        count = np.bincount(slot[lost & (a.reason == code)], minlength=many)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares[REASONS[code]] = count / offered
    total = np.sum(list(shares.values()), axis=0) if shares else np.zeros(many)
    total = np.where((bins.start_s >= result.warmup_s) & (offered > 0), total, 0.0)
    at = int(np.argmax(total))
    return Refusals(bins, shares, float(total[at]), float(bins.start_s[at]) + bins.width_s / 2)


def _lengths(bins: Bins, horizon_s: Floats) -> Floats:
    """(seeds, bins): how much of each bin lies before each seed's end."""
    return np.clip(horizon_s[:, None] - bins.start_s, 0.0, bins.width_s)


def _slot(bins: Bins, time_s: Floats) -> NDArray[np.int64]:
    return np.clip((time_s / bins.width_s).astype(np.int64), 0, bins.start_s.size - 1)


def _cell(bins: Bins, seed: NDArray[np.int32], time_s: Floats) -> NDArray[np.int64]:
    return seed.astype(np.int64) * bins.start_s.size + _slot(bins, time_s)
