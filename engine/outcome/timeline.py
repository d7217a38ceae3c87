"""The run over time: one row a seed and bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.serving import COMPLETED, LIMITS, REASONS, REJECT_REASONS, REJECTED, TIMED_OUT, FleetRun, StepLog

from .replicas import Replicas
from .spread import Floats, grouped_quantiles
from .steps import ending_before

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
    time of arrival (TTFT of those that completed), ``completed`` and ``timed_out`` by time of leaving (the end for
    those that are still served); all but TTFT are counts. ``queue``, ``running`` and ``kv_usage`` (share of all
    replicas' KV, empty when unlimited) are averages over the bin; ``limited_*`` are shares of the bin's busy time. With
    two pools ``travelling`` are those whose KV is on its way: neither in a queue nor running.
    """
    width = bin_width(float(run.horizon_s.max(initial=0.0)))
    bins = max(1, int(np.ceil(run.horizon_s.max(initial=0.0) / width - 1e-9)))
    grid = _Grid(run, width, bins)
    a = run.attempts
    left = np.where(np.isnan(a.left_s), np.repeat(run.horizon_s, np.diff(a.seed_start)), a.left_s)
    columns: dict[str, NDArray[np.generic]] = {
        "seed": np.repeat(np.arange(a.seeds), bins),
        "t_s": np.tile(np.arange(bins) * width, a.seeds),
        "width_s": grid.length.ravel(),
        "offered": grid.count(a.arrival_s, np.ones(a.arrival_s.size, np.bool_)),
        "completed": grid.count(left, a.state == COMPLETED),
    }
    for reason in REJECT_REASONS:
        columns[f"rejected_{reason}"] = grid.count(left, (a.state == REJECTED) & (a.reason == REASONS.index(reason)))
    columns["timed_out"] = grid.count(left, a.state == TIMED_OUT)
    columns.update(_levels(run, log, grid, left, kv_capacity_tokens))
    columns.update(_replicas(run, grid, capacity_rps))
    columns.update(_ttft(run, grid, ttft_s))
    frame = pd.DataFrame(columns)
    return frame[(frame["width_s"] > 0) | (frame["t_s"] == 0)].reset_index(drop=True)


def _replicas(run: FleetRun, grid: _Grid, capacity_rps: float | None) -> dict[str, NDArray[np.generic]]:
    """Replicas wanted at the end of each bin, and those starting and ready and what these can serve, on average."""
    each = np.nan if capacity_rps is None else capacity_rps
    if run.lives is None:
        ready = np.full(grid.length.size, run.replicas)
        none = np.zeros(grid.length.size, np.int64)
        return {
            "replicas_wanted": ready, "replicas_ready": ready, "replicas_starting": none, "capacity_rps": ready * each,
        }  # fmt: skip
    replicas = Replicas.of(run)
    with np.errstate(invalid="ignore", divide="ignore"):
        ready, starting = (
            grid.presence(spans.seed.astype(np.int32), spans.start_s, spans.end_s) / grid.length.ravel()
            for spans in (replicas.ready, replicas.starting)
        )
    return {
        "replicas_wanted": _wanted(run, grid),
        "replicas_ready": ready,
        "replicas_starting": starting,
        "capacity_rps": ready * each,
    }


def _wanted(run: FleetRun, grid: _Grid) -> NDArray[np.int64]:
    """(seeds * bins,): the last decision up to the end of each bin; before the first, what the run began with."""
    lives = run.lives
    assert lives is not None
    out = np.empty((grid.seeds, grid.bins), np.int64)
    for seed in range(grid.seeds):
        mine = lives.tick_seed == seed
        began = int(((lives.seed == seed) & (lives.ordered_s == 0)).sum())
        wishes = np.concatenate([[began], lives.wanted[mine]])
        out[seed] = wishes[np.searchsorted(lives.tick_s[mine], grid.edges[1:], side="left")]
    return out.ravel()


