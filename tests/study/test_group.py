"""The group of a scenario: what the engine admits follows the memory that is left, and the curves follow the mix."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome import group_course
from engine.scenario import preset
from engine.study import group, in_flight
from engine.traffic import read_trace

BUSY = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 20.0,
            "classes": [
                {
                    "prompt_tokens": {"dist": "lognormal", "mean": 3000, "cv": 0.8, "max": 12_000},
                    "output_tokens": {"dist": "lognormal", "mean": 900, "cv": 0.7, "max": 4000},
                }
            ],
        },
        "model": {"name": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16"},
        "hardware": {"accelerator": "A100-SXM4-80GB"},
        "parallelism": {"tp": 1},
        "fleet": {"replicas": 1},
        "slo": [],
        "run": {"horizon_s": 150.0, "warmup_s": 50.0, "seeds": 2},
    }
)
"""More than can be served, so that somebody always waits for memory."""


@pytest.mark.parametrize("utilization", [0.35, 0.5, 0.75, 0.92])
def test_admitted_concurrency_follows_free_memory_over_a_conversation_s_record(utilization: float) -> None:
    s = BUSY.replace({"batching.gpu_memory_utilization": utilization})
    found, course = group(s), group_course(simulate(s))
    assert found is not None
    assert found.memory is not None
    free, record = found.memory.kv, found.record.held_tokens * found.memory.kv_per_token
    counted = course.start_s >= 50.0
    assert course.kv_limited[counted].mean() > 0.85, "but for moments, memory is what they wait for"
    assert found.limit(found.record) == "kv"
    assert found.record.seats == pytest.approx(free / record, rel=1e-4)
    # The next one needs a whole record: part of one is always left over.
    assert course.running[counted].mean() == pytest.approx(free / record, abs=1.0 + 0.02 * free / record)


def test_seats_that_are_set_aside_hold_whole_answers() -> None:
    s = BUSY.replace({"batching.kv_policy": "reserve"})
    grown, whole = group(BUSY), group(s)
    assert grown is not None
    assert whole is not None
    assert whole.record.context_tokens == grown.record.context_tokens
    assert whole.record.held_tokens > grown.record.held_tokens
    course = group_course(simulate(s))
    assert course.running[course.start_s >= 50.0].mean() == pytest.approx(whole.record.seats, rel=0.04)


def test_the_curve_bends_where_memory_takes_over_from_the_setting() -> None:
    s = BUSY.replace({"batching.kv_capacity_tokens": 128_000, "batching.max_num_seqs": 64})
    found = group(s)
    assert found is not None
    assert found.crossover_tokens == 2000.0
    at = found.lengths <= 2000.0
    assert (found.seats[at] == 64.0).all()
    assert np.allclose(found.seats[~at] * found.lengths[~at], 128_000)
    assert found.lengths[0] < found.record.held_tokens < found.lengths[-1]
    few = group(s.replace({"batching.max_num_seqs": 8}))
    assert few is not None
    assert (few.limit(few.record), few.record.seats) == ("max_num_seqs", 8.0)


def test_memory_without_end_leaves_the_setting() -> None:
    s = BUSY.replace({"performance": {"kind": "linear", "overhead_s": 0.02}})
    found = group(s)
    assert found is not None
    assert (found.kv_capacity_tokens, found.crossover_tokens, found.memory) == (None, None, None)
    assert set(found.seats) == {256.0}


def test_wordier_traffic_has_a_second_point() -> None:
    found = group(preset("wordy").scenario)
    assert found is not None
    assert found.grown is not None
    assert found.grown.seats < 0.35 * found.record.seats
    plain = group(preset("wordy").scenario.replace({"traffic.growth": None}))
    assert plain is not None
    assert (plain.record, plain.grown) == (found.record, None)


def test_the_mix_of_a_trace_and_of_fixed_users() -> None:
    trace = read_trace(b"arrival_s,prompt_tokens,output_tokens\n0,1000,100\n1,100,300\n")
    s = BUSY.replace({"traffic.process": "trace", "traffic.rate_rps": 4.0})
    found = group(s, trace)
    assert found is not None
    # One token in four belongs to the first, three to the second.
    assert found.record.held_tokens == pytest.approx((100 * 1050 + 300 * 250) / 400)
    users = group(preset("one-read").scenario)
    assert users is not None
    assert users.record.context_tokens == 2000.0
    assert users.record.held_tokens == 101.0, "what is cached is shared"


def test_nothing_fits() -> None:
    s = BUSY.replace({"batching.max_model_len": 2, "traffic.classes.0.prompt_tokens": {"dist": "constant", "value": 9}})
    assert group(s) is None
    assert in_flight(s, 1.0, 0.02) is None


def test_a_size_that_is_asked_for_is_on_the_curves() -> None:
    found = group(BUSY, None, 37)
    assert found is not None
    assert 37 in found.sharing.sizes
