"""What the replicas were busy with: busy time, mean batch, what limited them, tokens made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.serving import LIMITS

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
    available_s: Floats
    """Replica seconds: of all that could work; of pipelines stage seconds."""

    @property
    def utilization(self) -> float | None:
        """Share of replica time spent in a step; of pipelines, of their stages' time spent on a batch."""
        available = float(self.available_s.sum())
        return float(self.busy_s.sum()) / available if available > 0 else None

    @property
    def mean_batch(self) -> float | None:
        """Requests worked on in a step, averaged over busy seconds."""
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
