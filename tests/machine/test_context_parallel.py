"""Splitting a context over devices: prompts are read faster, decoding isn't, and what can't be split says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.catalog import accelerator, model
from engine.machine import replica_memory, replica_model, step_parts, step_terms
from engine.machine.parallel import context_problems
from engine.scenario import Scenario, ScenarioError

Build = Callable[..., Scenario]
PROMPT = 131_072
LONG: dict[str, Any] = {
    "model.name": "Llama-3.1-8B",
    "model.weight_dtype": "bf16",
    "model.kv_dtype": "bf16",
    "parallelism.tp": 1,
    "batching.max_num_batched_tokens": PROMPT,
}


def prefill_s(s: Scenario) -> float:
    """Seconds of the one step that reads a prompt of 128k tokens."""
    return replica_model(s).step_s(PROMPT, 1, 0.0, PROMPT * (PROMPT + 1) / 2)


def decode_s(s: Scenario, requests: int = 32, context: float = 4000.0) -> float:
    """Seconds of a step in which so many requests decode."""
    return replica_model(s).step_s(requests, requests, requests * context, 0.0)


@pytest.mark.parametrize("sp", ["none", "ulysses"])
def test_prefill_of_128k_tokens_falls_with_devices_and_decode_does_not(scenario: Build, sp: str) -> None:
    one = scenario(LONG)
    before = prefill_s(one)
    for devices in (2, 4, 8):
        split = scenario(LONG | {"parallelism.cp": devices, "parallelism.sp": sp})
        assert before / devices < prefill_s(split) < 1.25 * before / devices
        if sp == "none":
            assert decode_s(one) < decode_s(split) < 1.15 * decode_s(one)


def test_every_part_but_the_prompts_work_stays(scenario: Build) -> None:
    step = (PROMPT, 1, 0.0, PROMPT * (PROMPT + 1) / 2)
    one = step_parts(step_terms(scenario(LONG)), *step)
    four = step_parts(step_terms(scenario(LONG | {"parallelism.cp": 4})), *step)
    assert four["attention"] == pytest.approx(one["attention"] / 4)
    # Arithmetic and reading the weights overlap: the sum of both is what is divided, nearly.
    assert four["compute"] + four["weights"] == pytest.approx((one["compute"] + one["weights"]) / 4, rel=0.02)
    assert four["overhead"] == one["overhead"]
    assert (one["communication"], four["communication"] > 0) == (0.0, True)


def test_decoding_reads_all_weights_and_kv_on_every_device(scenario: Build) -> None:
    for requests, more in ((1, 5e-3), (32, 0.06), (128, 0.12), (256, 1e-9)):
        step = (requests, requests, requests * 4000.0, 0.0)
        one, four = (step_parts(step_terms(scenario(LONG | {"parallelism.cp": n})), *step) for n in (1, 4))
        assert four["kv"] == one["kv"]
        products = [part["compute"] + part["weights"] for part in (one, four)]
        assert products[0] * (1 - 1e-12) <= products[1] <= products[0] * (1 + more)


def test_the_ring_hides_behind_attention_in_long_chunks_only(scenario: Build) -> None:
    terms = {term.name: term for term in step_terms(scenario(LONG | {"parallelism.cp": 8}))}
    exchange = terms["communication"].base
    latency = exchange[0]
    assert exchange[512] > latency
    assert exchange[PROMPT] == latency  # 128k tokens attend for longer than their keys and values travel


def test_more_kv_fits_and_weights_are_copied(scenario: Build) -> None:
    one, two = (replica_memory(scenario(LONG | {"parallelism.cp": n})) for n in (1, 2))
    assert two.weights == one.weights
    assert two.kv_per_token == one.kv_per_token / 2
    assert two.kv_capacity_tokens > 2 * one.kv_capacity_tokens  # and each reads half of the chunk
    assert any("copied 2 times" in note for note in replica_model(scenario(LONG | {"parallelism.cp": 2})).notes)


def test_sharded_activations_leave_room_and_take_as_long(scenario: Build) -> None:
    plain = scenario({"model.name": "Llama-3.1-8B", "parallelism.tp": 4})
    sharded = plain.replace({"parallelism.sp": "megatron"})
    a, b = replica_model(plain), replica_model(sharded)
    assert (a.base == b.base).all()
    assert (a.seq_s, a.kv_token_s, a.prefill_pair_s) == (b.seq_s, b.kv_token_s, b.prefill_pair_s)
    assert b.kv_capacity_tokens is not None
    assert a.kv_capacity_tokens is not None
    assert b.kv_capacity_tokens > a.kv_capacity_tokens


@pytest.mark.parametrize(
    ("tp", "cp", "sp", "said"),
    [
        (1, 16, "none", "parallelism.cp: 16 with parallelism.tp 1 makes 16 devices, and a fast link joins 8 H100-SXM"),
        (4, 4, "none", "parallelism.cp: 4 with parallelism.tp 4 makes 16 devices, and a fast link joins 8 H100-SXM"),
        (4, 1, "ulysses", 'parallelism.sp: "ulysses" swaps shards of a sequence over parallelism.cp devices'),
        (1, 3, "ulysses", "parallelism.cp: 3 with parallelism.tp 1 doesn't divide the 32 attention heads"),
        (1, 1, "megatron", 'parallelism.sp: "megatron" shards activations over parallelism.tp devices: there is one'),
        (2, 4, "none", ""),
        (2, 4, "ulysses", ""),
        (2, 3, "none", ""),
    ],
)
def test_layouts_that_cannot_work_say_why(scenario: Build, tp: int, cp: int, sp: str, said: str) -> None:
    found = context_problems(model("Llama-3.1-8B"), accelerator("H100-SXM-80GB"), tp, cp, sp)
    assert [str(problem).startswith(said) for problem in found] == ([True] if said else [])
    layout = {"parallelism.tp": tp, "parallelism.cp": cp, "parallelism.sp": sp}
    whole = scenario(LONG | layout)
    if said:
        with pytest.raises(ScenarioError) as error:
            replica_model(whole)
        assert str(error.value).startswith(said)
    else:
        assert replica_model(whole).accelerators == tp * cp
