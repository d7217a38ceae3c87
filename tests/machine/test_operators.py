"""Operators divided between devices: some do attention, as many the feed-forward parts; by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.catalog import weight_bytes
from engine.machine import constants, deployment, replica_memory, replica_model, step_terms
from engine.scenario import Scenario, ScenarioError

Build = Callable[..., Scenario]
SMALL: dict[str, Any] = {
    "model.name": "Llama-3.1-8B",
    "model.weight_dtype": "bf16",
    "hardware.accelerator": "H100-SXM-80GB",
    "parallelism.tp": 1,
}
DIVIDED = SMALL | {"parallelism.sp": "operators"}


def test_the_whole_input_passes_twice_in_every_layer(scenario: Build) -> None:
    s = scenario(DIVIDED)
    c = constants(s, deployment(s, 2048))
    whole, divided = ({term.name: term for term in step_terms(one)} for one in (scenario(SMALL), s))
    for tokens in (1, 64, 2048):
        hop_s = c.alpha_s + tokens * 4096 * 2 / (450e9 * c.eta_link)
        assert divided["communication"].base[tokens] == pytest.approx(2 * 32 * hop_s, rel=1e-12)
    for name in ("compute", "attention", "weights", "kv"):
        assert (divided[name].base == whole[name].base).all(), "one group waits while the other works"
    assert divided["overhead"].base[1] - whole["overhead"].base[1] == pytest.approx(c.ov_s)


def test_who_attends_holds_no_feed_forward_weights(scenario: Build) -> None:
    s, whole = scenario(DIVIDED), scenario(SMALL)
    sizes = weight_bytes(deployment(s, 2048).model, "bf16")
    assert replica_memory(s).weights == pytest.approx(sizes.total - sizes.dense_mlp)
    assert replica_memory(s).kv_per_token == replica_memory(whole).kv_per_token
    model, before = replica_model(s), replica_model(whole)
    assert model.accelerators == 2
    assert model.kv_capacity_tokens is not None
    assert before.kv_capacity_tokens is not None
    assert model.kv_capacity_tokens > before.kv_capacity_tokens
    assert any(note.startswith("One device does attention, as many the feed-forward parts") for note in model.notes)


def test_feed_forward_parts_that_are_too_large_say_so(scenario: Build) -> None:
    with pytest.raises(ScenarioError) as error:  # 80 x 3 x 8,192 x 28,672 weights of 2 bytes: 112.7 GB
        replica_model(scenario(DIVIDED | {"model.name": "Llama-3.1-70B"}))
    assert "112.7 GB of them on each chip of one of its two groups; two 80 GB chips" in str(error.value)


@pytest.mark.parametrize("other", ["pp", "cp"])
def test_not_with_other_splits(scenario: Build, other: str) -> None:
    with pytest.raises(ScenarioError, match=f"parallelism.{other}"):
        replica_model(scenario(DIVIDED | {f"parallelism.{other}": 2}))
