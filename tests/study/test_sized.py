"""Fleets sized for the average and for the worst minute."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome import arriving
from engine.scenario import preset
from engine.study import sized
from engine.study.sized import SEEDS
from engine.traffic import read_trace

CALM = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 1.5,
            "shape": {"kind": "steps", "points": [[0, 1.0], [240, 3.0], [300, 1.0]]},
            "classes": [
                {
                    "prompt_tokens": {"dist": "constant", "value": 1},
                    "output_tokens": {"dist": "constant", "value": 50},
                }
            ],
        },
        "performance": {"kind": "linear", "overhead_s": 0.02},
        "batching": {"max_num_seqs": 1},
        "fleet": {"replicas": 1},
        "slo": [{"name": "first", "metric": "ttft", "threshold_s": 3.0, "target": 0.95}],
        "run": {"seeds": 2, "horizon_s": 600.0, "warmup_s": 60.0},
    }
)
"""One a second can be served by a replica; for a minute three times as many come."""


def test_sized_for_the_average_it_fails_in_the_worst_minute_and_sized_for_that_it_holds() -> None:
    found = sized(CALM)
    assert found is not None
    assert found.each_rps == pytest.approx(1.0, rel=0.01)
    assert found.rate_rps == pytest.approx(1.8, rel=0.1)
    assert found.average.replicas == ceil(found.rate_rps / found.each_rps) == 2
    assert found.worst.replicas == ceil(found.worst_rps / found.each_rps)
    assert found.worst.replicas in (4, 5, 6)
    assert found.average.kept_worst is not None
    assert found.average.kept_worst < 0.3
    assert found.average.kept is not None
    assert found.average.kept > found.average.kept_worst
    assert found.worst.kept_worst is not None
    assert found.worst.kept_worst > 0.8
    assert found.average.p95_worst_s is not None
    assert found.worst.p95_worst_s is not None
    assert found.worst.p95_worst_s < found.average.p95_worst_s / 3


def test_what_comes_is_counted_over_all_runs_as_on_the_page() -> None:
    many = CALM.replace({"run.seeds": SEEDS + 4, "run.horizon_s": 240.0})
    found, counted = sized(many), arriving(simulate(many)).clumps
    assert found is not None
    assert (found.rate_rps, found.worst_rps) == (counted.rate_rps, counted.worst_rps)
    assert found.runs == SEEDS


def test_the_figures_are_those_of_a_run_of_that_fleet() -> None:
    found = sized(CALM)
    assert found is not None
    result = simulate(CALM.replace({"fleet.replicas": 2}))
    assert found.average.kept == result.attainments[0].attainment
    assert found.average.p95_s == result.latency["ttft"].figures["p95"]
    a = result.run.attempts
    good = result.scored(CALM.slo[0]).good
    kept = []
    for seed in range(2):
        mine = a.seed_index == seed
        minute = (a.arrival_s[mine] // 60).astype(int)
        worst = 1 + np.bincount(minute)[1:].argmax()  # after the warm-up
        kept.append(good[mine][minute == worst])
    assert found.average.kept_worst == pytest.approx(np.concatenate(kept).mean())


def test_without_a_promise_there_are_times_alone() -> None:
    found = sized(CALM.replace({"slo": []}))
    assert found is not None
    assert (found.average.kept, found.average.kept_worst) == (None, None)
    assert found.average.p95_worst_s is not None


def test_where_one_fleet_is_enough_for_both_there_is_one_run() -> None:
    found = sized(CALM.replace({"traffic.rate_rps": 0.1}))
    assert found is not None
    assert found.average is found.worst
    assert found.average.replicas == 1


def test_an_autoscaler_is_left_out_and_users_who_wait_have_no_worst_minute() -> None:
    found = sized(CALM.replace({"autoscaler.policy": "hpa", "autoscaler.max_replicas": 8}))
    assert found is not None
    assert found.average.replicas == 2
    assert sized(preset("one-read").scenario) is None


def test_a_trace_is_sized_too() -> None:
    times = [*range(0, 200, 2), *range(200, 260), *range(260, 400, 2)]
    rows = "".join(f"{t},1,50\n" for t in times)
    trace = read_trace(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode())
    s = CALM.replace(
        {
            "traffic.process": "trace",
            "traffic.rate_rps": 4.0,
            "traffic.shape": {"kind": "steady"},
            "run.horizon_s": None,
            "run.seeds": 1,
        }
    )
    found = sized(s, trace)
    assert found is not None
    assert (found.average.replicas, found.worst.replicas, found.runs) == (1, 1, 1)
    assert found.worst_rps == pytest.approx(50 / 60, abs=0.2)


def test_nothing_comes() -> None:
    assert sized(CALM.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})) is None
