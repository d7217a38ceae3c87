"""Runs one coupled reference case through the engine, from its scenario on, and says where the two differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

from engine.scenario import Scenario
from engine.serving import Fleet, FleetRun, StepLog, run_fleet
from engine.traffic import ROUTER, stream
from tests.reference.draws import Draws
from tests.reference.model import AdaptiveLifo, Codel, Outcome, Request, Setup
from tests.reference.points import LOAD_AWARE
from tests.serving.compare import model_of, requests_of, run_differences

MOST_ROUTED = 10_000


class _Coarse:
    """A stream's generator whose uniforms are multiples of 2^-6, so that sums of waits are exact."""

    def __init__(self, seed: int, name: str) -> None:
        self._generator = stream(seed, name)

    def random(self, size: Any = None) -> Any:
        return np.floor(self._generator.random(size) * 64) / 64


@contextmanager
def coarse_streams() -> Iterator[None]:
    """The engine draws multiples of 2^-6 meanwhile, wherever it has imported `stream`."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    patches = [
        patch.object(module, "stream", _Coarse) for module in modules if getattr(module, "stream", None) is stream
    ]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def draws_of(seed: int, requests: int, exact: bool) -> Draws:
    """The engine's streams of a seed; backoff and throttle have one number per request in a stream per attempt."""
    source = _Coarse if exact else stream

    @cache
    def numbers(name: str, count: int) -> list[float]:
        return source(seed, name).random(count).tolist()

    return Draws(
        router=lambda i: numbers(ROUTER, MOST_ROUTED)[i],
        backoff=lambda attempt, request: numbers(f"backoff.{attempt}", requests)[request],
        throttle=lambda attempt, request: numbers(f"throttle.{attempt}", requests)[request],
    )


def scenario_of(setup: Setup) -> Scenario:
    """The reference's setup as a scenario; the machine and the horizon are not in it."""
    if setup.routable is not None:
        raise ValueError("routable: a scenario's replicas come and go by its autoscaler alone")
    client = {
        "timeout_s": setup.timeout_s,
        "ttft_timeout_s": setup.ttft_timeout_s,
        "on_timeout": setup.on_timeout,
        "max_retries": setup.max_retries,
        "backoff_s": setup.backoff_s,
        "retry_budget_ratio": setup.retry_budget_ratio,
        "retry_layers": setup.retry_layers,
        "throttle": None if setup.throttle is None else {"k": setup.throttle.k, "window_s": setup.throttle.window_s},
    }
    routing: dict[str, Any] = {"policy": setup.routing}
    if setup.routing in LOAD_AWARE:
        routing |= {name: getattr(setup, name) for name in ("report_interval_s", "count_own_sends", "ties")}
    batching = ("policy", "kv_policy", "max_num_seqs", "max_num_batched_tokens", "watermark", "reserve_output_tokens")
    return Scenario.from_dict(
        {
            "traffic": {"client": client},
            "batching": {name: getattr(setup, name) for name in (*batching, "batch_wait_s")},
            "fleet": {"replicas": setup.replicas, "routing": routing},
            "admission": _admission(setup),
        }
    )


def _admission(setup: Setup) -> dict[str, Any]:
    discipline: dict[str, Any] = {"kind": "fifo"}
    if isinstance(setup.discipline, Codel):
        discipline = {"kind": "codel"} | {n: getattr(setup.discipline, n) for n in ("target_s", "interval_s")}
    if isinstance(setup.discipline, AdaptiveLifo):
        discipline = {"kind": "adaptive_lifo", "after_s": setup.discipline.after_s}
    limit = setup.rate_limit
    return {
        "max_outstanding": setup.max_outstanding,
        "max_queued_tokens": setup.max_queued_tokens,
        "queue_timeout_s": setup.queue_timeout_s,
        "rate_limit": None if limit is None else {"rate_rps": limit[0], "burst": limit[1]},
        "shed": None if setup.shed_ttft_s is None else {"ttft_s": setup.shed_ttft_s},
        "discipline": discipline,
    }


def run_coupled(setup: Setup, cases: Sequence[Sequence[Request]], first_seed: int) -> tuple[FleetRun, StepLog]:
    """Serve several lists of requests, each in order of arrival, as the seeds of one run."""
    model = model_of(setup, [r for case in cases for r in case])
    fleet = replace(Fleet.of(scenario_of(setup), model), horizon_s=setup.horizon_s, keep_waits=True)
    pieces: list[StepLog] = []
    run = run_fleet(fleet, [requests_of(case)[0] for case in cases], first_seed, pieces.append)
    return run, StepLog.joined(pieces)


def coupled_differences(
    setup: Setup, requests: Sequence[Request], seed: int, expected: Outcome, exact: bool
) -> list[str]:
    """Every attempt and step in which the engine and the reference differ, in words; empty when equal.

    ``requests`` are in order of arrival. ``exact``: times have to be equal, with luck rounded to multiples of 2^-6.
    """
    if exact:
        with coarse_streams():
            run, log = run_coupled(setup, [requests], seed)
    else:
        run, log = run_coupled(setup, [requests], seed)
    place = {(row.request, row.attempt): i for i, row in enumerate(expected.requests)}
    made = list(zip(run.attempts.request.tolist(), run.attempts.attempt.tolist(), strict=True))
    if sorted(made) != sorted(place):
        return [f"attempts: expected {sorted(set(place) - set(made))}, got {sorted(set(made) - set(place))} instead"]
    if made != sorted(made):
        return ["attempts: not in order of (request, attempt)"]
    return run_differences(run, log, [place[pair] for pair in made], expected, exact)
