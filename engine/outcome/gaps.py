"""Gaps between a request's consecutive tokens (ITL): pooled over all requests, and the largest of each request.

Neither is kept while simulating. While a request decodes it gets one token a step, so its gaps are step durations,
and the step log has those: k steps of d, d + slope, ... with n requests decoding are n * k gaps. Gaps that contain a
preemption are logged one by one.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from engine.serving import FleetRun, StepLog

from .spread import QUANTILES, Floats, Spread
from .steps import Steps

_SHIFT = 16
"""float32 bits dropped: 7 of the mantissa stay, so a bucket is at most 1/128 wide and its middle within 0.4 %."""
_FLUSH = 1 << 20


def _bucket(seconds: Floats) -> NDArray[np.int32]:
    """Which bucket each duration lies in: sign, exponent and the first bits of the mantissa, in order of size."""
    return seconds.astype(np.float32).view(np.int32) >> _SHIFT


def _edge(bucket: NDArray[np.int32]) -> Floats:
    """Lower edge of each bucket, seconds."""
    return (bucket << _SHIFT).view(np.float32).astype(np.float64)


class GapHistogram:
    """Gaps counted by seed and bucket; only the buckets between the smallest and the largest seen are kept."""

    def __init__(self, seeds: int) -> None:
        self.seeds, self.low = seeds, 0
        self.count = np.zeros((seeds, 0))
        self.total, self.top = np.zeros(seeds), np.zeros(seeds)
        self._open: list[tuple[NDArray[np.int64], NDArray[np.int32], Floats]] = []
        self._size = 0

    def add_steps(self, steps: Steps) -> None:
        """Count the n * k gaps of each run of steps."""
        last = steps.last
        self.total += np.bincount(
            steps.seed, steps.n * steps.k * (steps.d + steps.slope * (0.5 * (steps.k - 1))), self.seeds
        )
        larger = (last > self.top.take(steps.seed)).nonzero()[0]
        np.maximum.at(self.top, steps.seed[larger], last[larger])
        low, high = _bucket(steps.d), _bucket(last)
        one = low == high
        self._add(steps.seed[one], low[one], (steps.n * steps.k)[one])
        many = ~one
        if many.any():
            wide = Steps(steps.seed[many], steps.n[many], steps.d[many], steps.slope[many], steps.k[many])
            self._add(*_spread_out(wide, low[many], high[many]))

    def spread(self, gaps: Floats, seed: NDArray[np.int64]) -> Spread:
        """Figures of all gaps, those given one by one included: ``gaps`` (m,) of ``seed`` (m,)."""
        self._flush()
        whole = copy(self)  # asked twice, the answer is the same
        whole._open = [(seed, _bucket(gaps), np.ones(gaps.size))] if gaps.size else []
        whole._flush()
        total = self.total + np.bincount(seed, gaps, self.seeds)
        top = self.top.copy()
        np.maximum.at(top, seed, gaps)
        return whole._figures(total, top)

    def _add(self, seed: NDArray[np.int64], bucket: NDArray[np.int32], weight: Floats) -> None:
        if seed.size:
            self._open.append((seed, bucket, weight))
            self._size += seed.size
            if self._size > _FLUSH:
                self._flush()

    def _flush(self) -> None:
        if not self._open:
            return
        seed, bucket, weight = (np.concatenate(column) for column in zip(*self._open, strict=True))
        self._open, self._size = [], 0
        low, high = int(bucket.min()), int(bucket.max()) + 1
        if self.count.size:
            low, high = min(low, self.low), max(high, self.low + self.count.shape[1])
            self.count = np.pad(self.count, ((0, 0), (self.low - low, high - self.low - self.count.shape[1])))
        else:
            self.count = np.zeros((self.seeds, high - low))
        self.low, width = low, high - low
        flat = seed * width + (bucket - low)
        self.count = self.count + np.bincount(flat, weight, self.seeds * width).reshape(self.seeds, width)

    def _figures(self, total: Floats, top: Floats) -> Spread:
        size = self.count.sum(axis=1)
        keys = ("mean", *QUANTILES, "max")
        per_seed = {key: np.full(size.size, np.nan) for key in keys}
        if not size.sum():
            return Spread(dict.fromkeys(keys, float("nan")), per_seed, size)
        edges = _edge(np.arange(self.low, self.low + self.count.shape[1] + 1, dtype=np.int32))
        some, middle = size > 0, 0.5 * (edges[:-1] + edges[1:])
        cumulative = np.cumsum(self.count[some], axis=1)
        pooled = np.cumsum(self.count.sum(axis=0))
        per_seed["mean"][some], per_seed["max"][some] = total[some] / size[some], top[some]
        figures = {"mean": float(total.sum() / size.sum())}
        for key, q in QUANTILES.items():
            at = (cumulative < q * cumulative[:, -1:] * (1 - 1e-12)).sum(axis=1)
            per_seed[key][some] = np.minimum(middle[at], top[some])
            figures[key] = float(min(middle[int((pooled < q * pooled[-1] * (1 - 1e-12)).sum())], top.max()))
        return Spread({**figures, "max": float(top.max())}, per_seed, size)


def _spread_out(
    steps: Steps, low: NDArray[np.int32], high: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
    """Runs whose steps lie in several buckets: (seed, bucket, gaps) with the steps between each bucket's edges."""
    spans = high - low + 1
    entry = np.repeat(np.arange(spans.size), spans)
    bucket = (np.arange(entry.size) - np.repeat(np.cumsum(spans) - spans, spans) + low[entry]).astype(np.int32)
    k = steps.k[entry]
    below = np.ceil((_edge(bucket + 1) - steps.d[entry]) / steps.slope[entry])
    below = np.minimum(np.maximum(below, 0.0), k)
    last = bucket == high[entry]
    below[last] = k[last]
    in_bucket = np.diff(below, prepend=0.0)
    first = bucket == low[entry]
    in_bucket[first] = below[first]
    return steps.seed[entry], bucket, steps.n[entry] * in_bucket


