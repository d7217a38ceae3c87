"""A promise judged window by window: the share of windows in which it was kept.

Counting requests lets a busy bad minute weigh what it weighs; counting slices of time lets it weigh one slice, however
many were in it. Windows that follow each other can split a bad stretch between them, those that move along can't.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.outcome.busiest import slice_width
from engine.outcome.objectives import Scored
from engine.outcome.result import Result
from engine.outcome.spread import Floats, half_width

Bools = NDArray[np.bool_]
Kind = Literal["rolling", "calendar"]
STEPS = 30
"""A rolling window is looked at this many times over its own length."""
_LENGTHS_S = (21600.0, 3600.0, 1800.0, 600.0, 300.0, 60.0, 30.0, 10.0, 1.0)


@dataclass(frozen=True, slots=True)
class Windows:
    """How many windows kept the promise; those with nothing to judge are left out."""

    length_s: float
    kind: Kind
    kept: int
    count: int
    ci95: tuple[float, float] | None
    """Interval of the share, from the spread over runs; ``None`` with fewer than two."""
    worst: float | None
    """The lowest attainment of a window."""

    @property
    def share(self) -> float | None:
        """``None`` without a window."""
        return self.kept / self.count if self.count else None


def windows(result: Result, scored: Scored, target: float, length_s: float, kind: Kind) -> Windows:
    """Windows of ``length_s`` seconds that lie within [warmup, horizon] of their run, by time of arrival."""
    valid = list(arrivals_of(result, scored.valid & result.counted))
    good = list(arrivals_of(result, scored.good & result.counted))
    shares: list[Floats] = []
    for came, kept, begins in zip(valid, good, window_starts(result, length_s, kind), strict=True):
        total, fine = _inside(came, begins, length_s), _inside(kept, begins, length_s)
        shares.append(fine[total > 0] / total[total > 0])
    met = [share >= target for share in shares]
    kept_, count = (int(sum(part.sum() for part in met)), sum(part.size for part in met))
    half = half_width(np.array([part.mean() if part.size else np.nan for part in met]))
    share = kept_ / count if count else np.nan
    interval = None if half is None else (max(0.0, share - half), min(1.0, share + half))
    worst = min((float(part.min()) for part in shares if part.size), default=None)
    return Windows(length_s, kind, kept_, count, interval, worst)


def window_starts(result: Result, length_s: float, kind: Kind) -> list[Floats]:
    """Where each run's windows begin, seconds; rolling ones several times in their length."""
    start, step = result.warmup_s, length_s if kind == "calendar" else length_s / STEPS
    many = np.floor((result.run.horizon_s - start - length_s) / step + 1e-9).astype(np.int64) + 1
    return [start + step * np.arange(max(count, 0), dtype=np.float64) for count in many.tolist()]


def _inside(times: Floats, begins: Floats, length_s: float) -> NDArray[np.int64]:
    """(windows,): how many of the ascending ``times`` lie in each [begin, begin + length)."""
    found = np.searchsorted(times, begins + length_s, side="left") - np.searchsorted(times, begins, side="left")
    return np.asarray(found, np.int64)


def arrivals_of(result: Result, chosen: Bools) -> Iterator[Floats]:
    """Ascending arrival times, seconds, of the chosen attempts (attempts,), seed after seed."""
    a = result.run.attempts
    for low, high in zip(a.seed_start[:-1], a.seed_start[1:], strict=True):
        yield np.sort(a.arrival_s[low:high][chosen[low:high]])


def slice_s(result: Result) -> float:
    """The length of a slice: a minute, or less in a short run."""
    length = float(result.run.horizon_s.min(initial=np.inf)) - result.warmup_s
    return slice_width(length) or max(length, 1e-3)


def fitting(length_s: float, window_s: float) -> float:
    """The window itself where two of it fit into a run's length, else a shorter one of which two do."""
    if 2 * window_s <= length_s:
        return window_s
    return next((short for short in _LENGTHS_S if 2 * short <= length_s), length_s / 2)
