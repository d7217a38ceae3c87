"""Means and percentiles pooled over seeds, with a 95 % interval from the spread between seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
"""Keys of the summary and the quantiles that they stand for."""


def quantile(ordered: Floats, q: float) -> float:
    """The smallest value with at least share ``q`` of the sample at or below it (NumPy's ``inverted_cdf``).

    ``ordered`` is the sample in ascending order, shape (n,); ``nan`` when it is empty.
    """
    if not ordered.size:
        return float("nan")
    # The product can land a rounding error above a whole number, which would take the next value.
    rank = int(np.ceil(np.round(q * ordered.size, 9)))
    return float(ordered[max(rank, 1) - 1])


def grouped_quantiles(values: Floats, group: NDArray[np.int64], groups: int, qs: Floats) -> Floats:
    """(qs, groups): quantiles of ``values`` (n,) in each group (``inverted_cdf``); ``nan`` for empty groups."""
    order = np.lexsort((values, group))
    sizes = np.bincount(group, minlength=groups)
    start = np.cumsum(sizes) - sizes
    # The product can land a rounding error above a whole number, which would take the next value.
    rank = np.maximum(np.ceil(np.round(qs[:, None] * sizes, 9)).astype(np.int64), 1) - 1
    out = np.full(rank.shape, np.nan)
    filled = np.broadcast_to(sizes > 0, rank.shape)
    out[filled] = values[order][(start + rank)[filled]]
    return out


def half_width(per_seed: Floats) -> float | None:
    """Half of a 95 % interval for the mean of independent per-seed values (Student's t); ``None`` below two values."""
    values = per_seed[~np.isnan(per_seed)]
    if values.size < 2:
        return None
    return float(stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))


def half_widths(by_seed: Floats) -> Floats:
    """The same over the second axis of (k, seeds, n), for each of (k, n); ``nan`` below two values."""
    known = ~np.isnan(by_seed)
    n = known.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, by_seed, 0.0).sum(axis=1) / n
        squares = np.where(known, (by_seed - mean[:, None, :]) ** 2, 0.0).sum(axis=1)
        spread = np.sqrt(squares / (n - 1) / n)
    factor = stats.t.ppf(0.975, np.arange(1, by_seed.shape[1] + 1))
    half: Floats = np.where(n >= 2, factor[np.maximum(n - 2, 0)] * spread, np.nan)
    return half


@dataclass(frozen=True, slots=True)
class Spread:
    """One quantity's figures over all seeds, and the same figures seed by seed."""

    figures: dict[str, float]
    """``mean``, the keys of ``QUANTILES`` and ``max``; ``nan`` where nothing was observed."""
    per_seed: dict[str, Floats]
    """The same keys, each (seeds,)."""
    counts: Floats
    """(seeds,): observations."""

    def as_summary(self) -> dict[str, object]:
        """The summary's entry: figures, and ``ci95`` (``None`` with one seed); ``None`` instead of ``nan``."""
        entry: dict[str, object] = {key: number(value) for key, value in self.figures.items()}
        entry["ci95"] = self.intervals()
        return entry

    def intervals(self) -> dict[str, list[float] | None] | None:
        """95 % interval of the mean and of each quantile, never below zero."""
        seeds = next(iter(self.per_seed.values())).size
        if seeds < 2:
            return None
        out: dict[str, list[float] | None] = {}
        for key in ("mean", *QUANTILES):
            half, value = half_width(self.per_seed[key]), self.figures[key]
            out[key] = None if half is None or np.isnan(value) else [max(0.0, value - half), value + half]
        return out


def spread(values: Floats, seed_start: NDArray[np.int64]) -> Spread:
    """Figures of ``values`` (n,), seconds or any unit, laid seed after seed as ``seed_start`` (seeds + 1,) says."""
    seeds = seed_start.size - 1
    keys = ("mean", *QUANTILES, "max")
    per_seed = {key: np.full(seeds, np.nan) for key in keys}
    ordered = values.copy()
    for i in range(seeds):
        part = ordered[seed_start[i] : seed_start[i + 1]]
        part.sort()
        if part.size:
            per_seed["mean"][i] = part.mean()
            per_seed["max"][i] = part[-1]
            for key, q in QUANTILES.items():
                per_seed[key][i] = quantile(part, q)
    if seeds > 1:
        ordered.sort()
    figures = {key: quantile(ordered, q) for key, q in QUANTILES.items()}
    mean = float(values.mean()) if values.size else float("nan")
    top = float(ordered[-1]) if values.size else float("nan")
    return Spread({"mean": mean, **figures, "max": top}, per_seed, np.diff(seed_start).astype(np.float64))


def number(value: float | None) -> float | None:
    """A JSON number: ``None`` for ``nan`` and infinities."""
    return None if value is None or not np.isfinite(value) else float(value)
