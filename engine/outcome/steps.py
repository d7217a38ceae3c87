"""Which of the logged steps lie in the window that a summary covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.serving import StepLog

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Steps:
    """Runs of k steps of d, d + slope, ... seconds in which n requests decode; all arrays (m,)."""

    seed: NDArray[np.int64]
    n: Floats
    d: Floats
    slope: Floats
    k: Floats

    @property
    def last(self) -> Floats:
        """Duration of the longest step of each run."""
        return self.d + self.slope * (self.k - 1)


def decoding_steps(log: StepLog, t1: Floats, seed: NDArray[np.int64], warmup_s: float, horizon_s: float) -> Steps:
    """The steps that gave somebody another token and ended in [warmup_s, horizon_s]; ``t1`` and ``seed`` are the
    log's."""
    use = (log.decoding > 0) & (t1 >= warmup_s) & (t1 <= horizon_s)
    d, slope, k = log.d[use], log.slope[use], log.k[use].astype(np.float64)
    if log.before.size:
        d = d + log.before[use]
    t0 = log.t0[use]
    early = t0 < warmup_s
    if early.any():
        skip = ending_before(warmup_s, t0[early], d[early], slope[early], k[early])
        d[early] += skip * slope[early]
        k[early] -= skip
    return Steps(seed[use], log.decoding[use].astype(np.float64), d, slope, k)


def ending_before(time: float | Floats, t0: Floats, d: Floats, slope: Floats, k: Floats) -> Floats:
    """How many of the k steps end before ``time``, all but the last at most.

    The root of t0 + x d + slope x (x - 1) / 2 = time, rounded down.
    """
    a, gap = 0.5 * slope, time - t0
    b = d - a
    steps = np.ceil(2.0 * gap / (b + np.sqrt(b * b + 4.0 * a * gap))) - 1.0
    return np.clip(steps, 0.0, k - 1.0)
