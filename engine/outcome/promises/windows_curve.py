"""How many windows keep a promise, against its threshold; and the threshold at which every one does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.outcome.spread import Floats

from .entries import Entries
from .threshold import least

_POINTS = 24
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WindowsCurve:
    """Share of the windows of all runs that keep the target, against the threshold; (points,), seconds."""

    threshold_s: Floats
    share: Floats
    all_kept_s: float | None
    """The smallest threshold at which every window keeps it; ``None``: at none of the times seen."""


@dataclass(frozen=True, slots=True)
class _Ordered:
    """All entries, run after run by when they were asked, and where each window begins and ends among them."""

    took_s: Floats
    age_s: Floats
    low: Ints
    high: Ints

    def kept(self, threshold_s: float, target: float) -> tuple[int, int]:
        """(windows that keep the target, windows with anything to judge)."""
        known = ~np.isnan(self.took_s)
        good = self._in_windows(self.took_s <= threshold_s)
        valid = self._in_windows(known | (self.age_s >= threshold_s))
        some = valid > 0
        return int((good[some] / valid[some] >= target).sum()), int(some.sum())

    def _in_windows(self, flags: NDArray[np.bool_]) -> Ints:
        total = np.concatenate([[0], np.cumsum(flags)])
        return np.asarray(total[self.high] - total[self.low], np.int64)


def windows_curve(
    found: Entries, starts: Sequence[Floats], length_s: float, target: float, threshold_s: Floats
) -> WindowsCurve | None:
    """Over some of the thresholds (n,); ``None`` without a window that has anything to judge.

    ``starts`` has for every run when its windows, of ``length_s`` seconds, begin.
    """
    ordered = _ordered(found, starts, length_s)
    at = threshold_s[np.unique(np.linspace(0, threshold_s.size - 1, _POINTS).round().astype(np.int64))]
    counts = [ordered.kept(float(threshold), target) for threshold in at]
    if not any(count for _, count in counts):
        return None
    share = np.array([good / count if count else np.nan for good, count in counts])
    known = np.sort(found.took_s[np.isfinite(found.took_s)])
    return WindowsCurve(at, share, least(known, lambda threshold: _every(ordered.kept(threshold, target))))


def _every(counts: tuple[int, int]) -> bool:
    return counts[0] == counts[1] > 0


def _ordered(found: Entries, starts: Sequence[Floats], length_s: float) -> _Ordered:
    order, low, high = np.empty(found.asked_s.size, np.int64), [], []
    for (i, j), begins in zip(pairwise(found.start.tolist()), starts, strict=True):
        order[i:j] = i + np.argsort(found.asked_s[i:j], kind="stable")
        asked = found.asked_s[order[i:j]]
        low.append(i + np.searchsorted(asked, begins, side="left"))
        high.append(i + np.searchsorted(asked, begins + length_s, side="left"))
    return _Ordered(found.took_s[order], found.age_s[order], np.concatenate(low), np.concatenate(high))
