"""One scenario from document to result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.machine import ReplicaModel, replica_model
from engine.outcome import Meter, Result
from engine.scenario import Scenario
from engine.serving import Fleet, FleetRun, Sink, StepLog, run_fleet, run_fleets, run_users
from engine.traffic import Requests, Trace, generate, users

from .capacity import capacity_rps, measure_together, pool_rates
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
    watch = _Watch(load)
    return watch.result(load.serve(watch), trace, started)


def simulate_together(scenarios: Sequence[Scenario], trace: Trace | None = None) -> list[Result]:
    """What `simulate` gives for each, for less time: fleets that differ in their machines alone run side by side.

    The scenarios have the same traffic and run, and no closed loop. Raises as `simulate` does.
    """
    started = time.perf_counter()
    loads = [_open(s, trace, None, False) for s in scenarios]
    watches = [_Watch(load) for load in loads]
    seed = scenarios[0].run.seed if scenarios else 0
    runs = run_fleets([load.fleet for load in loads], [load.given for load in loads], seed, watches)
    measure_together([(load.scenario, load.model) for load in loads], trace)
    return [watch.result(run, trace, started) for watch, run in zip(watches, runs, strict=True)]


@dataclass(frozen=True, slots=True)
class _Load:
    """Everything that is drawn before the clock starts, and how to start it."""

    scenario: Scenario
    model: ReplicaModel
    fleet: Fleet
    given: list[Requests]
    """Each seed's requests; none where users make them."""
    serve: Callable[[Sink], FleetRun]
    requests: int
    """How many there are, or at most can be."""
    notes: tuple[str, ...]


class _Watch:
    """Takes a run's steps: measures them, and keeps those of runs that aren't too large."""

    def __init__(self, load: _Load) -> None:
        s = load.scenario
        readers = s.batching.disaggregated.prefill_replicas if s.batching.policy == "disaggregated" else None
        self._load, self._kept = load, list[StepLog]()
        self._keep = load.requests <= KEEP_STEPS_OF
        self._meter = Meter(s.run.seeds, load.fleet.places, s.run.warmup_s, s.run.horizon_s, readers)

    def __call__(self, log: StepLog) -> None:
        self._meter(log)
        if self._keep:
            self._kept.append(log)

    def _steps(self) -> StepLog:
        if self._keep:
            return StepLog.joined(self._kept)
        again: list[StepLog] = []
        self._load.serve(again.append)
        return StepLog.joined(again)

    def result(self, run: FleetRun, trace: Trace | None, started: float) -> Result:
        """What the whole run comes to; it began at ``started`` by the performance counter."""
        load, s = self._load, self._load.scenario
        notes = [*load.model.notes, *load.notes]
        if not run.attempts.arrival_s.size:
            notes.append("No request arrived: there is nothing to measure.")
        capacity, rates = capacity_rps(s, load.model, trace), pool_rates(s, load.model, trace)
        apart = None if rates is None else (rates.reads_rps, rates.writes_rps)
        told, spent = tuple(dict.fromkeys(notes)), time.perf_counter() - started
        return Result(s, load.model, run, self._meter, self._steps, capacity, told, spent, s.run.seed, apart)


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
    return _Load(s, model, fleet, requests, lambda sink: run_fleet(fleet, requests, seed, sink), total, tuple(notes))


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
    return _Load(s, model, fleet, [], lambda sink: run_users(fleet, people, client.backoff_s, sink), total, ())


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
