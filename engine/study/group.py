"""Who shares a step of this scenario, and what caps the group: figures that need no simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.machine import Memory, Sharing, replica_model, room, seats, sharing
from engine.outcome import InFlight, kv_in_flight
from engine.scenario import Growth, Scenario
from engine.traffic import Requests, Trace

from .saturated import held_tokens, mix_of

Floats = NDArray[np.float64]
Cap = Literal["max_num_seqs", "kv"]

_CURVE_POINTS = 60
_SPAN = 16.0
"""The seats are drawn for conversations this many times shorter and longer than those that there are."""


@dataclass(frozen=True, slots=True)
class Record:
    """A conversation of the mix, met in the middle of its work: long ones are met more often."""

    context_tokens: float
    """What its next token attends to, on average."""
    held_tokens: float
    """What it takes of the KV, on average: without what is cached and shared."""
    seats: float
    """How many of them fit: what KV memory allows or max_num_seqs, whichever is less."""


@dataclass(frozen=True, slots=True)
class Group:
    """What a replica's steps cost by group size, and how large the group can be."""

    sharing: Sharing
    record: Record
    """Of the whole run's mix, at its start where lengths grow."""
    grown: Record | None
    """At the end of the run where lengths grow."""
    kv_capacity_tokens: int | None
    max_num_seqs: int
    crossover_tokens: float | None
    """Length from which on KV and not max_num_seqs caps the group; None where KV is unlimited."""
    lengths: Floats
    """(n,): tokens held by a conversation, for the curve of seats."""
    seats: Floats
    """(n,): conversations of that length that fit."""
    memory: Memory | None
    """Of one accelerator; None for a measured profile."""

    def limit(self, record: Record) -> Cap:
        """What limits the seats of a record."""
        return "max_num_seqs" if record.seats >= self.max_num_seqs else "kv"


def group(s: Scenario, trace: Trace | None = None, size: int = 1) -> Group | None:
    """The group of a scenario; ``size`` is one that the curves must have. ``None`` when none of the mix fits a replica.

    Raises ``ScenarioError`` and ``TraceError`` as `simulate` does.
    """
    model = replica_model(s)
    growth = s.traffic.growth
    pool = mix_of(_as_at_first(s), model, trace if s.traffic.process == "trace" else None)
    if not len(pool):
        return None
    capacity, most = model.kv_capacity_tokens, s.batching.max_num_seqs
    now = _record(s, capacity, pool)
    middle = now.held_tokens if capacity is None else np.sqrt(now.held_tokens * capacity / most)
    ends = [now.held_tokens, middle]
    lengths = np.geomspace(max(1.0, min(ends) / _SPAN), max(ends) * _SPAN, _CURVE_POINTS)
    crossover = None if capacity is None else capacity / most
    if crossover is not None:
        lengths = np.unique(np.append(lengths, crossover))
    return Group(
        sharing=sharing(s, now.context_tokens, [size]),
        record=now,
        grown=None if growth is None else _record(s, capacity, _grown(pool, growth)),
        kv_capacity_tokens=capacity,
        max_num_seqs=most,
        crossover_tokens=crossover,
        lengths=lengths,
        seats=seats(capacity, most, lengths),
        memory=room(s),
    )


def in_flight(s: Scenario, rate_rps: float, word_s: float, trace: Trace | None = None) -> InFlight | None:
    """KV under way at so many requests a second and seconds a word, if memory had no end; ``None`` as of `group`."""
    pool = mix_of(_as_at_first(s), replica_model(s), trace if s.traffic.process == "trace" else None)
    if not len(pool):
        return None
    own = (pool.prompt_tokens - pool.cached_prefix_tokens).astype(np.float64)
    return kv_in_flight(rate_rps, word_s, own, pool.output_tokens.astype(np.float64))


def _as_at_first(s: Scenario) -> Scenario:
    """Lengths before they grow; a trace as recorded, because blocks of it have the same."""
    grows, drawn = s.traffic.growth is not None, s.traffic.trace.resample != "none"
    return s.replace({"traffic.growth": None, "traffic.trace.resample": "none"}) if grows or drawn else s


def _grown(pool: Requests, growth: Growth) -> Requests:
    """The mix as it is at the end of the run."""
    prompt, output = (
        np.maximum(np.floor(tokens * factor + 0.5), 1).astype(np.int32)
        for tokens, factor in ((pool.prompt_tokens, growth.prompt_factor), (pool.output_tokens, growth.output_factor))
    )
    cached = np.minimum(pool.cached_prefix_tokens, prompt - 1).astype(np.int32)
    return replace(pool, prompt_tokens=prompt, output_tokens=output, cached_prefix_tokens=cached)


def _record(s: Scenario, kv_capacity_tokens: int | None, pool: Requests) -> Record:
    context = float(np.average(pool.prompt_tokens + pool.output_tokens / 2, weights=pool.output_tokens))
    held = held_tokens(s.batching, pool)
    fitting = float(seats(kv_capacity_tokens, s.batching.max_num_seqs, np.array([held]))[0])
    return Record(context, held, fitting)
