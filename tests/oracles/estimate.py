"""Estimates with intervals from the spread over seeds: of means, shares, percentiles and variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value and its interval at the level asked for, in the quantity's unit."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval; a quantile's reaches farther up than down."""
        return 0.5 * (self.high - self.low)

    @classmethod
    def around(cls, value: float, half_width: float) -> Estimate:
        """A value in the middle of its interval."""
        return cls(value, value - half_width, value + half_width)

    def no_narrower(self, half_width: float) -> Estimate:
        """The same, reaching at least this far to both sides."""
        return Estimate(self.value, min(self.low, self.value - half_width), max(self.high, self.value + half_width))


def ratio(top: NDArray[np.generic], bottom: NDArray[np.generic], luck: Floats, level: float) -> Estimate:
    """sum(top) / sum(bottom), one pair a seed, corrected for the seeds' luck; Student's t at error probability `level`.

    Pooled, so that a seed weighs by what it saw. The spread is that of the linearised ratio, top - value * bottom.
    Where a seed's queue is longer because more work was drawn than expected, regression on `luck`, whose mean is known
    to be zero, says by how much, and what it explains is left out (control variates; Lavenberg and Welch, Management
    Science 27, 1981). That the draws themselves are right is a test of its own (`judge`).
    """
    value = float(top.sum() / bottom.sum())
    residual = (top - value * bottom) / bottom.mean()
    known = luck / np.maximum(luck.std(axis=0), 1e-300)
    design = np.column_stack([np.ones(residual.size), known[:, luck.std(axis=0) > 0]])
    fit = np.linalg.lstsq(design, residual, rcond=None)[0]
    rest = residual - design @ fit
    freedom = residual.size - fit.size
    error = float(np.sqrt(rest @ rest / freedom / residual.size))
    return Estimate.around(value + float(fit[0]), float(stats.t.isf(level / 2.0, freedom)) * error)


def share(
    top: NDArray[np.generic], bottom: NDArray[np.generic], looks: NDArray[np.int64], luck: Floats, level: float
) -> Estimate:
    """A probability, as a ratio; but what n looks (one count a seed) never show may still be -ln(level / 2) / n likely.

    That is the rule of three at another level: a spread over seeds is blind for what no seed has met.
    """
    seen = ratio(top, bottom, luck, level)
    return Estimate.around(seen.value, max(seen.half_width, float(-np.log(level / 2.0) / looks.sum())))


def quantile(values: NDArray[np.float32], count: NDArray[np.int64], q: float, luck: Floats, level: float) -> Estimate:
    """The pooled quantile of `values`, laid seed after seed as `count` (seeds,) says.

    The interval is found in shares: how far the share at or below the quantile varies over seeds says which other
    quantiles of the pooled sample can't be told from it. No seed needs a good estimate of its own. An end that the
    sample doesn't reach is infinite.
    """
    ordered = np.sort(values)

    def at(p: float) -> float:
        rank = int(np.ceil(np.round(p * ordered.size, 9)))
        return float(ordered[rank - 1]) if 1 <= rank <= ordered.size else float(np.copysign(np.inf, p - 0.5))

    below = by_seed(values <= np.float32(at(q)), count)
    found = ratio(below, count, luck, level)
    p = q - (found.value - below.sum() / count.sum())
    return Estimate(at(p), at(p - found.half_width), at(p + found.half_width))


def variance(values: NDArray[np.float32], count: NDArray[np.int64], luck: Floats, level: float) -> Estimate:
    """The variance of `values`, laid seed after seed, about their pooled mean."""
    from_mean = values.astype(np.float64) - values.mean(dtype=np.float64)
    return ratio(by_seed(from_mean**2, count), count, luck, level)


def asymptotic_variance(integrals: Floats, half_s: Floats, level: float) -> Estimate:
    """The limit of T * variance of an average over T, from integrals (seeds, 2) over two halves of a window.

    A finite T falls short by about a constant over T. Twice the figure of the whole window less that of its halves
    cancels it.
    """
    n = half_s.size
    means = integrals / half_s[:, None]
    from_mean = means - means.mean()
    whole = 2.0 * half_s * from_mean.mean(axis=1) ** 2
    halves = half_s * (from_mean**2).mean(axis=1)
    return ratio((2.0 * whole - halves) * n / (n - 1), np.ones(n), np.empty((n, 0)), level)


def by_seed(values: NDArray[np.generic], count: NDArray[np.int64]) -> NDArray[np.generic]:
    """(seeds,): sums of `values`, laid seed after seed as `count` says, none of which is 0."""
    kind = np.float64 if values.dtype.kind == "f" else np.int64
    return np.add.reduceat(values, np.cumsum(count) - count, dtype=kind)