def largest_gaps(run: FleetRun, log: StepLog) -> Floats:
    """(n,): each attempt's largest gap between two of its tokens so far, seconds; ``nan`` with fewer than two tokens.

    ``log`` holds all steps of the run. An attempt sat through its lane's steps after its first token up to its last
    one; the longest of them comes from a sparse table (range maximum, Bender and Farach-Colton 2000). One that was
    still decoding at the horizon sat through the steps up to there, one that waited again after a preemption through
    those before it.
    """
    a = run.attempts
    out = np.full(a.arrival_s.size, np.nan)
    if log.lane.size and run.stages == 1:  # a pipeline notes each request's largest gap itself: its lanes overlap
        _largest_in(log, run, a.seed_index.astype(np.int64) * run.replicas + a.writer, out)
    return np.asarray(np.fmax(out, np.where(a.stall_gap_s > 0, a.stall_gap_s, np.nan)))


def _largest_in(log: StepLog, run: FleetRun, lane_of: NDArray[np.int64], out: Floats) -> None:
    a = run.attempts
    order = np.argsort(log.lane, kind="stable")
    lanes, sizes = np.unique(log.lane, return_counts=True)
    start = np.cumsum(sizes) - sizes
    t1 = log.t1[order]
    happened = (t1 <= run.horizon_s[log.lane[order] // run.replicas]) & (log.decoding[order] > 0)
    longest = np.where(happened, log.longest[order], -np.inf)
    left = a.left_s
    end = np.where(a.last_token_s > 0, a.last_token_s, np.where(np.isnan(left), np.inf, left))
    # Between two pools the first gap is logged by itself, and where the answer is written its steps follow.
    begin = a.first_token_s if a.handover is None else a.handover.resumed_s
    rows = np.flatnonzero(~np.isnan(begin) & (a.output_tokens > 1))
    by_lane = rows[np.argsort(lane_of[rows], kind="stable")]
    cuts = np.searchsorted(lane_of[by_lane], [lanes, lanes + 1])
    first, last = np.zeros((2, by_lane.size), np.int64)
    for j in range(lanes.size):
        mine, part = slice(*cuts[:, j]), t1[start[j] : start[j] + sizes[j]]
        first[mine] = start[j] + np.searchsorted(part, begin[by_lane[mine]], side="right")
        last[mine] = start[j] + np.searchsorted(part, end[by_lane[mine]], side="right") - 1
    some = (last >= first) & np.isin(lane_of[by_lane], lanes)
    out[by_lane[some]] = _range_maximum(longest, first[some], last[some])


def _range_maximum(values: Floats, first: NDArray[np.int64], last: NDArray[np.int64]) -> Floats:
    """Maximum of ``values[first[i]] .. values[last[i]]`` for each i; ``nan`` where that is minus infinity."""
    result = np.empty(first.size)
    if not first.size:
        return result
    level = np.int64(np.floor(np.log2(last - first + 1)))
    table = values
    for depth in range(int(level.max()) + 1):
        if depth:
            half = 1 << (depth - 1)
            table = np.maximum(table[:-half], table[half:])
        at = level == depth
        result[at] = np.maximum(table[first[at]], table[last[at] - (1 << depth) + 1])
    return np.where(np.isfinite(result), result, np.nan)
