"""What the runs of one queue showed: the sums and samples, seed by seed, that the estimates are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import Result, Scenario, simulate
from engine.serving import COMPLETED, REJECTED, TIMED_OUT, UNFINISHED
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
    served: NDArray[np.int64]
    """Counted requests that were completed."""
    refused: NDArray[np.int64]
    """Counted requests that found no room."""
    gave_up: NDArray[np.int64]
    """Counted requests that left the queue."""
    unserved: NDArray[np.int64]
    """Counted requests of which nothing is known by the horizon: none, or the estimates are biased."""
    wait_s: NDArray[np.float32]
    """(served requests,): from arrival to the first step."""
    sojourn_s: NDArray[np.float32]
    """(served requests,): from arrival to the last token."""
    class_served: NDArray[np.int64]
    """(seeds, classes): served requests by class."""
    class_wait_s: Floats
    """(seeds, classes): their waits, summed."""
    groups: NDArray[np.int64]
    """Times in the window at which requests were taken from the queue: of a bulk server, its services."""
    last_groups: NDArray[np.int64]
    """Those at whose end nobody was in the queue."""
    grouped: NDArray[np.int64]
    """Requests taken then."""
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

    def by_seed(which: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(seed[which], minlength=seeds)

    def by_class(weights: Floats | None) -> NDArray[np.generic]:
        """(seeds, classes): sums over served requests."""
        kinds = len(a.class_names)
        flat = np.bincount(seed[served] * kinds + a.class_id[served], weights, minlength=seeds * kinds)
        return flat.reshape(seeds, kinds)

    done = a.state == COMPLETED
    served = inside & done
    first, is_last = groups(seed[done], a.scheduled_s[done], a.finish_s[done])
    taken = (a.scheduled_s[done] >= plan.warmup_s) & (a.scheduled_s[done] < plan.end_s)
    return Seen(
        counted=by_seed(inside),
        window_s=np.full(seeds, plan.end_s - plan.warmup_s),
        steps=np.bincount(seed[inside], a.output_tokens[inside], minlength=seeds).astype(np.int64),
        served=by_seed(served),
        refused=by_seed(inside & (a.state == REJECTED)),
        gave_up=by_seed(inside & (a.state == TIMED_OUT)),
        unserved=by_seed(inside & (a.state == UNFINISHED)),
        wait_s=result.queue_s[served].astype(np.float32),
        sojourn_s=result.e2e_s[served].astype(np.float32),
        class_served=by_class(None),
        class_wait_s=by_class(result.queue_s[served]),
        groups=np.bincount(seed[done][taken & first], minlength=seeds),
        last_groups=np.bincount(seed[done][taken & is_last], minlength=seeds),
        grouped=np.bincount(seed[done][taken], minlength=seeds),
        half_s=np.full(seeds, edges[1] - edges[0]),
        in_system=integral(a.left_s),
        waiting=integral(np.where(np.isnan(a.scheduled_s), a.left_s, a.scheduled_s)),
        batch=result.usage.batch_s,
        busy_s=result.usage.busy_s,
        gap_s=result.meter.itl(result.run).per_seed["mean"],
        completed=by_seed(done & (a.finish_s >= plan.warmup_s)),
    )


def groups(seed: NDArray[np.int32], begin_s: Floats, end_s: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which requests, in the order in which they were served, are the first of a group that begins together, and which
    of these begin one at whose end nobody waited: the next group begins later, or there is none.
    """
    first, is_last = np.ones(seed.size, np.bool_), np.zeros(seed.size, np.bool_)
    first[1:] = (seed[1:] != seed[:-1]) | (begin_s[1:] > begin_s[:-1])
    at = first.nonzero()[0]
    is_last[at] = True
    is_last[at[:-1]] = (seed[at[1:]] != seed[at[:-1]]) | (begin_s[at[1:]] > end_s[at[:-1]] * (1.0 + 1e-12))
    return first, is_last
