"""What is said of a deployment's accuracy: how much was measured, and the band found by cross-validation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalog import accelerator, accelerators, model
from engine.machine import replica_evidence
from engine.machine.constants import engines
from engine.machine.evidence import evidence, held_out_table
from engine.scenario import Scenario

Build = Callable[..., Scenario]


def status(device: str, name: str, engine: str) -> str:
    return evidence(accelerator(device), model(name), engine).status


def test_three_levels() -> None:
    assert status("H100-SXM-80GB", "Llama-3.1-70B", "vllm") == "calibrated"
    assert status("B200-SXM-180GB", "DeepSeek-R1", "sglang") == "calibrated"
    assert status("H200-SXM-141GB", "Llama-3.1-70B", "vllm") == "extrapolated", "its family is known, it isn't"
    assert status("MI300X", "Llama-3.1-70B", "vllm") == "extrapolated", "with another generation of software only"
    assert status("Trainium2", "Llama-3.1-70B", "vllm") == "not calibrated"


def test_less_known_is_never_shown_as_more_accurate() -> None:
    for kind in ("Llama-3.1-70B", "DeepSeek-R1"):
        known = evidence(accelerator("B200-SXM-180GB"), model(kind), "tensorrt_llm")
        unknown = evidence(accelerator("Trainium2"), model(kind), "tensorrt_llm")
        assert known.p90_ape < unknown.p90_ape


def test_every_accelerator_has_a_band() -> None:
    for device in accelerators().values():
        for engine in engines():
            for name in ("Llama-3.1-8B", "Mixtral-8x7B"):
                found = evidence(device, model(name), engine)
                assert 0 < found.median_ape <= found.p90_ape
                low, high = found.band
                assert 0.5 <= low < 1 < high <= 10
                assert found.deployments >= 1


def test_a_scenario_has_evidence_and_a_profile_of_ones_own_has_none(scenario: Build) -> None:
    found = replica_evidence(scenario({"hardware.accelerator": "H100-SXM-80GB"}))
    assert found is not None
    assert (found.family, found.engine, found.kind, found.status) == ("hopper", "vllm", "dense", "calibrated")
    chip = {"memory_gb": 80, "hbm_bandwidth_gbps": 3350, "dense_fp16_bf16_tflops": 989}
    custom = replica_evidence(scenario({"hardware.custom": chip}))
    assert custom is not None
    assert custom.status == "extrapolated"
    assert replica_evidence(scenario({"performance": {"kind": "linear", "overhead_s": 0.01}})) is None


@pytest.mark.parametrize("row", held_out_table(), ids=lambda row: row["class"])
def test_held_out_blocks_are_predicted_as_well_as_must_be(row: dict[str, object]) -> None:
    if "must" in row:
        assert [row["median_ape"], row["p90_ape"]] <= row["must"]
        assert all(found <= most for found, most in zip((row["median_ape"], row["p90_ape"]), row["must"], strict=True))
    limit = 10 if "moe" in str(row["class"]).lower() else 5
    assert abs(row["signed_median"]) <= limit
