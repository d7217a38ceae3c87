"""The closed form that skips over steps: step j = 0, 1, ... lasts d + j * slope seconds. All arrays are (lanes,)."""

from __future__ import annotations

import numpy as np

from .lanes import Floats, Ints


def end_of(t: Floats, d: Floats, slope: Floats, k: Ints) -> Floats:
    """End of the k-th step from t, seconds: t + k d + slope k (k - 1) / 2."""
    kf = k.astype(np.float64)
    return t + (kf * d + slope * (0.5 * kf * (kf - 1.0)))


def steps_to(t: Floats, d: Floats, slope: Floats, k: Ints, target: Floats) -> Ints:
    """Fewest steps (at least 1, at most k) after which the clock is at or past ``target``, seconds.

    The positive root of slope/2 x^2 + (d - slope/2) x = target - t, rounded up, then corrected by the clock's own
    expression, so that a boundary exactly at the target is found.
    """
    a, gap = 0.5 * slope, target - t
    b = d - a
    root = np.ceil(2.0 * gap / (b + np.sqrt(b * b + 4.0 * a * gap)))
    steps = np.minimum(np.maximum(root, 1), k).astype(np.int64)
    less = np.maximum(steps - 1, 1)
    steps = np.where(end_of(t, d, slope, less) >= target, less, steps)
    return np.minimum(np.where(end_of(t, d, slope, steps) < target, steps + 1, steps), k)
