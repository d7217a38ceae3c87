"""Attainment against the threshold, and the strictest threshold that is kept: from one run, without another.

An attempt's time doesn't depend on what was promised, so a run can be judged at every threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.outcome.places import BETWEEN_TOKENS, asked_s, first_rows, last_rows
from engine.outcome.result import Result
from engine.outcome.spread import Floats, half_width, half_widths
from engine.scenario import Objective
from engine.serving import COMPLETED, REJECTED, STATES, UNFINISHED

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


def tallies(result: Result, objective: Objective) -> tuple[Tally, ...]:
    """A tally for each run; the objective's own threshold plays no part."""
    a, metric = result.run.attempts, result.measured(objective)
    client = objective.measured_at == "client"
    first = first_rows(a) if client else np.arange(a.arrival_s.size)
    last = last_rows(a) if client else first
    state, took = a.state[last], metric[last]
    counted = result.counted[first]
    if objective.metric in BETWEEN_TOKENS:
        counted = counted & (a.output_tokens[last] > 1)
    failing = np.isin(state, [STATES.index(name) for name in objective.failures])
    if objective.measured_at == "server":
        failing &= state != REJECTED
    known = counted & ~np.isnan(took) & ((state == COMPLETED) | (state == UNFINISHED))
    pending = counted & ~known & failing & (state == UNFINISHED)
    lost = counted & ~known & failing & (state != UNFINISHED) & (state != COMPLETED)
    seed = a.seed_index[first]
    age = result.run.horizon_s[seed] - asked_s(objective, a)[first]
    bounds = np.searchsorted(seed, np.arange(a.seeds + 1)).tolist()
    return tuple(
        Tally(np.sort(took[i:j][known[i:j]]), int(lost[i:j].sum()), np.sort(age[i:j][pending[i:j]]))
        for i, j in pairwise(bounds)
    )


def together(parts: Sequence[Tally]) -> Tally:
    """All runs as one."""
    known, ages = (np.sort(np.concatenate([getattr(t, name) for t in parts])) for name in ("known", "ages"))
    return Tally(known, sum(t.lost for t in parts), ages)


def strictest_of(tally: Tally, target: float) -> float | None:
    """The smallest threshold, seconds, at which the target is met; ``None`` where none of the times seen does.

    A share grows with the threshold, as more are good and fewer old enough to be overdue; it can only step up at a time
    that somebody took. ``None`` too where half of the requests are too young to judge at that threshold.
    """
    if not tally.known.size:
        return None

    def met(at: int) -> bool:
        good, valid = tally.at(tally.known[at : at + 1])
        return bool(valid[0] > 0 and good[0] / valid[0] >= target)

    low, high = -1, tally.known.size - 1
    if not met(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    found = float(tally.known[high])
    judged = tally.at(np.array([found]))[1][0]
    return found if judged >= _JUDGED * (tally.known.size + tally.lost + tally.ages.size) else None


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
