"""Two recorded vLLM runs, predicted from model and hardware alone: no figure of either went into the constants.

Engine settings are those of the recording; memory, KV capacity and step times are the model's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.machine import replica_model, scale_from_measurement
from engine.scenario import Scenario
from tests.vllm_runs.recorded import RUNS, Recorded, read
from tests.vllm_runs.replay import Replay, correlation, replay, scenario_of, stored_profile

pytestmark = pytest.mark.data

MAKESPAN_WITHIN, TPOT_WITHIN, WITH_OWN_POINT_WITHIN = 0.15, 0.20, 0.05
MACHINES: dict[str, dict[str, Any]] = {
    "RTX4090_Llama-3.1-8B": {
        "model.name": "Llama-3.1-8B",
        "hardware.accelerator": "RTX 4090",
        "parallelism.tp": 1,
        "batching.max_model_len": 32_768,
    },
    "RTXPRO6000_Qwen3-32B": {
        "model.name": "Qwen3-32B",
        "hardware.accelerator": "RTX PRO 6000 Blackwell",
        "parallelism.tp": 2,
    },
}


def settings(name: str, scale: dict[str, float] | None = None) -> dict[str, Any]:
    """What is known of a run before it: model, hardware, engine flags (16 bit, 0.9 of the memory)."""
    return {
        "performance": {"kind": "analytic", "engine": "vllm"} | ({"scale": scale} if scale else {}),
        "model.weight_dtype": "bf16",
        "model.kv_dtype": "bf16",
        "batching.gpu_memory_utilization": 0.9,
        "batching.kv_capacity_tokens": None,
        **MACHINES[name],
    }


def tpot_p50(run: Recorded | Replay, output_tokens: np.ndarray) -> float:
    return float(np.median((run.finish_s - run.first_token_s) / (output_tokens - 1)))


def makespan_error(recorded: Recorded, ours: Replay) -> float:
    return float(ours.finish_s.max() / recorded.makespan_s - 1)


@pytest.fixture(scope="module")
def predictions(data_dir: Path) -> dict[str, tuple[Recorded, Replay, Scenario]]:
    found = {}
    for name in RUNS:
        recorded, profile = read(data_dir, name), stored_profile(name)
        found[name] = (
            recorded,
            replay(recorded, profile, settings(name)),
            scenario_of(recorded, profile, settings(name)),
        )
    return found


@pytest.mark.parametrize("name", RUNS)
def test_makespan_and_tpot(predictions: dict[str, tuple[Recorded, Replay, Scenario]], name: str) -> None:
    recorded, ours, _ = predictions[name]
    assert ours.completed == recorded.arrival_s.size
    tpot = tpot_p50(ours, recorded.output_tokens) / tpot_p50(recorded, recorded.output_tokens) - 1
    print(f"{name}: makespan {makespan_error(recorded, ours):+.1%}, TPOT p50 {tpot:+.1%}")
    assert abs(makespan_error(recorded, ours)) <= MAKESPAN_WITHIN
    assert abs(tpot) <= TPOT_WITHIN


def test_the_memory_of_the_4090_is_known_to_the_percent(
    predictions: dict[str, tuple[Recorded, Replay, Scenario]],
) -> None:
    recorded, _, s = predictions["RTX4090_Llama-3.1-8B"]
    assert replica_model(s).kv_capacity_tokens == pytest.approx(recorded.kv_capacity_tokens, rel=0.01)


def test_running_falls_and_recovers_where_kv_is_short(
    predictions: dict[str, tuple[Recorded, Replay, Scenario]],
) -> None:
    recorded, ours, _ = predictions["RTX4090_Llama-3.1-8B"]
    for run, end in ((recorded.running, recorded.makespan_s), (ours.running, float(ours.finish_s.max()))):
        time = recorded.tick_s
        early = run[time < end / 3].max()
        middle = run[(time > end / 5) & (time < 0.7 * end)]
        fell = float(middle.min())
        after = run[(time > time[np.flatnonzero(run == fell)[0]]) & (time < 0.85 * end)]
        assert 36 <= early <= 50
        assert fell <= 30
        assert after.max() >= fell + 5
    assert ours.preemptions > 0


@pytest.mark.parametrize("name", RUNS)
def test_one_measured_point_brings_the_makespan_near(
    predictions: dict[str, tuple[Recorded, Replay, Scenario]], name: str
) -> None:
    recorded, first, s = predictions[name]
    prompt, output = float(recorded.prompt_tokens.mean()), float(recorded.output_tokens.mean())
    measured, simulated = (tpot_p50(run, recorded.output_tokens) for run in (recorded, first))
    busy = float(recorded.running[recorded.waiting > 0].mean())
    scale = scale_from_measurement(s, "tpot", measured, busy, prompt, output, simulated)
    ours = replay(recorded, stored_profile(name), settings(name, scale.model_dump()))
    print(f"{name}: corrected by {scale.tpot}, makespan {makespan_error(recorded, ours):+.1%}")
    assert abs(makespan_error(recorded, ours)) <= WITH_OWN_POINT_WITHIN


def test_running_and_waiting_on_the_second_server(
    predictions: dict[str, tuple[Recorded, Replay, Scenario]],
) -> None:
    recorded, ours, _ = predictions["RTXPRO6000_Qwen3-32B"]
    assert correlation(ours.running, recorded.running) > 0.8
    assert correlation(ours.waiting, recorded.waiting) > 0.9
