"""One scenario from document to result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engine.machine import ReplicaModel, replica_model
from engine.outcome import Meter, Result
from engine.scenario import Scenario
from engine.serving import Fleet, FleetRun, Sink, StepLog, run_fleet, run_users
from engine.traffic import Requests, Trace, generate, users

from .capacity import capacity_rps, pool_rates
from .prompts import prompts_at_once

KEEP_STEPS_OF = 300_000
"""Requests up to which a run's steps are kept for its tables; those of a larger run are made again when asked for."""


def simulate(
    s: Scenario, trace: Trace | None = None, *, requests_per_lane: int | None = None, waits: bool = False
) -> Result:
    """Run a scenario; deterministic in (scenario, trace) but for ``wall_s``.

    ``trace`` is the content of ``traffic.trace.source`` when the process is ``trace``. ``requests_per_lane`` makes a
    quick first answer: each seed stops after that many requests a replica, with its horizon cut there; the result's
    notes say so. ``waits`` keeps what ``outcome.where`` takes apart, but of pipelines; nothing else changes.

    Raises ``ScenarioError`` when the model doesn't fit its hardware or the warm-up outlasts a trace without horizon,
    and ``TraceError`` when the trace is missing.
    """
    started = time.perf_counter()
    load = _closed(s, waits) if s.traffic.process == "closed" else _open(s, trace, requests_per_lane, waits)
    s = load.scenario
    readers = s.batching.disaggregated.prefill_replicas if s.batching.policy == "disaggregated" else None
    meter = Meter(s.run.seeds, load.places, s.run.warmup_s, s.run.horizon_s, readers)
    kept: list[StepLog] = []
    keep = load.requests <= KEEP_STEPS_OF

    def watch(log: StepLog) -> None:
        meter(log)
        if keep:
            kept.append(log)

    def steps() -> StepLog:
        if keep:
            return StepLog.joined(kept)
        again: list[StepLog] = []
        load.serve(again.append)
        return StepLog.joined(again)

    run = load.serve(watch)
    notes = [*load.model.notes, *load.notes]
    if not run.attempts.arrival_s.size:
        notes.append("No request arrived: there is nothing to measure.")
    capacity, rates = capacity_rps(s, load.model, trace), pool_rates(s, load.model, trace)
    apart = None if rates is None else (rates.reads_rps, rates.writes_rps)
    spent = time.perf_counter() - started
    return Result(s, load.model, run, meter, steps, capacity, tuple(dict.fromkeys(notes)), spent, s.run.seed, apart)


@dataclass(frozen=True, slots=True)
class _Load:
    """Everything that is drawn before the clock starts, and how to start it."""

    scenario: Scenario
    model: ReplicaModel
    serve: Callable[[Sink], FleetRun]
    places: int
    """Replicas that each seed has room for."""
    requests: int
    """How many there are, or at most can be."""
    notes: tuple[str, ...]


def _open(s: Scenario, trace: Trace | None, requests_per_lane: int | None, waits: bool) -> _Load:
    """Requests that come whatever becomes of those before them."""
    requests = [generate(s.traffic, s.run, s.run.seed + i, trace) for i in range(s.run.seeds)]
    model = replica_model(s, prompts_at_once(s.batching, requests))
    notes = [note for r in requests for note in r.notes]
    if requests_per_lane is not None:
        s, requests, cut = _shorten(s, requests, requests_per_lane * s.replicas)
        notes.extend(cut)
    fleet, seed = replace(Fleet.of(s, model), keep_waits=waits), s.run.seed
    total = sum(r.arrival_s.size for r in requests)
    return _Load(s, model, lambda sink: run_fleet(fleet, requests, seed, sink), fleet.places, total, tuple(notes))


def _closed(s: Scenario, waits: bool) -> _Load:
    """Users who ask again when they have their answer."""
    token_s = float(replica_model(s).base[1:].min())  # a step makes one token of an answer at most
    client, admission = s.traffic.client, s.admission
    patience = (client.timeout_s, client.ttft_timeout_s, admission.queue_timeout_s)
    # Somebody who is refused is through at once but for the wait before asking again.
    shortest = min([client.backoff_s, *(wait for wait in patience if wait is not None)])
    people = [users(s.traffic, s.run, s.run.seed + i, token_s, shortest) for i in range(s.run.seeds)]
    model = replica_model(s, prompts_at_once(s.batching, people))
    fleet = replace(Fleet.of(s, model), keep_waits=waits)
    total = sum(int(u.start[-1]) for u in people)
    return _Load(s, model, lambda sink: run_users(fleet, people, client.backoff_s, sink), fleet.places, total, ())


def _shorten(s: Scenario, requests: list[Requests], most: int) -> tuple[Scenario, list[Requests], list[str]]:
    """Cut every seed at the time by which the busiest has had ``most`` arrivals."""
    cut = min((float(r.arrival_s[most]) for r in requests if r.arrival_s.size > most), default=None)
    if cut is None or cut <= s.run.warmup_s * 2:
        return s, requests, []
    kept = [_first(r, int(np.searchsorted(r.arrival_s, cut))) for r in requests]
    note = f"A first answer from the first {cut:.0f} s of each run; the whole run follows."
    return s.replace({"run.horizon_s": cut}), kept, [note]


def _first(r: Requests, count: int) -> Requests:
    columns = ("arrival_s", "prompt_tokens", "output_tokens", "cached_prefix_tokens", "class_id", "priority")
    return replace(r, **{name: getattr(r, name)[:count] for name in columns})
