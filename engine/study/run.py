"""One scenario from document to result."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from engine.machine import replica_model
from engine.outcome import Meter, Result
from engine.scenario import Scenario
from engine.serving import Fleet, StepLog, run_fleet
from engine.traffic import Requests, Trace, generate

from .capacity import capacity_rps
from .prompts import prompts_at_once

KEEP_STEPS_OF = 300_000
"""Requests up to which a run's steps are kept for its tables; those of a larger run are made again when asked for."""


def simulate(s: Scenario, trace: Trace | None = None, *, requests_per_lane: int | None = None) -> Result:
    """Run a scenario; deterministic in (scenario, trace) but for ``wall_s``.

    ``trace`` is the content of ``traffic.trace.source`` when the process is ``trace``. ``requests_per_lane`` makes a
    quick first answer: each seed stops after that many requests a replica, with its horizon cut there; the result's
    notes say so.

    Raises ``ScenarioError`` when the model doesn't fit its hardware or the warm-up outlasts a trace without horizon,
    and ``TraceError`` when the trace is missing.
    """
    started = time.perf_counter()
    requests = [generate(s.traffic, s.run, s.run.seed + i, trace) for i in range(s.run.seeds)]
    model = replica_model(s, prompts_at_once(s.batching, requests))
    notes = [*model.notes, *(note for r in requests for note in r.notes)]
    if requests_per_lane is not None:
        s, requests, cut = _shorten(s, requests, requests_per_lane * s.fleet.replicas)
        notes.extend(cut)
    fleet, total = Fleet.of(s, model), sum(r.arrival_s.size for r in requests)
    meter = Meter(s.run.seeds, s.fleet.replicas, s.run.warmup_s, s.run.horizon_s)
    kept: list[StepLog] = []
    keep = total <= KEEP_STEPS_OF

    def watch(log: StepLog) -> None:
        meter(log)
        if keep:
            kept.append(log)

    def steps() -> StepLog:
        if keep:
            return StepLog.joined(kept)
        again: list[StepLog] = []
        run_fleet(fleet, requests, s.run.seed, again.append)
        return StepLog.joined(again)

    run = run_fleet(fleet, requests, s.run.seed, watch)
    if not total:
        notes.append("No request arrived: there is nothing to measure.")
    capacity = capacity_rps(s, model, trace)
    spent = time.perf_counter() - started
    return Result(s, model, run, meter, steps, capacity, tuple(dict.fromkeys(notes)), spent, s.run.seed)


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
