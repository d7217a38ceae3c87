"""What a long prompt does to people who are in the middle of their answers: every token of a short run around it.

A replica writes for a few people; then one prompt comes that takes many steps' worth of reading. Nothing is random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.machine import ReplicaModel, replica_model
from engine.scenario import Batching, Scenario, ScenarioError
from engine.serving import Fleet, FleetRun, StepLog, run_fleet
from engine.traffic import Requests

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONG_PROMPT = 30_000
WRITERS = 11
_SHORT_PROMPT = 128
_BEFORE, _AFTER = 12, 12
"""Tokens of each writer before the long prompt comes, and after it has been read."""
_LONG_ANSWER = 6
_MOST_STEPS, _MOST_TOKENS = 300, 1_000_000
"""Of reading: a chart has no room for more, nor a table of step times."""


@dataclass(frozen=True, slots=True)
class Interference:
    """Times in seconds from the arrival of the long prompt."""

    policy: str
    prompt_tokens: int
    wanted_tokens: int
    """What was asked for: more than the replica has room for isn't tried."""
    tokens_s: tuple[Floats, ...]
    """One array a writer: when each of its tokens came."""
    long_tokens_s: Floats
    """The same of the long prompt's answer."""
    read_from_s: float
    """First step that reads it; its first token ends the reading."""
    steps: int
    """That read it."""
    usual_s: float
    """Gap between two tokens before."""
    longest_s: float
    """Longest gap of a writer."""
    longest_from_s: float
    """When that gap begins."""
    stall_s: float
    """What its reading added for each writer who wrote all the while: ``Waits.stalled``."""

    @property
    def first_word_s(self) -> float:
        """How long the long prompt's sender waits for the first token."""
        return float(self.long_tokens_s[0])

    @property
    def reading_s(self) -> float:
        """From the first step that reads it to its first token."""
        return self.first_word_s - self.read_from_s


def interference(s: Scenario, prompt_tokens: int = LONG_PROMPT) -> Interference:
    """A prompt of so many tokens, or as many as fit, among ``WRITERS`` people, or as many as there are seats for.

    Raises ``ScenarioError`` when the model doesn't fit its hardware, a replica has no room for two, or is a pipeline.
    """
    if s.parallelism.pp > 1:
        stages, remedy = str(s.parallelism.pp), "use 1"
        raise ScenarioError.of(
            "parallelism.pp", stages, "has several batches under way, and one is followed here", remedy
        )
    model, b = replica_model(s), s.batching.model_copy(update={"reserve_output_tokens": None})
    writers = min(WRITERS, b.max_num_seqs - 1)
    room = _room(model, b, writers)
    if writers < 1 or room < 1:
        raise ScenarioError.of(
            "batching.max_num_seqs",
            str(b.max_num_seqs),
            "leaves no room for a long prompt beside somebody who writes",
            "give a replica two seats or more, and more memory",
        )
    length = min(prompt_tokens, room)
    if b.policy != "chunked":
        model = replica_model(s, length + writers * (_SHORT_PROMPT + _answer(b, length, writers)))
    fleet = Fleet(model, b, keep_waits=True)
    alone = _people(writers, _answer(b, length, writers))
    ends = _token_times(*_served(fleet, alone))[-1]
    comes = float(ends[_BEFORE - 1] + 0.5 * (ends[_BEFORE] - ends[_BEFORE - 1]))
    run, log = _served(fleet, _and_one(alone, comes, length))
    times = [t - comes for t in _token_times(run, log)]
    return _told(s, run, log, times, comes, prompt_tokens)


