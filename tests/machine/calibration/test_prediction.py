"""The closed forms: what they add up to, by hand, and against a queue that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import Scenario
from engine.machine import replica_model
from engine.machine.calibration.prediction import Plan, plan_with, predict, seconds_of
from engine.machine.calibration.rows import Metric, Point
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.steptime import Term
from engine.study.saturated import completion_rate

Deploy = Callable[..., Deployment]


def point(d: Deployment, metric: Metric, load: Any, prompt: float, output: float, seqs: float, waves: bool) -> Point:
    return Point(0, "", metric, load, d.model, d.accelerator, "vllm", "vLLM", d, prompt, output, seqs, 1.0, waves)


def seconds(
    plan: Plan, step_s: float = 1.0, token_s: float = 0.0, context_s: float = 0.0, pair_s: float = 0.0
) -> float:
    """Of a plan, when a step costs a fixed time and so much a token, context token and pair."""
    base = step_s + token_s * plan.steps[:, 1]
    return seconds_of(plan, (Term("compute", base, kv_token_s=context_s, pair_s=pair_s),), 0.0)


def test_a_lone_request_writes_at_its_mean_context(deploy: Deploy) -> None:
    plan = plan_with(point(deploy("Llama-3.1-8B", "L4"), "tpot", "closed_loop", 100, 50, 1, False), 1)
    assert seconds(plan) == 1.0
    assert seconds(plan, step_s=0.0, token_s=1.0) == 1.0
    assert seconds(plan, step_s=0.0, context_s=1.0) == 125.0


def test_others_prompts_are_read_beside_ones_writing(deploy: Deploy) -> None:
    d = deploy("Llama-3.1-8B", "L4")
    plan = plan_with(point(d, "tpot", "closed_loop", 100, 50, 11, False), 11)
    # Ten others bring 10 * 100 / 50 = 20 prompt tokens a step, whatever the steps they come in.
    assert seconds(plan) == pytest.approx(1.0)
    assert seconds(plan, step_s=0.0, token_s=1.0) == pytest.approx(11 + 20)
    assert seconds(plan, step_s=0.0, pair_s=1.0) == pytest.approx(20 * 101 / 2)
    in_step = plan_with(point(d, "tpot", "closed_loop", 100, 50, 11, True), 11)
    assert seconds(in_step, step_s=0.0, token_s=1.0) == pytest.approx(11 + 10)


def test_a_static_batch_reads_all_prompts_then_writes(deploy: Deploy) -> None:
    d = deploy("Llama-3.1-8B", "L4")  # 2,048 tokens a step
    plan = plan_with(point(d, "batch_latency", "static_batch", 1000, 11, 5, False), 5)
    assert seconds(plan) == 3 + 10, "5,000 prompt tokens in three steps, ten more words"
    assert seconds(plan, step_s=0.0, token_s=1.0) == 5000 + 10 * 5
    assert seconds(plan, step_s=0.0, pair_s=1.0) == 5 * 1000 * 1001 / 2
    halves = plan_with(point(d, "batch_latency", "static_batch", 1000, 11, 10, False), 5)
    assert seconds(halves) == 2 * (3 + 10), "ten requests of which five fit"


def test_a_prompt_longer_than_a_step_reads_what_it_has_read(deploy: Deploy) -> None:
    plan = plan_with(point(deploy("Llama-3.1-8B", "L4"), "ttft_low_load", "static_batch", 5000, 1, 1, False), 1)
    assert seconds(plan) == 3
    assert seconds(plan, step_s=0.0, token_s=1.0) == 5000
    assert seconds(plan, step_s=0.0, pair_s=1.0) == pytest.approx(5000 * 5001 / 2)


@pytest.mark.parametrize(
    ("name", "chip", "tp", "prompt", "output", "users"),
    [
        ("Llama-3.1-8B", "H100-SXM-80GB", 1, 1000, 200, 64),
        ("Llama-3.1-70B", "H100-SXM-80GB", 4, 500, 500, 128),
        ("Qwen3-30B-A3B", "A100-SXM4-80GB", 1, 2000, 250, 32),
    ],
)
def test_the_steady_state_is_that_of_the_event_engine(
    deploy: Deploy,
    constants_of: Callable[..., Constants],
    name: str,
    chip: str,
    tp: int,
    prompt: int,
    output: int,
    users: int,
) -> None:
    prompts = {"dist": "uniform", "low": int(prompt * 0.8), "high": int(prompt * 1.2)}
    answers = {"dist": "uniform", "low": int(output * 0.8), "high": int(output * 1.2)}
    s = Scenario.from_dict(
        {
            "traffic": {"classes": [{"prompt_tokens": prompts, "output_tokens": answers}]},
            "model": {"name": name, "weight_dtype": "bf16", "kv_dtype": "bf16"},
            "hardware": {"accelerator": chip},
            "parallelism": {"tp": tp},
            "batching": {"max_num_seqs": users, "max_num_batched_tokens": 8192},
        }
    )
    rate = completion_rate(s, replica_model(s), None)
    d = replace(deploy(name, chip, tp=tp), step_tokens=8192, context_tokens=prompt + output / 2)
    closed = predict(
        plan_with(point(d, "output_tok_s", "offline_max", prompt, output, users, False), users), d, constants_of(d)
    )
    assert rate is not None
    assert np.isclose(rate * output, closed, rtol=0.03)
