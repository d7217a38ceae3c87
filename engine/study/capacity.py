"""How many requests a second one replica can complete: the same engine, saturated."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from engine.machine import ReplicaModel
from engine.scenario import Scenario
from engine.serving import Fleet, FleetRun, StepLog, run_fleet
from engine.traffic import Requests, Trace, generate, stream

Floats = NDArray[np.float64]

_POOL = 1 << 17
_FEWEST = 300
"""Completions of a replica that are watched, at least."""
_MOST_SEATS = 16384
_SEATS = 8192
_LONGEST_S = 604_800.0
_KEEP = 256
_known: OrderedDict[str, float | None] = OrderedDict()
_lock = Lock()


def capacity_rps(s: Scenario, model: ReplicaModel, trace: Trace | None = None) -> float | None:
    """Completed requests per second of one replica that always has a queue, for this traffic's mix of lengths.

    Output tokens per second of saturated replicas, divided by the mean length of an answer. The replicas start in the
    middle of their work, with answers partly written, so that the measure needs no long run to settle. Requests that
    the replica would refuse as too long aren't part of the mix; ``None`` when no others are left. Doesn't depend on the
    rate, the arrival process, the fleet or the promise, and is remembered without them.
    """
    trace = trace if s.traffic.process == "trace" else None
    key = _key(s, trace)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    value = _measure(s, model, trace)
    with _lock:
        _known[key] = value
        while len(_known) > _KEEP:
            _known.popitem(last=False)
    return value


def forget_capacities() -> None:
    """Empty the memory, so that the next answer is measured."""
    with _lock:
        _known.clear()


def _key(s: Scenario, trace: Trace | None) -> str:
    d = s.to_dict()
    mix = None if trace is None else trace.sha256
    machine = (d["model"], d["hardware"], d["parallelism"], d["performance"], d["batching"])
    return repr((d["traffic"]["classes"], mix, *machine))


def _measure(s: Scenario, model: ReplicaModel, trace: Trace | None) -> float | None:
    pool = _pool(s, model, trace)
    if not len(pool):
        return None
    seats = _seats(s, model, pool)
    turns = -(-_FEWEST // seats)
    lanes = int(np.clip(_SEATS // seats, 2, 64))
    pieces: list[StepLog] = []
    later = int((turns + 0.5) * seats) + 1
    requests = _saturating(pool, lanes, seats, later, s.batching.max_num_batched_tokens)
    run = run_fleet(Fleet(model, s.batching), requests, 1, pieces.append)
    begin, end = np.transpose([_busy_window(run, lane, seats, turns) for lane in range(lanes)])
    tokens = _tokens_made(run, StepLog.joined(pieces), begin, end)
    return float(tokens / (end - begin).sum() / pool.output_tokens.mean())


def _pool(s: Scenario, model: ReplicaModel, trace: Trace | None) -> Requests:
    """Requests of the scenario's mix that fit the replica; their times don't matter."""
    horizon = _LONGEST_S if trace is not None else float(_POOL)
    traffic = s.traffic
    if trace is None:
        traffic = traffic.model_copy(update={"rate_rps": 1.0, "process": "deterministic"})
    r = generate(traffic, s.run.model_copy(update={"horizon_s": horizon}), 1, trace)
    size = r.prompt_tokens + r.output_tokens
    limits = [limit for limit in (model.kv_capacity_tokens, model.context_limit) if limit is not None]
    return _pick(r, np.flatnonzero(size <= min(limits, default=size.max(initial=0))))


def _pick(r: Requests, rows: NDArray[np.int64], age: NDArray[np.int64] | int = 0) -> Requests:
    """Some of the requests, all at time 0, each with ``age`` tokens of its answer made part of its prompt."""
    return Requests(
        arrival_s=np.zeros(rows.size),
        prompt_tokens=(r.prompt_tokens[rows] + age).astype(np.int32),
        output_tokens=(r.output_tokens[rows] - age).astype(np.int32),
        cached_prefix_tokens=r.cached_prefix_tokens[rows],
        class_id=r.class_id[rows],
        priority=r.priority[rows],
        class_names=r.class_names,
    )


def _seats(s: Scenario, model: ReplicaModel, pool: Requests) -> int:
    """About how many requests a saturated replica works on: what seats, KV and token budget allow on average.

    A request met in the middle of its work is more likely a long one, so lengths count by their answers' tokens.
    """
    own, output = (pool.prompt_tokens - pool.cached_prefix_tokens).astype(np.float64), pool.output_tokens
    held = own + (output if s.batching.kv_policy == "reserve" else output / 2)
    most = min(s.batching.max_num_seqs, _MOST_SEATS)
    if model.kv_capacity_tokens is not None:
        most = min(most, int(model.kv_capacity_tokens / np.average(held, weights=output)))
    # n decoding requests leave budget - n tokens to prompts, and each prompt is followed by its answer.
    by_budget = s.batching.max_num_batched_tokens * output.mean() / (own + output).mean()
    return max(1, min(most, int(by_budget)))


def _saturating(pool: Requests, lanes: int, seats: int, later: int, budget: int) -> list[Requests]:
    """For each lane ``seats`` requests that are in the middle of their answers when all have been read, then ``later``
    whole ones.

    A replica's present work is what a token picked at random from all answers belongs to: long answers more often, at
    any point (length-biased sampling, e.g. Cox, Renewal Theory, 1962, section 5). Reading them takes steps in which
    those read first write on already; they begin so much earlier.
    """
    rng = stream(1, "capacity")
    ends = np.cumsum(pool.output_tokens, dtype=np.int64)
    begun = np.searchsorted(ends, rng.integers(ends[-1], size=(lanes, seats)), side="right")
    # Points spread evenly keep answers of equal length from ending together: left alone, they would spread out slowly.
    point = (rng.permuted(np.tile(np.arange(seats), (lanes, 1)), axis=1) + rng.random((lanes, 1))) / seats
    out = (point * pool.output_tokens[begun]).astype(np.int64)
    own = (pool.prompt_tokens - pool.cached_prefix_tokens)[begun].astype(np.int64)
    age, room = out, budget - np.minimum(np.arange(seats), budget - 1)  # those read before write on
    for _ in range(3):
        read = np.cumsum((own + age) / room, axis=1)  # steps
        age = np.maximum(out - (read[:, -1:] - read).astype(np.int64), 1 - own)
    rows = np.concatenate([begun, rng.integers(len(pool), size=(lanes, later))], axis=1)
    ages = np.concatenate([age, np.zeros((lanes, later), np.int64)], axis=1)
    return [_pick(pool, *lane) for lane in zip(rows, ages, strict=True)]


def _busy_window(run: FleetRun, lane: int, seats: int, turns: int) -> tuple[float, float]:
    """(begin, end): the completions, in seconds, between which a saturated replica is watched.

    It has taken up all that it had to begin with; then whole turns of all seats follow, because requests of equal length
    come and go in waves.
    """
    a = run.attempts
    part = slice(int(a.seed_start[lane]), int(a.seed_start[lane + 1]))
    ends = np.sort(a.finish_s[part])
    first = int(np.searchsorted(ends, a.first_token_s[part][:seats].max()))
    last = int(np.searchsorted(ends, a.scheduled_s[part].max(), side="right")) - 1  # while somebody waited
    last = min(first + seats * turns, last)
    # Where all are taken up at once there is nothing to see but the whole run.
    return (float(ends[first]), float(ends[last])) if first < last else (0.0, float(ends[-1]))


def _tokens_made(run: FleetRun, log: StepLog, begin: Floats, end: Floats) -> int:
    """Output tokens that came in (begin, end] of each lane, (lanes,) seconds; a completion ends an entry of the log."""
    a = run.attempts
    firsts = (a.first_token_s > begin[a.seed_index]) & (a.first_token_s <= end[a.seed_index])
    whole = (log.t0 >= begin[log.lane]) & (log.t1 <= end[log.lane])
    again = (run.stall_gap_end_s > begin[run.stall_gap_lane]) & (run.stall_gap_end_s <= end[run.stall_gap_lane])
    return int(firsts.sum() + (log.decoding * log.k)[whole].sum(dtype=np.int64) + again.sum())
