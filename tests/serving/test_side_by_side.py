"""Fleets that run together fare as each by itself, bit by bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from engine.machine import replica_model
from engine.scenario import Scenario
from engine.serving import Fleet, FleetRun, StepLog, run_fleet, run_fleets, side_by_side
from engine.traffic import Requests, generate

BASE = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 6.0,
            "classes": [
                {
                    "prompt_tokens": {"dist": "lognormal", "mean": 1500, "cv": 1.0, "min": 16, "max": 8000},
                    "output_tokens": {"dist": "geometric", "mean": 80},
                }
            ],
        },
        "model": {"name": "Llama-3.1-8B"},
        "run": {"horizon_s": 40, "warmup_s": 5, "seeds": 2},
    }
)
LAYOUTS: tuple[dict[str, Any], ...] = (
    {"parallelism.tp": 1, "fleet.replicas": 4},
    {"parallelism.tp": 2, "fleet.replicas": 2},
    {"parallelism.tp": 1, "parallelism.cp": 4, "fleet.replicas": 1},
    {"parallelism.tp": 1, "parallelism.pp": 2, "fleet.replicas": 2},
    {"parallelism.tp": 4, "fleet.replicas": 1, "batching.kv_capacity_tokens": 12_000},
    {"parallelism.tp": 4, "fleet.replicas": 1, "hardware.accelerator": "A100-SXM4-80GB"},
    {"parallelism.tp": 2, "parallelism.pp": 2, "fleet.replicas": 1, "batching.kv_capacity_tokens": 12_000},
)
CLASSES = [
    {"name": "first", "priority": 0, "prompt_tokens": {"dist": "constant", "value": 900}},
    {"name": "later", "priority": 2, "prompt_tokens": {"dist": "constant", "value": 2500}},
]
WITH: dict[str, dict[str, Any]] = {
    "plain": {},
    "reserve": {"batching.kv_policy": "reserve"},
    "prompts first": {"batching.policy": "prefill_first"},
    "groups": {"batching.policy": "static"},
    "classes": {"traffic.classes": CLASSES},
    "limits": {"admission.max_outstanding": 9, "admission.rate_limit": {"rate_rps": 5.0, "burst": 10}},
    "deadlines": {"traffic.client.timeout_s": 3.0, "admission.queue_timeout_s": 0.5},
    "delay": {"admission.discipline": {"kind": "codel"}},
}


def column_by_column(a: object, b: object, names: list[str]) -> None:
    for name in names:
        x, y = getattr(a, name), getattr(b, name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype, name
            np.testing.assert_array_equal(x, y, err_msg=name)


def apart(each: list[Fleet], requests: list[list[Requests]]) -> list[tuple[FleetRun, StepLog]]:
    found = []
    for one, mine in zip(each, requests, strict=True):
        log: list[StepLog] = []
        found.append((run_fleet(one, mine, 1, log.append), StepLog.joined(log)))
    return found


def sorted_log(log: StepLog) -> StepLog:
    """By lane and time: entries of other lanes come in between."""
    order = np.lexsort((log.t0, log.lane))
    return StepLog(*(column[order] if column.size else column for column in _columns(log)))


def _columns(log: StepLog) -> list[Any]:
    return [getattr(log, f.name) for f in fields(StepLog)]


@pytest.mark.parametrize("kind", WITH)
def test_together_as_alone(kind: str) -> None:
    scenarios = [BASE.replace(layout) for layout in LAYOUTS]
    if kind in ("prompts first", "groups", "delay"):  # which pipelines don't go with
        scenarios = [s for s in scenarios if s.parallelism.pp == 1]
    scenarios = [s.replace(WITH[kind]) for s in scenarios]
    requests = [[generate(s.traffic, s.run, s.run.seed + i) for i in range(2)] for s in scenarios]
    most = int(max(r.prompt_tokens.sum() for mine in requests for r in mine))
    each = [Fleet.of(s, replica_model(s, most)) for s in scenarios]
    logs: list[list[StepLog]] = [[] for _ in each]
    runs = run_fleets(each, requests, 1, [log.append for log in logs])
    for (alone, steps), run, log in zip(apart(each, requests), runs, logs, strict=True):
        column_by_column(alone, run, [f.name for f in fields(FleetRun)])
        column_by_column(alone.attempts, run.attempts, [f.name for f in fields(alone.attempts)])
        column_by_column(sorted_log(steps), sorted_log(StepLog.joined(log)), [f.name for f in fields(StepLog)])


def test_more_lanes_than_run_together(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = [BASE.replace(layout) for layout in LAYOUTS[:3]]
    requests = [[generate(s.traffic, s.run, s.run.seed)] for s in scenarios]
    each = [Fleet.of(s, replica_model(s)) for s in scenarios]
    ignored = [lambda log: None] * 3
    whole = run_fleets(each, requests, 1, ignored)
    monkeypatch.setattr(side_by_side, "BATCH_LANES", 3)
    for one, other in zip(whole, run_fleets(each, requests, 1, ignored), strict=True):
        np.testing.assert_array_equal(one.attempts.finish_s, other.attempts.finish_s)
