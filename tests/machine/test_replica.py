"""From a scenario to a replica: what serving gets, and what is said when it can't have one."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.machine import (
    accelerators_of,
    constants,
    deployment,
    hourly_price,
    largest_step,
    replica_evidence,
    replica_memory,
    replica_model,
    step_parts,
    step_terms,
)
from engine.machine.constants import shipped
from engine.machine.context import typical_context
from engine.scenario import Batching, Scenario, ScenarioError

Build = Callable[..., Scenario]

SMALL = {
    "model.name": "Llama-3.1-8B",
    "model.weight_dtype": "bf16",
    "model.kv_dtype": "bf16",
    "parallelism.tp": 1,
}


def test_the_default_scenario_has_a_replica(scenario: Build) -> None:
    replica = replica_model(scenario())
    assert replica.base.shape == (8193,)
    assert replica.accelerators == 4
    assert replica.context_limit == 131_072
    assert replica.kv_bytes_per_token == 2 * 80 * 8 * 128
    assert replica.weights_bytes == pytest.approx(72.7e9, rel=1e-3)
    assert 0.01 < replica.frontend_s < 0.1
    assert replica.kv_capacity_tokens == replica_memory(scenario()).kv_capacity_tokens
    assert replica.notes == ()


@pytest.mark.parametrize("changes", [{}, {"performance": {"kind": "linear", "weights_s": 0.01, "token_s": 1e-4}}])
def test_the_table_is_the_sum_of_the_named_parts(changes: dict[str, Any], scenario: Build) -> None:
    s = scenario(changes)
    replica, terms = replica_model(s), step_terms(s)
    for step in [(1, 1, 100.0, 0.0), (200, 3, 5000.0, 19_000.0), (8192, 40, 90_000.0, 3e7)]:
        parts = step_parts(terms, *step)
        assert set(parts) <= {"compute", "attention", "weights", "kv", "communication", "overhead"}
        assert sum(parts.values()) == pytest.approx(replica.step_s(*step), rel=1e-12)


def test_the_table_cannot_be_written_to(scenario: Build) -> None:
    with pytest.raises(ValueError, match="read-only"):
        replica_model(scenario()).base[0] = 1.0


def test_a_lone_request_decodes_at_a_plausible_pace(scenario: Build) -> None:
    # InferenceMAX (ai-dynamo/aiconfigurator@095f58a5, silicon_sample.csv): Llama-3.1-70B fp8, vLLM, 4 x H100, 0.9 x
    # 1,024 tokens in and out, 4 users: 11.78 ms a token.
    assert replica_model(scenario()).step_s(4, 4, 4 * 0.9 * 1536, 0.0) == pytest.approx(0.01178, rel=0.1)


LINEAR = {"kind": "linear", "overhead_s": 0.002, "weights_s": 0.010, "token_s": 5e-5, "kv_token_s": 2e-8}


def test_a_linear_profile_by_hand(scenario: Build) -> None:
    profile = {**LINEAR, "seq_s": 1e-5, "prefill_pair_s": 1e-9}
    replica = replica_model(scenario({"performance": profile}))
    assert replica.base[1] == pytest.approx(0.012, rel=1e-12)
    assert replica.base[200] == pytest.approx(0.012, rel=1e-12)
    assert replica.base[8192] == pytest.approx(0.002 + 8192 * 5e-5, rel=1e-12)
    assert (replica.seq_s, replica.kv_token_s, replica.prefill_pair_s) == (1e-5, 2e-8, 1e-9)
    assert replica.frontend_s == 0


def test_a_linear_profile_of_powers_of_two_is_exact(scenario: Build) -> None:
    profile = {"kind": "linear", "overhead_s": 2**-9, "weights_s": 2**-7, "token_s": 2**-14}
    replica = replica_model(scenario({"performance": profile}))
    tokens = np.arange(8193)
    assert np.array_equal(replica.base, 2**-9 + np.maximum(2**-7, tokens * 2**-14))


def test_a_linear_profile_has_no_limits_of_its_own(scenario: Build) -> None:
    too_large = {"performance": LINEAR, "model.name": "Llama-3.1-405B", "parallelism.tp": 1}
    replica = replica_model(scenario(too_large))
    assert (replica.kv_capacity_tokens, replica.context_limit, replica.weights_bytes) == (None, None, 0)
    assert replica.kv_bytes_per_token == 2 * 126 * 8 * 128  # for what travels between pools
    set_limits = {**too_large, "batching.kv_capacity_tokens": 1000, "batching.max_model_len": 10**7}
    limited = replica_model(scenario(set_limits))
    assert (limited.kv_capacity_tokens, limited.context_limit) == (1000, 10**7)


def test_limits_that_are_given_win(scenario: Build) -> None:
    replica = replica_model(scenario({"batching.kv_capacity_tokens": 41_408, "batching.max_model_len": 32_768}))
    assert (replica.kv_capacity_tokens, replica.context_limit) == (41_408, 32_768)


def test_more_kv_than_memory_holds_is_said(scenario: Build) -> None:
    replica = replica_model(scenario({"batching.kv_capacity_tokens": 10**9}))
    assert replica.kv_capacity_tokens == 10**9
    assert replica.notes[0].startswith("batching.kv_capacity_tokens is 1,000,000,000, but the memory left holds 1,")


def test_formats_that_a_device_lacks_are_said(scenario: Build) -> None:
    on_t4 = {**SMALL, "model.name": "Llama-3.2-1B", "hardware.accelerator": "T4"}
    assert replica_model(scenario(on_t4)).notes == (
        "T4 has no bf16: weights are taken as fp16, which has the same size and speed.",
    )
    (note,) = replica_model(scenario({**on_t4, "model.weight_dtype": "fp8"})).notes
    assert note == "T4 has no faster arithmetic for fp8: weights are stored at 8 bit, computed at 16."


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "29 of 34 layers of Gemma-3-4B see 1,024 tokens: a token's KV is reckoned for a request of 1,260 tokens"),
        (
            {"traffic.process": "trace", "traffic.trace": {"source": "day.csv"}},
            "29 of 34 layers of Gemma-3-4B see 1,024 tokens; a trace's lengths",
        ),
    ],
)
def test_what_a_window_was_taken_for_is_said(changes: dict[str, Any], said: str, scenario: Build) -> None:
    notes = replica_model(scenario({**SMALL, "model.name": "Gemma-3-4B", **changes})).notes
    assert [note[: len(said)] for note in notes] == [said]


def test_typical_context_is_the_mix_of_the_classes(scenario: Build) -> None:
    classes = [
        {
            "name": "a",
            "weight": 3.0,
            "prompt_tokens": {"dist": "constant", "value": 100},
            "output_tokens": {"dist": "uniform", "low": 10, "high": 30},
        },
        {
            "name": "b",
            "weight": 1.0,
            "prompt_tokens": {"dist": "empirical", "values": [100, 400], "weights": [1.0, 2.0]},
            "output_tokens": {"dist": "geometric", "mean": 500.0, "max": 200},
        },
    ]
    found = typical_context(scenario({"traffic.classes": classes}))
    assert found == pytest.approx(0.75 * (100 + 20 / 2) + 0.25 * (300 + 200 / 2), rel=1e-12)


def test_overrides_and_scale_reach_the_table(scenario: Build) -> None:
    plain = replica_model(scenario())
    slow = replica_model(scenario({"performance.scale": {"tpot": 2.0, "prefill": 2.0}}))
    assert np.allclose(slow.base, 2 * plain.base, rtol=1e-12)
    host = replica_model(scenario({"performance.overrides": {"ov_s": 0.5, "frontend_s": 0.25}}))
    first = constants(scenario(), deployment(scenario(), 1)).ov_s
    assert host.base[1] - plain.base[1] == pytest.approx(0.5 - first, rel=1e-9)
    assert host.frontend_s == 0.25


def test_a_custom_model_and_accelerator(scenario: Build) -> None:
    shape = {"layers": 32, "hidden": 4096, "intermediate": 14336, "heads": 32, "kv_heads": 8, "vocab": 128256}
    chip = {"memory_gb": 80, "hbm_bandwidth_gbps": 3350, "dense_fp16_bf16_tflops": 989}
    s = scenario({**SMALL, "model.name": "mine", "model.custom": shape, "hardware.custom": chip})
    assert replica_model(s).weights_bytes == 2 * 8_030_261_248
    assert replica_model(s).context_limit is None
    assert deployment(s, 1).model.name == "mine"
    evidence = replica_evidence(s)
    assert evidence is not None
    # A custom accelerator that keeps a known name keeps that family's constants.
    assert (evidence.family, evidence.status) == ("hopper", "extrapolated")
    other = scenario({**SMALL, "hardware.accelerator": "X1", "hardware.custom": chip})
    cautious = shipped()["families"]["other"]["eta_m"]["16"]
    reads = shipped()["engines"]["vllm"]["dense"]["reads"]
    assert constants(other, deployment(other, 1)).eta_m == pytest.approx(cautious * reads)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model.name": "Llama 70B"}, 'model.name: "Llama 70B" is no model of the catalogue; nearest: Llama-2-70B'),
        (
            {"hardware.accelerator": "H100"},
            'hardware.accelerator: "H100" is no accelerator of the catalogue; nearest: ',
        ),
        ({"model.custom": {"hidden": 64}}, "model.custom.layers: is missing; give a whole number of at least 1"),
        ({"hardware.custom": {"memory_gb": -1}}, "hardware.custom.memory_gb: -1 is below 0.001; give"),
        ({"parallelism.tp": 3}, "parallelism.tp: 3 doesn't divide the 64 attention heads; Llama-3.1-70B on H100"),
        (
            {"hardware.accelerator": "MI350X"},
            'hardware.accelerator: "MI350X" has no 16-bit arithmetic rate in the catalogue',
        ),
        ({"batching.max_model_len": 200_000}, "batching.max_model_len: 200000 is above the 131072 tokens of context"),
        (
            {"performance.overrides": {"eta": 1.0}},
            "performance.overrides.eta: 1.0 is for a constant that doesn't exist",
        ),
        ({"parallelism.tp": 1, "model.weight_dtype": "bf16"}, 'model.name: "Llama-3.1-70B" at 16 bit needs 141 GB'),
    ],
)
def test_what_is_wrong_is_said_with_its_field(changes: dict[str, Any], said: str, scenario: Build) -> None:
    with pytest.raises(ScenarioError) as error:
        replica_model(scenario(changes))
    assert str(error.value)[: len(said)] == said


def test_several_problems_are_said_at_once(scenario: Build) -> None:
    with pytest.raises(ScenarioError) as error:
        replica_model(scenario({"parallelism.tp": 3, "batching.max_model_len": 200_000}))
    assert [problem.field for problem in error.value.problems] == ["parallelism.tp", "batching.max_model_len"]


@pytest.mark.parametrize(
    ("policy", "longest", "tokens"),
    [
        ("chunked", 100_000, 2048),
        ("prefill_first", 1000, 2048),
        ("prefill_first", 100_000, 100_000),
        ("disaggregated", 5000, 5000),
        ("static", 1000, 2048),
        ("static", 64_000, 64_000),
    ],
)
def test_the_largest_step_of_each_policy(policy: Any, longest: int, tokens: int) -> None:
    batching = Batching(policy=policy, max_num_seqs=64, max_num_batched_tokens=2048)
    assert largest_step(batching, longest) == tokens


def test_the_price_is_the_users_else_the_median_else_unknown(scenario: Build) -> None:
    assert hourly_price(scenario({"hardware.price_per_gpu_hour": 2.5})) == (2.5, "your price")
    price, why = hourly_price(scenario())
    assert price == 3.99
    assert "9 on-demand prices" in why
    unknown, said = hourly_price(scenario({"hardware.accelerator": "MI300X"}))
    assert unknown is None
    assert "hardware.price_per_gpu_hour" in said


def test_accelerators_of_a_replica(scenario: Build) -> None:
    assert accelerators_of(scenario({"parallelism.tp": 8})) == 8


def test_a_profile_of_ones_own_needs_no_evidence(scenario: Build) -> None:
    assert replica_evidence(scenario({"performance": LINEAR})) is None
    assert math.isclose(replica_model(scenario({"performance": LINEAR})).base[1], 0.012)
