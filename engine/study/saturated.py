"""Replicas that always have a queue: how many requests a second they complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.machine import ReplicaModel, replica_model
from engine.scenario import Batching, Scenario, Steady
from engine.serving import Fleet, FleetRun, StepLog, ended_by, run_fleet, run_fleets
from engine.traffic import Requests, Trace, generate, stream

from .prompts import prompts_at_once

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_POOL = 1 << 16
"""Requests that stand for the mix."""
_FEWEST = 200
"""Completions of a replica that are watched, at least."""
_BEFORE = 0.5
"""Turns of all seats that it makes before, at most: until all that it began with have been taken up."""
_FEWEST_IN_STAGES, _BEFORE_IN_STAGES = 100, 0.25
"""Likewise of a pipeline, whose rounds are dear; its capacity is as exact, because its seats are many."""
_MOST_SEATS = 16_384
"""Requests that a replica begins with at most; one that works on many more is measured before it has filled up."""
_ALL_SEATS = 8192
"""Of all replicas together: few seats come and go at random, so more of them are watched."""
_LONGEST_S = 604_800.0


def completion_rate(s: Scenario, model: ReplicaModel, trace: Trace | None) -> float | None:
    """Requests per second that one saturated replica completes; ``None`` when the mix has none that fits.

    Output tokens per second, divided by the mean length of an answer. ``trace`` is the mix when it is given.
    """
    return completion_rates([(s, model)], trace)[0]


def completion_rates(several: Sequence[tuple[Scenario, ReplicaModel]], trace: Trace | None) -> list[float | None]:
    """`completion_rate` of each, to the last bit, for less time: their replicas run side by side."""
    saturated = [_Saturated.of(s, model, trace) for s, model in several]
    some = [one for one in saturated if one is not None]
    logs: list[list[StepLog]] = [[] for _ in some]
    runs = run_fleets([one.fleet for one in some], [one.requests for one in some], 1, [log.append for log in logs])
    rates = iter([one.rate(run, log) for one, run, log in zip(some, runs, logs, strict=True)])
    return [None if one is None else next(rates) for one in saturated]


@dataclass(frozen=True, slots=True)
class _Saturated:
    """Replicas that have as much to do as they can."""

    fleet: Fleet
    requests: list[Requests]
    """Of each replica."""
    seats: int
    turns: int
    answer: float
    """Mean tokens of an answer."""

    @classmethod
    def of(cls, s: Scenario, model: ReplicaModel, trace: Trace | None) -> _Saturated | None:
        pool = mix_of(s, model, trace)
        if not len(pool):
            return None
        seats = seats_of(s.batching, model, pool)
        fewest, before = (_FEWEST, _BEFORE) if model.stages == 1 else (_FEWEST_IN_STAGES, _BEFORE_IN_STAGES)
        turns = -(-fewest // seats)
        lanes = int(np.clip(_ALL_SEATS // seats, 2, 64))
        requests = saturating(pool, s.batching, lanes, seats, int((turns + before) * seats) + 1, model.stages)
        if s.batching.policy != "chunked":  # its steps read as much as these have, not the requests of the scenario
            model = replica_model(s, prompts_at_once(s.batching, requests))
        fleet = Fleet(model, s.batching, until_scheduled=model.stages > 1)
        return cls(fleet, requests, seats, turns, float(pool.output_tokens.mean()))

    def rate(self, run: FleetRun, log: list[StepLog]) -> float:
        """Requests per second, of what was seen."""
        begin, end = np.transpose([busy_window(run, i, self.seats, self.turns) for i in range(len(self.requests))])
        if np.isnan(end).any():  # all were taken up at once, so that only the whole run is of use
            whole, again = replace(self, fleet=replace(self.fleet, until_scheduled=False)), list[StepLog]()
            return whole.rate(run_fleet(whole.fleet, self.requests, 1, again.append), again)
        return float(tokens_made(run, StepLog.joined(log), begin, end) / (end - begin).sum() / self.answer)


def group_size(s: Scenario, model: ReplicaModel, trace: Trace | None) -> int | None:
    """About how many requests a replica that always has a queue works on; ``None`` when none of the mix fits."""
    pool = mix_of(s, model, trace)
    if not len(pool):
        return None
    if s.batching.policy == "disaggregated":  # the one that is sent new requests
        own = float((pool.prompt_tokens - pool.cached_prefix_tokens).mean())
        return max(1, int(min(s.batching.max_num_seqs, s.batching.max_num_batched_tokens / own)))
    return seats_of(s.batching, model, pool)


def mix_of(s: Scenario, model: ReplicaModel, trace: Trace | None) -> Requests:
    """Requests of the scenario's mix that fit the replica; their times don't matter.

    All of a trace, whatever the horizon; lengths that grow are those of the whole run.
    """
    traffic, horizon = s.traffic, _LONGEST_S
    if trace is None:
        alone = traffic.client.model_copy(update={"fan_out": 1})
        steady = {"rate_rps": 1.0, "process": "deterministic", "shape": Steady(), "client": alone}
        traffic = traffic.model_copy(update=steady)
        horizon = float(_POOL)
    elif traffic.growth is not None and s.run.horizon_s is not None:
        horizon = s.run.horizon_s
    r = generate(traffic, s.run.model_copy(update={"horizon_s": horizon}), 1, trace)
    most = s.batching.reserve_output_tokens
    r = r if most is None else replace(r, output_tokens=np.minimum(r.output_tokens, most))
    fits = np.ones(len(r), np.bool_)
    if model.kv_capacity_tokens is not None:
        fits &= r.prompt_tokens + (r.output_tokens if most is None else most) <= model.kv_capacity_tokens
    if model.context_limit is not None:
        fits &= r.prompt_tokens + r.output_tokens <= model.context_limit
    rows = np.flatnonzero(fits)
    return pick(r, rows, np.zeros_like(rows), np.zeros_like(rows))


def pick(r: Requests, rows: Ints, read: Ints, written: Ints) -> Requests:
    """Some of the requests, all at time 0, with ``read`` tokens more of prompt and ``written`` fewer to write.

    All are equally urgent: who waits longer than whom changes nothing for the sum.
    """
    return Requests(
        arrival_s=np.zeros(rows.size),
        prompt_tokens=(r.prompt_tokens[rows] + read).astype(np.int32),
        output_tokens=(r.output_tokens[rows] - written).astype(np.int32),
        cached_prefix_tokens=r.cached_prefix_tokens[rows],
        class_id=r.class_id[rows],
        priority=np.zeros(rows.size, np.int32),
        class_names=r.class_names,
    )


def held_tokens(batching: Batching, pool: Requests) -> float:
    """Mean tokens of KV that a conversation of the mix takes while it is written.

    Its whole size when that is reserved, else prompt and half of the answer. One met in the middle of its work is more
    likely a long one, so lengths count by their answers' tokens.
    """
    own, output = (pool.prompt_tokens - pool.cached_prefix_tokens).astype(np.float64), pool.output_tokens
    return float(np.average(own + (output if batching.kv_policy == "reserve" else output / 2), weights=output))


def seats_of(batching: Batching, model: ReplicaModel, pool: Requests) -> int:
    """About how many requests a saturated replica works on: what seats, KV and token budget allow on average."""
    own, output = (pool.prompt_tokens - pool.cached_prefix_tokens).astype(np.float64), pool.output_tokens
    most = float(min(batching.max_num_seqs, _MOST_SEATS))
    if model.kv_capacity_tokens is not None:
        most = min(most, model.kv_capacity_tokens / held_tokens(batching, pool))
    if batching.policy == "chunked":
        # n decoding requests leave budget - n tokens to prompts, and each prompt is followed by its answer.
        # Each lane of a pipeline has a budget of its own.
        budget = batching.max_num_batched_tokens * model.stages
        most = min(most, budget * float(output.mean() / (own + output).mean()))
    return max(1, int(most))


def saturating(
    pool: Requests, batching: Batching, lanes: int, seats: int, later: int, stages: int = 1
) -> list[Requests]:
    """For each lane ``seats`` requests in the middle of their answers, then ``later`` whole ones.

    A replica's present work is what a token picked at random from all answers belongs to: long answers more often, at
    any point (length-biased sampling, e.g. Cox, Renewal Theory, 1962, section 5). What is written already becomes part
    of the prompt. A static group begins together, so there all are whole.
    """
    rng = stream(1, "capacity")
    ends = np.cumsum(pool.output_tokens, dtype=np.int64)
    begun = np.searchsorted(ends, rng.integers(ends[-1], size=(lanes, seats)), side="right")
    # Points spread evenly keep answers of equal length from ending together: left alone, they would spread out slowly.
    point = (rng.permuted(np.tile(np.arange(seats), (lanes, 1)), axis=1) + rng.random((lanes, 1))) / seats
    written = (point * pool.output_tokens[begun]).astype(np.int64)
    whole = evenly(pool, lanes, later, rng)
    if batching.policy == "static":
        begun, written = rng.integers(len(pool), size=(lanes, seats)), np.zeros_like(begun)
    elif batching.policy == "chunked":
        own = (pool.prompt_tokens - pool.cached_prefix_tokens)[begun].astype(np.int64)
        written = _less_what_is_written_meanwhile(written, own, batching.max_num_batched_tokens * stages)
    rows = np.concatenate([begun, whole], axis=1)
    written = np.concatenate([written, np.zeros_like(whole)], axis=1)
    # A prompt must not grow beside a reservation for the whole answer.
    read = written if batching.reserve_output_tokens is None else np.zeros_like(written)
    return [pick(pool, *lane) for lane in zip(rows, read, written, strict=True)]


def evenly(pool: Requests, lanes: int, each: int, rng: np.random.Generator) -> Ints:
    """(lanes, each): rows of the mix in which every length of prompt has its share: what they cost varies most."""
    spread = ((np.arange(lanes * each) + 0.5) * (len(pool) / (lanes * each))).astype(np.int64)
    return rng.permutation(np.argsort(pool.prompt_tokens, kind="stable")[spread]).reshape(lanes, each)


def _less_what_is_written_meanwhile(written: Ints, own: Ints, budget: int) -> Ints:
    """(lanes, seats): with how much written each must begin to be where it should when all prompts have been read.

    Reading takes steps in which those read before write on. How long depends on what is written, a little, so the
    answer is found in a few rounds. Less than nothing written means a shorter prompt and a longer answer.
    """
    room = budget - np.minimum(np.arange(own.shape[1]), budget - 1)
    at_first = written
    for _ in range(3):
        steps = np.cumsum((own + at_first) / room, axis=1)
        at_first = np.maximum(written - (steps[:, -1:] - steps).astype(np.int64), 1 - own)
    return at_first


def busy_window(run: FleetRun, lane: int, seats: int, turns: int) -> tuple[float, float]:
    """(begin, end): the completions, in seconds, between which a saturated replica is watched.

    It has taken up all that it had to begin with; then whole turns of all seats follow, because requests of equal
    length come and go in waves.
    """
    a = run.attempts
    part = slice(int(a.seed_start[lane]), int(a.seed_start[lane + 1]))
    ends = np.sort(a.finish_s[part])
    first = int(np.searchsorted(ends, a.first_token_s[part][:seats].max()))
    last = int(np.searchsorted(ends, a.scheduled_s[part].max(), side="right")) - 1  # while somebody waited
    last = min(first + seats * turns, last)
    # Where all are taken up at once there is nothing to see but the whole run.
    return (float(ends[first]), float(ends[last])) if first < last else (0.0, float(ends[-1]))


def tokens_made(run: FleetRun, log: StepLog, begin: Floats, end: Floats) -> int:
    """Output tokens that came in (begin, end] of each lane, (lanes,) seconds; a completion ends an entry of the log,
    but in a pipeline."""
    a = run.attempts
    firsts = (a.first_token_s > begin[a.seed_index]) & (a.first_token_s <= end[a.seed_index])
    again = (run.stall_gap_end_s > begin[run.stall_gap_lane]) & (run.stall_gap_end_s <= end[run.stall_gap_lane])
    if run.stages == 1:
        steps = log.k * ((log.t0 >= begin[log.lane]) & (log.t1 <= end[log.lane]))
    else:  # other lanes of the pipeline are in the middle of theirs
        steps = ended_by(log, end[log.lane]) - ended_by(log, begin[log.lane])
    return int(firsts.sum() + (log.decoding * steps).sum(dtype=np.int64) + again.sum())