def _room(model: ReplicaModel, b: Batching, writers: int) -> int:
    """The longest prompt that fits beside the writers, and is read in ``_MOST_STEPS``."""
    chunk = b.max_num_batched_tokens - writers
    most = _MOST_STEPS * chunk if b.policy == "chunked" else _MOST_TOKENS
    if model.context_limit is not None:
        most = min(most, model.context_limit - _LONG_ANSWER)
    if model.kv_capacity_tokens is not None:
        each = _SHORT_PROMPT + _BEFORE + _AFTER + 2
        free = int((1.0 - b.watermark) * model.kv_capacity_tokens) - _LONG_ANSWER - writers * each
        # With each chunk everybody writes a token, and holds it.
        most = min(most, free * chunk // b.max_num_batched_tokens if b.policy == "chunked" else free)
    return most


def _answer(b: Batching, length: int, writers: int) -> int:
    """Tokens that a writer must have to write from before the long prompt to after it."""
    steps = -(-length // max(b.max_num_batched_tokens - writers, 1)) if b.policy == "chunked" else 1
    return _BEFORE + steps + _AFTER


def _people(writers: int, answer: int) -> Requests:
    return _requests(np.zeros(writers), np.full(writers, _SHORT_PROMPT), np.full(writers, answer))


def _and_one(people: Requests, comes_s: float, length: int) -> Requests:
    return _requests(
        np.append(people.arrival_s, comes_s),
        np.append(people.prompt_tokens, length),
        np.append(people.output_tokens, _LONG_ANSWER),
    )


def _requests(arrival_s: Floats, prompt: NDArray[np.integer], output: NDArray[np.integer]) -> Requests:
    none = np.zeros(arrival_s.size, np.int32)
    return Requests(
        arrival_s=arrival_s,
        prompt_tokens=prompt.astype(np.int32),
        output_tokens=output.astype(np.int32),
        cached_prefix_tokens=none,
        class_id=none.astype(np.int16),
        priority=none.copy(),
        class_names=("all",),
    )


def _served(fleet: Fleet, requests: Requests) -> tuple[FleetRun, StepLog]:
    pieces: list[StepLog] = []
    run = run_fleet(fleet, [requests], 1, pieces.append)
    return run, StepLog.joined(pieces)


def _steps(log: StepLog) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """(steps,): start and end of every step of the one lane, and whether those who are written for get a token."""
    j = np.concatenate([np.arange(k) for k in log.k])
    t0, d, slope = (np.repeat(column, log.k) for column in (log.t0, log.d, log.slope))
    start, end = (t0 + (n * d + slope * (0.5 * n * (n - 1))) for n in (j, j + 1))
    writes = np.repeat(log.stalled == 0, log.k) if log.stalled.size else np.ones(end.size, np.bool_)
    return start, end, writes


def _token_times(run: FleetRun, log: StepLog) -> list[Floats]:
    """When each request's tokens came: its first, and one at the end of every later step in which people write."""
    _, end, writes = _steps(log)
    a, found = run.attempts, []
    for first, finish in zip(a.first_token_s, a.finish_s, strict=True):
        later = end[writes & (end > first) & (end <= finish)]
        found.append(np.concatenate([[first], later]))
    return found


def _told(s: Scenario, run: FleetRun, log: StepLog, times: list[Floats], comes_s: float, wanted: int) -> Interference:
    a, long = run.attempts, len(times) - 1
    start, end, _ = _steps(log)
    read = (start >= a.scheduled_s[long]) & (end <= a.first_token_s[long])
    last = times[long - 1]  # of those who write, so that nobody's prompt but the long one is read after its first token
    gaps = np.diff(last)
    widest = int(gaps.argmax())
    before = last[:-1] < 0.0
    return Interference(
        policy=s.batching.policy,
        prompt_tokens=int(a.prompt_tokens[long]),
        wanted_tokens=wanted,
        tokens_s=tuple(times[:long]),
        long_tokens_s=times[long],
        read_from_s=float(a.scheduled_s[long]) - comes_s,
        steps=int(read.sum()),
        usual_s=float(np.median(gaps[before][:-1])),
        longest_s=float(gaps[widest]),
        longest_from_s=float(last[widest]),
        stall_s=float(a.stalled_s[long - 1]),
    )
