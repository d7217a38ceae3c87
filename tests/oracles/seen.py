"""What the runs of one queue showed: the sums and samples, seed by seed, that the estimates are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import Result, Scenario, simulate
from engine.serving import COMPLETED
from tests.oracles.estimate import Floats
from tests.oracles.sizing import Plan


@dataclass(frozen=True)
class Seen:
    """Arrays (seeds,) unless said otherwise; requests are those that arrived in the plan's window, seed after seed."""

    counted: NDArray[np.int64]
    window_s: Floats
    """Length of the window in which they arrived, seconds."""
    steps: NDArray[np.int64]
    """Steps that they need: their output tokens, summed."""
    wait_s: NDArray[np.float32]
    """(requests,): from arrival to the first step."""
    sojourn_s: NDArray[np.float32]
    """(requests,): from arrival to the last token."""
    unserved: NDArray[np.int64]
    """Counted requests that weren't completed: none, or the estimates are biased."""
    half_s: Floats
    """Half of the time over which the integrals below go, seconds."""
    in_system: Floats
    """(seeds, 2): requests in the system, integrated over each half."""
    waiting: Floats
    """(seeds, 2): requests in the queue, integrated over each half."""
    batch: Floats
    """Requests worked on, integrated over both halves."""
    busy_s: Floats
    """Time in a step."""
    gap_s: Floats
    """Mean gap between two tokens."""
    completed: NDArray[np.int64]
    """Requests completed within both halves."""

    @property
    def seeds(self) -> int:
        """How many runs there were."""
        return self.counted.size

    @property
    def span_s(self) -> Floats:
        """(seeds,): time over which the integrals go, seconds."""
        return 2.0 * self.half_s


def watch(document: dict[str, Any], plan: Plan) -> Seen:
    """Run a scenario by its plan, block after block, and keep what estimates need."""
    runs = (simulate(Scenario.from_dict({**document, "run": run})) for run in plan.runs())
    return _joined(_look(result, plan) for result in runs)


def _joined(parts: Iterable[Seen]) -> Seen:
    columns = zip(*([getattr(part, f.name) for f in fields(Seen)] for part in parts), strict=True)
    return Seen(*(np.concatenate(column) for column in columns))


def _look(result: Result, plan: Plan) -> Seen:
    a, seeds = result.run.attempts, result.run.attempts.seeds
    seed = a.seed_index
    inside = result.counted & (a.arrival_s < plan.end_s)
    edges = np.linspace(plan.warmup_s, plan.horizon_s, 3)

    def integral(until: Floats) -> Floats:
        """(seeds, 2): how many requests were between their arrival and `until` (`nan`: never), over each half."""
        ended = np.where(np.isnan(until), plan.horizon_s, until)
        halves = [
            np.bincount(seed, np.maximum(np.minimum(ended, hi) - np.maximum(a.arrival_s, lo), 0.0), minlength=seeds)
            for lo, hi in pairwise(edges)
        ]
        return np.stack(halves, axis=1)

    done = a.state == COMPLETED
    return Seen(
        counted=np.bincount(seed[inside], minlength=seeds),
        window_s=np.full(seeds, plan.end_s - plan.warmup_s),
        steps=np.bincount(seed[inside], a.output_tokens[inside], minlength=seeds).astype(np.int64),
        wait_s=result.queue_s[inside].astype(np.float32),
        sojourn_s=result.e2e_s[inside].astype(np.float32),
        unserved=np.bincount(seed[inside & ~done], minlength=seeds),
        half_s=np.full(seeds, edges[1] - edges[0]),
        in_system=integral(a.left_s),
        waiting=integral(a.scheduled_s),
        batch=result.usage.batch_s,
        busy_s=result.usage.busy_s,
        gap_s=result.meter.itl(result.run).per_seed["mean"],
        completed=np.bincount(seed[done & (a.finish_s >= plan.warmup_s)], minlength=seeds),
    )
