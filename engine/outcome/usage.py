"""What the replicas were busy with: busy time, mean batch, what limited them, tokens made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.serving import LIMITS, FleetRun

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums over all replicas of each seed, inside [warmup_s, horizon]; each (seeds,) unless said otherwise."""

    window_s: Floats
    """Length of the window."""
    busy_s: Floats
    batch_s: Floats
    """Integral of the number of requests worked on, request seconds."""
    limit_s: Floats
    """(seeds, len(LIMITS)): busy seconds by what kept the queue waiting."""
    replicas: int

    @property
    def utilization(self) -> float | None:
        """Share of replica time spent in a step."""
        available = float(self.window_s.sum()) * self.replicas
        return float(self.busy_s.sum()) / available if available > 0 else None

    @property
    def mean_batch(self) -> float | None:
        """Requests worked on, averaged over busy seconds."""
        busy = float(self.busy_s.sum())
        return float(self.batch_s.sum()) / busy if busy > 0 else None

    @property
    def limited_by(self) -> dict[str, float | None]:
        """Share of busy seconds by what kept the queue waiting."""
        total = float(self.limit_s.sum())
        return {
            name: (float(self.limit_s[:, LIMITS.index(name)].sum()) / total if total > 0 else None)
            for name in ("max_num_seqs", "kv", "token_budget", "none")
        }


def usage(run: FleetRun, warmup_s: float) -> Usage:
    """Measure a run; steps that reach over an edge of the window count by the part inside."""
    seeds = run.attempts.seeds
    window = np.maximum(run.horizon_s - warmup_s, 0.0)
    busy, batch = np.zeros(seeds), np.zeros(seeds)
    limit = np.zeros(seeds * len(LIMITS))
    for log in run.logs:
        seed = log.lane // run.replicas
        inside = np.minimum(log.t1, run.horizon_s[seed]) - np.maximum(log.t0, warmup_s)
        np.maximum(inside, 0.0, out=inside)
        busy += np.bincount(seed, inside, minlength=seeds)
        batch += np.bincount(seed, inside * log.worked, minlength=seeds)
        limit += np.bincount(seed * len(LIMITS) + log.limit, inside, minlength=limit.size)
    return Usage(window, busy, batch, limit.reshape(seeds, len(LIMITS)), run.replicas)
