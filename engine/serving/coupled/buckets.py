"""The token buckets of all seeds' gateways, one attempt after the other."""

from __future__ import annotations

import numpy as np

from engine.serving.lanes import Bools, Floats, Ints


class Buckets:
    """Each starts full, fills at ``rate_rps`` a second up to ``burst``, and gives one to every attempt that passes."""

    def __init__(self, rate_rps: float, burst: float, seeds: int) -> None:
        self.rate_rps, self.burst = rate_rps, burst
        self._level, self._at = np.full(seeds, float(burst)), np.zeros(seeds)

    def passes(self, seed: Ints, now: Floats) -> Bools:
        """(n,): whether one attempt of each of ``seed`` (n,), no repeats, at ``now`` (n,) finds a whole token."""
        level = np.minimum(self.burst, self._level[seed] + self.rate_rps * (now - self._at[seed]))
        passed = level >= 1.0
        self._level[seed] = level - passed
        self._at[seed] = now
        return np.asarray(passed, np.bool_)
