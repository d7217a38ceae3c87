"""Two pools of replicas that always have a queue: how many prompts a second one reads, how many answers one writes.

Neither depends on how many replicas a pool has, so the capacity of any split follows from the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.machine import ReplicaModel, replica_model
from engine.scenario import Scenario
from engine.serving import Fleet, StepLog, run_fleet, run_writers
from engine.traffic import Requests, Trace, stream

from .prompts import prompts_at_once
from .saturated import busy_window, evenly, mix_of, pick, saturating, seats_of, tokens_made

_READERS = 4
_READ_STEPS = 100
"""Of each, about."""
_FEWEST_WRITTEN = 200
_WRITING_SEATS = 8192
"""Of all writers that are watched: few seats come and go at random, so more replicas of few are."""


@dataclass(frozen=True, slots=True)
class PoolRates:
    """Requests per second of one saturated replica of each pool."""

    reads_rps: float
    writes_rps: float
    """Infinity where no answer has a second token."""

    def fleet_rps(self, prefill_replicas: int, decode_replicas: int) -> float:
        """What both pools together complete: no more than either of them."""
        return min(prefill_replicas * self.reads_rps, decode_replicas * self.writes_rps)


def measured_rates(s: Scenario, model: ReplicaModel, trace: Trace | None) -> PoolRates | None:
    """The rates of a disaggregated scenario's mix; ``None`` when it has no request that fits."""
    pool = mix_of(s, model, trace)
    return PoolRates(_reads_rps(s, pool), _writes_rps(s, model, pool)) if len(pool) else None


def _reads_rps(s: Scenario, pool: Requests) -> float:
    """Whole prompts, as many as there are for a hundred full steps; the last step, which isn't full, isn't counted."""
    own = float((pool.prompt_tokens - pool.cached_prefix_tokens).mean())
    at_once = max(1.0, min(s.batching.max_num_seqs, s.batching.max_num_batched_tokens / own))
    rows = evenly(pool, _READERS, int(np.ceil(_READ_STEPS * at_once)), stream(1, "capacity"))
    none = np.zeros_like(rows[0])
    requests = [
        replace(r, output_tokens=np.ones_like(r.output_tokens)) for r in (pick(pool, i, none, none) for i in rows)
    ]
    batching = s.batching.model_copy(update={"policy": "prefill_first", "reserve_output_tokens": None})
    run = run_fleet(Fleet(replica_model(s, prompts_at_once(batching, requests)), batching), requests, 1)
    a, read, seconds = run.attempts, 0, 0.0
    for lo, hi in zip(a.seed_start, a.seed_start[1:], strict=False):
        ends = np.unique(a.finish_s[lo:hi])
        end = ends[max(ends.size - 2, 0)]
        read += int((a.finish_s[lo:hi] <= end).sum())
        seconds += float(end)
    return read / seconds


def _writes_rps(s: Scenario, model: ReplicaModel, pool: Requests) -> float:
    """Tokens but first ones that replicas make in the middle of their work, over their mean number in an answer."""
    later = pool.output_tokens - 1
    rows = np.flatnonzero(later > 0)
    if not rows.size:
        return float("inf")
    none = np.zeros_like(rows)
    batching = s.batching.model_copy(update={"kv_policy": "reserve", "watermark": 0.0})
    seats = seats_of(batching, model, pick(pool, rows, none, none))
    turns = -(-_FEWEST_WRITTEN // seats)
    lanes = int(np.clip(_WRITING_SEATS // seats, 2, 64))
    mix = pick(pool, rows, none, none + 1)  # what is left to write when a request comes
    begun = saturating(mix, batching, lanes, seats, int((turns + 0.5) * seats) + 1)
    requests = [replace(r, output_tokens=r.output_tokens + np.int32(1)) for r in begun]
    pieces: list[StepLog] = []
    run = run_writers(Fleet(model, batching), requests, pieces.append)
    begin, end = np.transpose([busy_window(run, lane, seats, turns) for lane in range(lanes)])
    made = tokens_made(run, StepLog.joined(pieces), begin, end)
    return float(made / (end - begin).sum() / later.mean())
