"""Experts spread over devices whole: over those that share attention, or over those that each have their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.catalog import weight_bytes
from engine.machine import accelerators_of, replica_memory, replica_model, step_parts, step_terms
from engine.machine.deployment import Deployment
from engine.machine.memory import weights_per_accelerator
from engine.scenario import Scenario, ScenarioError

Build = Callable[..., Scenario]
Deploy = Callable[..., Deployment]
DEEPSEEK: dict[str, Any] = {
    "model.name": "DeepSeek-V3",
    "model.weight_dtype": "fp8",
    "model.kv_dtype": "bf16",
    "hardware.accelerator": "H200-SXM-141GB",
}


def test_over_the_devices_of_tensor_parallel_nothing_but_the_name_changes(scenario: Build) -> None:
    """Measured points of DeepSeek-R1 show no loss against slices: see ``steptime``."""
    sliced, whole = (replica_model(scenario(DEEPSEEK | {"parallelism.tp": 8, "parallelism.ep": ep})) for ep in (1, 8))
    assert (sliced.base == whole.base).all()
    assert sliced.kv_capacity_tokens == whole.kv_capacity_tokens
    assert sliced.accelerators == whole.accelerators == 8
    assert any("Whole experts are spread over 8 devices, which share attention" in note for note in whole.notes)


def test_attention_of_their_own_divides_latent_kv_and_halves_the_exchanges(scenario: Build) -> None:
    shared, apart = (scenario(DEEPSEEK | {"parallelism.tp": tp, "parallelism.ep": ep}) for tp, ep in ((8, 1), (1, 8)))
    assert accelerators_of(apart) == replica_model(apart).accelerators == 8
    assert replica_memory(apart).kv_per_token == replica_memory(shared).kv_per_token / 8
    # 61 layers of attention at 8 bit: 61 x 187,105,280 weights, all but the eighth that each had before.
    more = replica_memory(apart).weights - replica_memory(shared).weights
    copied_before = 61 * 7168 * (512 + 64 + 1536)
    assert more == pytest.approx(7 / 8 * (61 * 187_105_280 - copied_before), rel=1e-9)
    one, other = (step_parts(step_terms(s), 64, 64, 64 * 2000.0, 0.0) for s in (shared, apart))
    assert other["communication"] == pytest.approx(one["communication"] / 2)
    assert other["kv"] < 0.6 * one["kv"]
    assert other["weights"] > one["weights"], "every device reads all of attention"


def test_of_experts_that_do_not_divide_evenly_the_fullest_device_counts(deploy: Deploy) -> None:
    d = deploy("Qwen3-30B-A3B", "H200-SXM-141GB", tp=3, ep=3, attention_dp=True)
    sizes = weight_bytes(d.model, "bf16")
    whole = sizes.attention + sizes.router + sizes.norms
    mine = sizes.experts * 43 / 128  # 43, 43 and 42
    assert weights_per_accelerator(d) == pytest.approx(whole + mine + (sizes.embedding + sizes.lm_head) / 3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model.name": "Llama-3.1-8B", "ep": 2, "tp": 2}, "parallelism.ep: 2 spreads experts, and Llama-3.1-8B has n"),
        ({"model.name": "Mixtral-8x7B", "ep": 16, "tp": 1}, "parallelism.ep: 16 is more than Mixtral-8x7B has experts"),
        (
            {"ep": 8, "tp": 2},
            "parallelism.ep: 8 is neither 1 nor parallelism.tp, 2: experts are",
        ),
        ({"ep": 16, "tp": 1}, "parallelism.ep: 16 is beyond the 8 H200-SXM-141GB that a fast link joins"),
        (
            {"ep": 4, "tp": 1, "pp": 2},
            "parallelism.ep: 4 with parallelism.tp 1 has every device attend to its own",
        ),
        (
            {"ep": 4, "tp": 1, "cp": 2},
            "parallelism.ep: 4 with parallelism.tp 1 has every device attend to its own",
        ),
    ],
)
def test_what_cannot_work_says_why(scenario: Build, changes: dict[str, Any], said: str) -> None:
    named = {key if "." in key else f"parallelism.{key}": value for key, value in changes.items()}
    with pytest.raises(ScenarioError) as error:
        replica_model(scenario(DEEPSEEK | named))
    assert str(error.value).startswith(said)
