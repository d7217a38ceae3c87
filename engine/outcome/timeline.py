"""The run over time: one row a seed and bin."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.serving import COMPLETED, LIMITS, REASONS, REJECT_REASONS, REJECTED, TIMED_OUT, FleetRun, StepLog

from .spread import Floats, quantile

_WIDTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600)
_MOST_BINS = 200
TTFT_QUANTILES = {"ttft_p50": 0.5, "ttft_p95": 0.95, "ttft_p99": 0.99}


def bin_width(horizon_s: float) -> float:
    """A round width in seconds that cuts the horizon into at most 200 bins."""
    return next((w for w in _WIDTHS if horizon_s <= w * _MOST_BINS), float(_WIDTHS[-1]))


def timeline(
    run: FleetRun, log: StepLog, ttft_s: Floats, kv_capacity_tokens: int | None, capacity_rps: float | None
) -> pd.DataFrame:
    """One row a (seed index, bin), the last bin of a seed ending at its horizon.

    ``t_s`` is the bin's start and ``width_s`` its length. ``offered``, ``rejected_*`` and the TTFT percentiles are by
    time of arrival (TTFT of those that completed), ``completed`` and ``timed_out`` by time of leaving; all are
    counts. ``queue``, ``running`` and ``kv_usage`` (share of all replicas' KV, empty when unlimited) are averages
    over the bin; ``limited_*`` are shares of the bin's busy time.
    """
    width = bin_width(float(run.horizon_s.max(initial=0.0)))
    bins = max(1, int(np.ceil(run.horizon_s.max(initial=0.0) / width - 1e-9)))
    grid = _Grid(run, width, bins)
    a = run.attempts
    columns: dict[str, NDArray[np.generic]] = {
        "seed": np.repeat(np.arange(a.seeds), bins),
        "t_s": np.tile(np.arange(bins) * width, a.seeds),
        "width_s": grid.length.ravel(),
        "offered": grid.count(a.arrival_s),
        "completed": grid.count(a.left_s[a.state == COMPLETED], a.state == COMPLETED),
    }
    for reason in REJECT_REASONS:
        at = (a.state == REJECTED) & (a.reason == REASONS.index(reason))
        columns[f"rejected_{reason}"] = grid.count(a.left_s[at], at)
    late = a.state == TIMED_OUT
    columns["timed_out"] = grid.count(a.left_s[late], late)
    columns.update(_levels(run, log, grid, kv_capacity_tokens))
    ready = np.full(grid.length.size, run.replicas)
    columns["replicas_wanted"] = columns["replicas_ready"] = ready
    columns["replicas_starting"] = np.zeros(grid.length.size, np.int64)
    columns["capacity_rps"] = np.full(grid.length.size, np.nan if capacity_rps is None else capacity_rps * run.replicas)
    columns.update(_ttft(run, grid, ttft_s))
    frame = pd.DataFrame(columns)
    return frame[frame["width_s"] > 0].reset_index(drop=True)


class _Grid:
    """Seeds times bins, flattened seed after seed."""

    def __init__(self, run: FleetRun, width: float, bins: int) -> None:
        self.run, self.width, self.bins = run, width, bins
        self.seeds = run.attempts.seeds
        self.edges = np.arange(bins + 1) * width
        self.length = np.diff(np.minimum(self.edges[None, :], run.horizon_s[:, None]), axis=1)

    def cell(self, seed: NDArray[np.int32], time: Floats) -> NDArray[np.int64]:
        """Flat index of each (seed, time); a time at the very end belongs to the last bin."""
        return seed.astype(np.int64) * self.bins + np.clip((time / self.width).astype(np.int64), 0, self.bins - 1)

    def count(self, time: Floats, at: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Events per cell; ``at`` selects the attempts that the times belong to."""
        seed = self.run.attempts.seed_index
        return np.bincount(self.cell(seed if at is None else seed[at], time), minlength=self.seeds * self.bins)

    def integral(self, seed: NDArray[np.int32], start: Floats, end: Floats, height: Floats) -> Floats:
        """(seeds * bins,): integral of sum(height on [start, end)) over each bin, heights times seconds.

        The integral up to an edge x is the sum of height * (x - start) over the intervals begun, less the same for
        those ended: two cumulative sums.
        """
        total = np.zeros((self.seeds, self.bins + 1))
        for time, sign in ((start, 1.0), (end, -1.0)):
            at = np.minimum((time / self.width).astype(np.int64), self.bins - 1)
            flat = seed * (self.bins + 1) + at + 1
            size = self.seeds * (self.bins + 1)
            n = np.bincount(flat, height, minlength=size).reshape(self.seeds, -1).cumsum(axis=1)
            nt = np.bincount(flat, height * time, minlength=size).reshape(self.seeds, -1).cumsum(axis=1)
            total += sign * (self.edges * n - nt)
        return np.maximum(np.diff(total, axis=1), 0.0).ravel()


def _levels(run: FleetRun, log: StepLog, grid: _Grid, kv_capacity_tokens: int | None) -> dict[str, NDArray[np.generic]]:
    a = run.attempts
    horizon = np.repeat(run.horizon_s, np.diff(a.seed_start))
    inside = a.state != REJECTED
    left = np.where(np.isnan(a.left_s), horizon, a.left_s)[inside]
    present = grid.integral(a.seed_index[inside], a.arrival_s[inside], left, np.ones(left.size))
    seed = log.lane // run.replicas
    start, end = log.t0, np.minimum(log.t1, run.horizon_s[seed])
    running = grid.integral(seed, start, end, log.worked.astype(np.float64))
    busy = grid.integral(seed, start, end, np.ones(start.size))
    held = grid.integral(seed, start, end, log.held + 0.5 * log.tokens * (log.k - 1))
    length = grid.length.ravel()
    with np.errstate(invalid="ignore", divide="ignore"):
        out: dict[str, NDArray[np.generic]] = {
            "queue": np.maximum(present - running, 0.0) / length,
            "running": running / length,
            "kv_usage": held / length / (run.replicas * (kv_capacity_tokens or np.nan)),
        }
        for code, name in enumerate(LIMITS):
            at = log.limit == code
            out[f"limited_{name}"] = grid.integral(seed[at], start[at], end[at], np.ones(int(at.sum()))) / busy
    return out


def _ttft(run: FleetRun, grid: _Grid, ttft_s: Floats) -> dict[str, Floats]:
    a = run.attempts
    done = (a.state == COMPLETED) & ~np.isnan(ttft_s)
    cell = grid.cell(a.seed_index[done], a.arrival_s[done])
    order = np.lexsort((ttft_s[done], cell))
    ordered, sizes = ttft_s[done][order], np.bincount(cell, minlength=grid.seeds * grid.bins)
    start = np.cumsum(sizes) - sizes
    out = {key: np.full(sizes.size, np.nan) for key in TTFT_QUANTILES}
    for i in np.flatnonzero(sizes):
        part = ordered[start[i] : start[i] + sizes[i]]
        for key, q in TTFT_QUANTILES.items():
            out[key][i] = quantile(part, q)
    return out
