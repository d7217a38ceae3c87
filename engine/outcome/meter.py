"""Reads the steps as the engine makes them: what the replicas were busy with, and the gaps between tokens.

Nothing of a step is kept beyond sums and a histogram, so a run's memory doesn't grow with its steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.serving import LIMITS, FleetRun, StepLog

from .gaps import GapHistogram
from .replicas import Replicas
from .spread import Floats, Spread
from .steps import decoding_steps
from .usage import Usage


class Meter:
    """A sink for ``run_fleet`` that covers the window [warmup_s, horizon_s] of every seed."""

    def __init__(
        self, seeds: int, replicas: int, warmup_s: float, horizon_s: float | None, readers: int | None = None
    ) -> None:
        """``readers``: how many of the replicas, the first ones, only read prompts; ``None`` where all do both."""
        self.seeds, self.replicas, self.warmup_s = seeds, replicas, warmup_s
        self.horizon_s = np.inf if horizon_s is None else horizon_s
        self.pools = (replicas,) if readers is None else (readers, replicas - readers)
        self.busy, self.batch = np.zeros((2, len(self.pools), seeds))
        self.limit = np.zeros((len(LIMITS), len(self.pools), seeds))
        self.at_end = np.zeros(seeds)  # tokens that came at exactly the horizon, each the end of a gap
        self.gaps = GapHistogram(seeds)

    def __call__(self, log: StepLog) -> None:
        """Take in a piece of the step log; steps that reach over an edge of the window count by the part inside."""
        seed = log.lane.astype(np.int64)
        if self.replicas > 1:
            seed //= self.replicas
        t1 = log.t1
        inside = np.minimum(t1, self.horizon_s) - np.maximum(log.t0, self.warmup_s)
        inside = log.busy(np.maximum(inside, 0.0, out=inside))
        cell = seed
        if len(self.pools) > 1:
            cell = seed + self.seeds * (log.lane % self.replicas >= self.pools[0])
        self.busy += self._sums(cell, inside)
        self.batch += self._sums(cell, inside * log.worked)
        for code in range(1, len(LIMITS)):
            at = (log.limit == code).nonzero()[0]
            if at.size:
                self.limit[code] += self._sums(cell[at], inside[at])
        at = (t1 == self.horizon_s).nonzero()[0]
        if at.size:
            self.at_end += np.bincount(seed[at], log.decoding[at], self.seeds)
        self.gaps.add_steps(decoding_steps(log, t1, seed, self.warmup_s, self.horizon_s))

    def usage(self, run: FleetRun) -> Usage:
        """What the replicas were busy with."""
        available = Replicas.of(run).working.seconds(self.warmup_s, run.horizon_s)
        busy, batch = self.busy.sum(axis=0), self.batch.sum(axis=0)
        return self._usage(run, busy, batch, self.limit.sum(axis=1), available * run.stages)

    def by_pool(self, run: FleetRun) -> tuple[Usage, ...]:
        """What each pool's replicas were busy with; without an autoscaler."""
        length = np.maximum(run.horizon_s - self.warmup_s, 0.0)
        return tuple(
            self._usage(run, self.busy[i], self.batch[i], self.limit[:, i], length * replicas)
            for i, replicas in enumerate(self.pools)
        )

    def _usage(self, run: FleetRun, busy: Floats, batch: Floats, limit: Floats, available: Floats) -> Usage:
        window: Floats = np.maximum(run.horizon_s - self.warmup_s, 0.0)
        limit = limit.T.copy()
        limit[:, 0] = busy - limit.sum(axis=1)
        return Usage(window, busy, batch, np.maximum(limit, 0.0), available)

    def _sums(self, cell: NDArray[np.int64], seconds: Floats) -> Floats:
        """(pools, seeds): sums of ``seconds`` by pool and seed."""
        sums = np.bincount(cell, seconds, self.busy.size).astype(np.float64, copy=False)
        return sums.reshape(self.busy.shape)

    def itl(self, run: FleetRun) -> Spread:
        """All gaps whose second token came in the window; quantiles within 0.4 %, mean and maximum exact."""
        kept = run.stall_gap_end_s >= self.warmup_s
        return self.gaps.spread(run.stall_gaps[kept], self._seed(run.stall_gap_lane[kept]))

    def tokens_at_end(self, run: FleetRun) -> Floats:
        """(seeds,): tokens but first ones that came at exactly the horizon: they end gaps, and are after the window."""
        last = run.stall_gap_end_s == self.horizon_s
        return self.at_end + np.bincount(self._seed(run.stall_gap_lane[last]), minlength=self.seeds)

    def _seed(self, lane: NDArray[np.int32]) -> NDArray[np.int64]:
        return lane.astype(np.int64) // self.replicas
