"""Attainment against the threshold, and the strictest threshold that is kept: from one run, without another.

An attempt's time doesn't depend on what was promised, so a run can be judged at every threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.outcome.spread import Floats, half_width, half_widths

from .entries import Entries

_POINTS = 80
_SPAN = (0.4, 0.9995)
"""Quantiles between which the curve is drawn: promises are made about the slower ones."""
_JUDGED = 0.5
"""Share of requests that must be old enough to judge, or a threshold says nothing about the run."""


@dataclass(frozen=True, slots=True)
class Tally:
    """One run's entries, ready to be judged at any threshold; seconds, ascending."""

    known: Floats
    """Times of those whose time is known and counts."""
    lost: int
    """Bad whatever the threshold."""
    ages: Floats
    """Ages of those still under way whose time isn't known: bad once they are as old as the threshold."""

    def at(self, threshold_s: Floats) -> tuple[Floats, Floats]:
        """(good, valid), shaped like ``threshold_s``, as `score` and `attain` count them."""
        good = np.searchsorted(self.known, threshold_s, side="right")
        overdue = self.ages.size - np.searchsorted(self.ages, threshold_s, side="left")
        return np.asarray(good, np.float64), np.asarray(self.known.size + self.lost + overdue, np.float64)


def tallies(found: Entries) -> tuple[Tally, ...]:
    """A tally for each run."""
    pairs = pairwise(found.start.tolist())
    return tuple(_tally(found.took_s[i:j], found.age_s[i:j]) for i, j in pairs)


def _tally(took_s: Floats, age_s: Floats) -> Tally:
    pending, lost = np.isnan(took_s), np.isinf(took_s)
    return Tally(np.sort(took_s[~pending & ~lost]), int(lost.sum()), np.sort(age_s[pending]))


def together(parts: Sequence[Tally]) -> Tally:
    """All runs as one."""
    known, ages = (np.sort(np.concatenate([getattr(t, name) for t in parts])) for name in ("known", "ages"))
    return Tally(known, sum(t.lost for t in parts), ages)


def strictest_of(tally: Tally, target: float) -> float | None:
    """The smallest threshold, seconds, at which the target is met; ``None`` where none of the times seen does.

    A share grows with the threshold, as more are good and fewer old enough to be overdue; it can only step up at a time
    that somebody took. ``None`` too where half of the requests are too young to judge at that threshold.
    """

    def met(threshold_s: float) -> bool:
        good, valid = tally.at(np.array([threshold_s]))
        return bool(valid[0] > 0 and good[0] / valid[0] >= target)

    found = least(tally.known, met)
    if found is None:
        return None
    judged = tally.at(np.array([found]))[1][0]
    return found if judged >= _JUDGED * (tally.known.size + tally.lost + tally.ages.size) else None


def least(times_s: Floats, met: Callable[[float], bool]) -> float | None:
    """The first of ascending times (n,) at which ``met``, which stays so; ``None``: at none."""
    low, high = -1, times_s.size - 1
    if high < 0 or not met(float(times_s[high])):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(float(times_s[middle])) else (middle, high)
    return float(times_s[high])


@dataclass(frozen=True, slots=True)
class Strictest:
    """The strictest threshold that a run keeps at a target; seconds."""

    target: float
    threshold_s: float | None
    """All runs together; ``None``: no threshold is kept."""
    ci95_s: tuple[float, float] | None
    """Interval from the spread over runs; ``None`` with fewer than two, or where some have none."""
    runs_kept: int
    """Runs that keep it on their own."""
    runs: int


def strictest(parts: Sequence[Tally], target: float) -> Strictest:
    """From the runs' tallies."""
    found = strictest_of(together(parts), target)
    judged = [tally for tally in parts if tally.known.size + tally.lost + tally.ages.size]
    if found is None:
        return Strictest(target, None, None, 0, len(judged))
    each = [strictest_of(tally, target) for tally in judged]
    half = half_width(np.array([np.nan if t is None else t for t in each])) if None not in each else None
    at = [tally.at(np.array([found])) for tally in judged]
    kept = sum(bool(valid[0] > 0 and good[0] / valid[0] >= target) for good, valid in at)
    interval = None if half is None else (max(0.0, found - half), found + half)
    return Strictest(target, found, interval, kept, len(judged))


@dataclass(frozen=True, slots=True)
class Curve:
    """Attainment against the threshold; all (points,), thresholds in seconds, ascending."""

    threshold_s: Floats
    share: Floats
    low: Floats
    """95 % interval from the spread over runs; ``nan`` with fewer than two."""
    high: Floats


def curve(parts: Sequence[Tally], *marks: float) -> Curve | None:
    """The curve over where most times lie, ``marks`` among its points; ``None`` where no time is known."""
    whole = together(parts)
    positive = whole.known[whole.known > 0]
    if not positive.size:
        return None
    ends = [float(positive[min(int(q * positive.size), positive.size - 1)]) for q in _SPAN]
    inside = [mark for mark in marks if mark > 0]
    low, high = min([ends[0], *(0.8 * m for m in inside)]), max([ends[1], *(1.25 * m for m in inside)])
    at = np.unique(np.concatenate([np.geomspace(low, max(high, low * 1.01), _POINTS), inside]))
    share = _share(whole, at)
    each = np.array([_share(tally, at) for tally in parts])
    half = half_widths(each[None])[0]
    return Curve(at, share, np.maximum(share - half, 0.0), np.minimum(share + half, 1.0))


def _share(tally: Tally, at: Floats) -> Floats:
    good, valid = tally.at(at)
    share: Floats = np.divide(good, valid, out=np.full(at.size, np.nan), where=valid > 0)
    return share


def promisable(threshold_s: float) -> float:
    """A threshold rounded up to two significant digits: rounded down it wouldn't be kept. Seconds."""
    if threshold_s <= 0:
        return 0.0
    digit = 10.0 ** (np.floor(np.log10(threshold_s)) - 1)
    return float(f"{np.ceil(threshold_s / digit - 1e-9) * digit:.2g}")
