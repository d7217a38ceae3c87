"""Gaps between a request's consecutive tokens (ITL): pooled over all requests, and the largest of each request.

Neither is kept while simulating. While a request decodes it gets one token a step, so its gaps are step durations, and the
step log has those: k steps of d, d + slope, ... with n requests decoding are n * k gaps. Gaps that contain a preemption are
logged one by one.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from engine.serving import Attempts, FleetRun, StepLog

from .spread import QUANTILES, Floats, Spread
from .steps import Steps, decoding_steps

_SHIFT = 16
"""float32 bits kept: 7 of the mantissa, so a bucket is at most 1/128 wide and its middle within 0.4 % of any value."""
_OFFSET = int(np.float32(1e-7).view(np.int32)) >> _SHIFT
_BUCKETS = (int(np.float32(1e6).view(np.int32)) >> _SHIFT) - _OFFSET + 1
_EDGES = ((np.arange(_BUCKETS + 1) + _OFFSET) << _SHIFT).astype(np.int32).view(np.float32).astype(np.float64)


def pooled_gaps(run: FleetRun, warmup_s: float) -> Spread:
    """All gaps whose second token came in [warmup_s, horizon]; quantiles within 0.4 %, mean and maximum exact."""
    seeds = run.attempts.seeds
    count = np.zeros(seeds * _BUCKETS)
    total, top = np.zeros(seeds), np.zeros(seeds)
    for log in run.logs:
        _add_steps(decoding_steps(log, run, warmup_s), count, total, top)
    kept = run.stall_gap_end_s >= warmup_s
    gap, seed = run.stall_gaps[kept], run.stall_gap_lane[kept] // run.replicas
    count += np.bincount(seed * _BUCKETS + _bucket(gap), minlength=count.size)
    total += np.bincount(seed, gap, minlength=seeds)
    np.maximum.at(top, seed, gap)
    return _as_spread(count.reshape(seeds, _BUCKETS), total, top)


def _bucket(seconds: Floats) -> NDArray[np.int64]:
    bits = seconds.astype(np.float32).view(np.int32) >> _SHIFT
    return np.clip(bits - _OFFSET, 0, _BUCKETS - 1).astype(np.int64)


def _add_steps(steps: Steps, count: Floats, total: Floats, top: Floats) -> None:
    seed, n, d, slope, k = steps.seed, steps.n, steps.d, steps.slope, steps.k
    last = steps.last
    total += np.bincount(seed, n * k * (d + slope * (0.5 * (k - 1))), minlength=total.size)
    np.maximum.at(top, seed, last)
    low, high = _bucket(d), _bucket(last)
    one = low == high
    count += np.bincount(seed[one] * _BUCKETS + low[one], (n * k)[one], minlength=count.size)
    many = ~one
    if many.any():
        wide = Steps(seed[many], n[many], d[many], slope[many], k[many])
        _add_wide(wide, low[many], high[many], count)


def _add_wide(steps: Steps, low: NDArray[np.int64], high: NDArray[np.int64], count: Floats) -> None:
    """Runs whose steps lie in several buckets: each bucket gets the steps between its edges."""
    spans = high - low + 1
    entry = np.repeat(np.arange(spans.size), spans)
    bucket = np.arange(entry.size) - np.repeat(np.cumsum(spans) - spans, spans) + low[entry]
    k = steps.k[entry]
    below = np.clip(np.ceil((_EDGES[bucket + 1] - steps.d[entry]) / steps.slope[entry]), 0.0, k)
    last = bucket == high[entry]
    below[last] = k[last]
    in_bucket = np.diff(below, prepend=0.0)
    first = bucket == low[entry]
    in_bucket[first] = below[first]
    count += np.bincount(steps.seed[entry] * _BUCKETS + bucket, steps.n[entry] * in_bucket, minlength=count.size)


def _as_spread(count: Floats, total: Floats, top: Floats) -> Spread:
    middle = 0.5 * (_EDGES[:-1] + _EDGES[1:])
    size = count.sum(axis=1)
    keys = ("mean", *QUANTILES, "max")
    per_seed = {key: np.full(size.size, np.nan) for key in keys}
    for i in np.flatnonzero(size > 0):
        per_seed["mean"][i] = total[i] / size[i]
        per_seed["max"][i] = top[i]
        for key, q in QUANTILES.items():
            per_seed[key][i] = _histogram_quantile(count[i], q, middle, top[i])
    pooled = count.sum(axis=0)
    everything = float(pooled.sum())
    if everything == 0:
        return Spread(dict.fromkeys(keys, float("nan")), per_seed, 0)
    figures = {key: _histogram_quantile(pooled, q, middle, float(top.max())) for key, q in QUANTILES.items()}
    mean, largest = float(total.sum()) / everything, float(top.max())
    return Spread({"mean": mean, **figures, "max": largest}, per_seed, int(everything))


def _histogram_quantile(count: Floats, q: float, middle: Floats, top: float) -> float:
    cumulative = np.cumsum(count)
    at = int(np.searchsorted(cumulative, q * cumulative[-1] * (1 - 1e-12)))
    return float(min(middle[min(at, middle.size - 1)], top))


def largest_gaps(run: FleetRun) -> Floats:
    """(n,): each attempt's largest gap between two of its tokens so far, seconds; ``nan`` with fewer than two tokens.

    A completed request sat through the rounds after ``first_round`` up to ``finish_round`` of its lane; the largest step
    among them comes from a sparse table (range maximum, Bender and Farach-Colton 2000). For requests that were cut off by
    the horizon the rounds go up to the lane's last whole one.
    """
    a = run.attempts
    out = np.full(a.arrival_s.size, np.nan)
    lane_of = a.seed_index.astype(np.int64) * run.replicas + a.replica
    for pieces in run.batches:
        if pieces:
            _largest_in(_joined(pieces), run, a, lane_of, out)
    return np.fmax(out, np.where(a.stall_gap_s > 0, a.stall_gap_s, np.nan))


def _joined(pieces: tuple[StepLog, ...]) -> StepLog:
    return StepLog(*(np.concatenate([getattr(p, f.name) for p in pieces]) for f in fields(StepLog)))


def _largest_in(log: StepLog, run: FleetRun, a: Attempts, lane_of: NDArray[np.int64], out: Floats) -> None:
    low = int(log.lane.min())
    lanes = int(log.lane.max()) - low + 1
    order = np.argsort(log.lane, kind="stable")
    sizes = np.bincount(log.lane - low, minlength=lanes)
    start = np.cumsum(sizes) - sizes
    inside = log.t1 <= run.horizon_s[log.lane // run.replicas]
    longest = np.where(inside, log.longest, -np.inf)[order]
    rows = np.flatnonzero((a.first_round >= 0) & (lane_of >= low) & (lane_of < low + lanes) & (a.output_tokens > 1))
    lane = lane_of[rows] - low
    final = np.where(a.finish_round[rows] >= 0, a.finish_round[rows], sizes[lane] - 1)
    first, last = start[lane] + a.first_round[rows] + 1, start[lane] + final
    some = last >= first
    rows, first, last = rows[some], first[some], last[some]
    if not rows.size:
        return
    level = np.int64(np.floor(np.log2(last - first + 1)))
    table = longest
    result = np.empty(rows.size)
    for depth in range(int(level.max()) + 1):
        if depth:
            half = 1 << (depth - 1)
            table = np.maximum(table[:-half], table[half:])
        at = level == depth
        result[at] = np.maximum(table[first[at]], table[last[at] - (1 << depth) + 1])
    out[rows] = np.where(np.isfinite(result), result, np.nan)