class _Grid:
    """Seeds times bins, flattened seed after seed."""

    def __init__(self, run: FleetRun, width: float, bins: int) -> None:
        self.run, self.width, self.bins = run, width, bins
        self.seeds = run.attempts.seeds
        self.edges = np.arange(bins + 1) * width
        self.length = np.diff(np.minimum(self.edges[None, :], run.horizon_s[:, None]), axis=1)
        self.last = np.maximum(np.count_nonzero(self.length > 0, axis=1) - 1, 0)

    def slot(self, seed: NDArray[np.int32], time: Floats) -> NDArray[np.int64]:
        """Bin of each (seed, time); a time at a seed's very end belongs to the seed's last bin."""
        return np.asarray(np.minimum((time / self.width).astype(np.int64), self.last[seed]))

    def cell(self, seed: NDArray[np.int32], time: Floats) -> NDArray[np.int64]:
        """Flat index of each (seed, time)."""
        return seed.astype(np.int64) * self.bins + self.slot(seed, time)

    def count(self, time: Floats, at: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(seeds * bins,): events per cell, of those attempts that ``at`` (n,) selects; ``time`` (n,) is when."""
        cell = self.cell(self.run.attempts.seed_index[at], time[at])
        return np.bincount(cell, minlength=self.seeds * self.bins)

    def total(self, cell: NDArray[np.int64], amount: Floats) -> Floats:
        """(seeds * bins,): sums of amounts per cell."""
        return np.asarray(np.bincount(cell, amount, minlength=self.seeds * self.bins), np.float64)

    def presence(self, seed: NDArray[np.int32], start: Floats, end: Floats) -> Floats:
        """(seeds * bins,): seconds of all the intervals [start, end) in each bin together.

        Every bin that an interval touches counts whole, less what it doesn't cover of the first and of the last.
        """
        first, last = self.cell(seed, start), self.cell(seed, end)
        size = self.seeds * self.bins
        touching = np.bincount(first, minlength=size + 1) - np.bincount(last + 1, minlength=size + 1)
        missing = np.bincount(first, start - self.edges[first % self.bins], minlength=size)
        missing += np.bincount(last, self.edges[last % self.bins + 1] - end, minlength=size)
        return np.asarray(np.cumsum(touching)[:size] * self.width - missing)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Runs of steps cut at the edges of bins; all arrays (m,)."""

    entry: NDArray[np.int64]
    """Which entry of the step log."""
    cell: NDArray[np.int64]
    seconds: Floats
    kv_token_s: Floats
    """Integral of the KV tokens held."""

    @classmethod
    def of(cls, run: FleetRun, log: StepLog, grid: _Grid) -> _Pieces:
        """Every step, up to the horizon."""
        seed = log.lane // run.replicas
        end = np.minimum(log.t1, run.horizon_s[seed])
        first = grid.slot(seed, log.t0)
        spans = grid.slot(seed, end) - first + 1
        entry = np.repeat(np.arange(spans.size), spans)
        nth = np.arange(entry.size) - np.repeat(np.cumsum(spans) - spans, spans)
        slot = first[entry] + nth
        begun = np.where(nth > 0, grid.edges[slot], log.t0[entry])
        ended = np.where(nth < spans[entry] - 1, grid.edges[slot + 1], end[entry])
        held = _held_until(ended, log, entry)
        held[nth > 0] -= held[np.flatnonzero(nth > 0) - 1]
        return cls(entry, seed[entry].astype(np.int64) * grid.bins + slot, ended - begun, held)


def _held_until(time: Floats, log: StepLog, entry: NDArray[np.int64]) -> Floats:
    """Integral of the KV tokens held from the start of each entry's first step up to ``time`` (m,).

    Step j holds held + j * tokens and lasts d + j * slope; the sums over j are those of 1, j and j squared.
    """
    t0, d, slope, tokens = log.t0[entry], log.d[entry], log.slope[entry], log.tokens[entry].astype(np.float64)
    held = log.held[entry].astype(np.float64)
    n = ending_before(time, t0, d, slope, log.k[entry].astype(np.float64))
    whole = held * d * n + (held * slope + tokens * d) * (n * (n - 1) / 2)
    whole += tokens * slope * (n * (n - 1) * (2 * n - 1) / 6)
    since = time - (t0 + n * d + slope * (n * (n - 1) / 2))
    return np.asarray(whole + (held + n * tokens) * since)


def _levels(
    run: FleetRun, log: StepLog, grid: _Grid, left_s: Floats, kv_capacity_tokens: int | None
) -> dict[str, NDArray[np.generic]]:
    a = run.attempts
    inside = a.state != REJECTED
    present = grid.presence(a.seed_index[inside], a.arrival_s[inside], left_s[inside])
    pieces = _Pieces.of(run, log, grid)
    running = grid.total(pieces.cell, pieces.seconds * log.running[pieces.entry])
    if a.handover is not None:
        travelling = _travelling(run, grid, left_s)
        present -= travelling
    working = pieces.seconds if log.share.size == 0 else pieces.seconds * log.share[pieces.entry]
    busy, held = grid.total(pieces.cell, working), grid.total(pieces.cell, pieces.kv_token_s)
    length, limit = grid.length.ravel(), log.limit[pieces.entry]
    with np.errstate(invalid="ignore", divide="ignore"):
        out: dict[str, NDArray[np.generic]] = {
            "queue": np.maximum(present - running, 0.0) / length,
            "running": running / length,
            "kv_usage": held / (_working_s(run, grid) * (kv_capacity_tokens or np.nan)),
        }
        if a.handover is not None:
            out["travelling"] = travelling / length
        for code, name in enumerate(LIMITS):
            at = limit == code
            out[f"limited_{name}"] = grid.total(pieces.cell[at], working[at]) / busy
    return out


def _travelling(run: FleetRun, grid: _Grid, left_s: Floats) -> Floats:
    """(seeds * bins,): seconds of all ways between two pools, from the first token until the KV has come."""
    a = run.attempts
    assert a.handover is not None
    sent = ~np.isnan(a.first_token_s) & (a.output_tokens > 1)
    end = np.fmin(a.handover.landed_s, left_s)[sent]
    return grid.presence(a.seed_index[sent], a.first_token_s[sent], end)


def _working_s(run: FleetRun, grid: _Grid) -> Floats:
    """(seeds * bins,): seconds of all replicas that can work together."""
    if run.lives is None:
        return np.asarray(grid.length.ravel() * run.replicas)
    spans = Replicas.of(run).working
    return grid.presence(spans.seed.astype(np.int32), spans.start_s, spans.end_s)


def _ttft(run: FleetRun, grid: _Grid, ttft_s: Floats) -> dict[str, Floats]:
    a = run.attempts
    done = (a.state == COMPLETED) & ~np.isnan(ttft_s)
    cell = grid.cell(a.seed_index[done], a.arrival_s[done])
    figures = grouped_quantiles(ttft_s[done], cell, grid.seeds * grid.bins, np.array(list(TTFT_QUANTILES.values())))
    return dict(zip(TTFT_QUANTILES, figures, strict=True))
