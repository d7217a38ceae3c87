"""The closed form that skips over steps: step j = 0, 1, ... lasts d + j * slope seconds. All arrays are (lanes,)."""

from __future__ import annotations

import numpy as np

from .lanes import Floats, Ints


def end_of(t: Floats, d: Floats, slope: Floats, k: Ints) -> Floats:
    """End of the k-th step from t, seconds: t + k d + slope k (k - 1) / 2."""
    kf = k.astype(np.float64)
    return t + (kf * d + slope * (0.5 * kf * (kf - 1.0)))


def steps_to(t: Floats, d: Floats, slope: Floats, k: Ints, target: Floats) -> tuple[Ints, Floats]:
    """Fewest steps (at least 1, at most k) after which the clock is at or past ``target``, seconds; and their end.

    The positive root of slope/2 x^2 + (d - slope/2) x = target - t, rounded up, then corrected by the clock's own
    expression, so that a boundary exactly at the target is found.
    """
    a, gap = 0.5 * slope, target - t
    b = d - a
    root = np.ceil(2.0 * gap / (b + np.sqrt(b * b + 4.0 * a * gap)))
    steps = np.minimum(np.maximum(root, 1), k).astype(np.int64)
    end = end_of(t, d, slope, steps)
    # The rounding of the root is off by one step at most. Few are: the others cost one comparison each.
    before = end - (d + slope * (steps - 1))
    _correct(t, d, slope, steps, end, ((before >= target * _ALMOST) & (steps > 1)).nonzero()[0], target, -1)
    _correct(t, d, slope, steps, end, ((end < target) & (steps < k)).nonzero()[0], target, 1)
    return steps, end


_ALMOST = 1 - 1e-12
"""Covers what two ways of adding up the same steps differ by."""


def _correct(t: Floats, d: Floats, slope: Floats, steps: Ints, end: Floats, i: Ints, target: Floats, by: int) -> None:
    """Move entries ``i`` by one step: on, or back where the clock is at the target a step before."""
    if i.size:
        moved = steps[i] + by
        at = end_of(t[i], d[i], slope[i], moved)
        if by < 0:
            early = at >= target[i]
            i, moved, at = i[early], moved[early], at[early]
        steps[i], end[i] = moved, at
