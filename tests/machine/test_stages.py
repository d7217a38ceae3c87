"""Pipelines on paper: layers by stage, memory, hops, the length of a pass; by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalog import accelerator, model, weight_bytes
from engine.machine import replica_memory, replica_model, stages, step_terms
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.memory import memory, weights_per_accelerator
from engine.machine.stages import hops
from engine.scenario import Scenario, ScenarioError

Deploy = Callable[..., Deployment]
ConstantsOf = Callable[..., Constants]
OF = Callable[..., Scenario]
LARGE = {"model.name": "Llama-3.1-405B", "hardware.accelerator": "H100-SXM-80GB", "parallelism.tp": 8}


@pytest.mark.parametrize(
    ("layers", "pp", "sizes"),
    [(80, 4, [20] * 4), (80, 3, [27, 27, 26]), (61, 4, [15, 15, 16, 15]), (10, 4, [2, 3, 3, 2]), (3, 3, [1, 1, 1])],
)
def test_layers_by_stage(layers: int, pp: int, sizes: list[int], deploy: Deploy) -> None:
    """As vLLM deals them out: what is over goes to the last stages but one, from behind."""
    named = {80: "Llama-3.1-70B", 61: "DeepSeek-V3"}.get(layers)
    one = model(named) if named else model("Llama-3.1-8B").__class__(**{**_shape("Llama-3.1-8B"), "layers": layers})
    assert [stage.layers for stage in stages(one, pp)] == sizes
    assert [stage.first for stage in stages(one, pp)] == [sum(sizes[:k]) for k in range(pp)]


def _shape(name: str) -> dict[str, object]:
    one = model(name)
    return {key: getattr(one, key) for key in one.__slots__}


@pytest.mark.parametrize("name", ["Llama-3.1-70B", "DeepSeek-V3", "Llama-3.2-3B", "Qwen3-30B-A3B"])
@pytest.mark.parametrize("pp", [2, 3, 7])
def test_the_stages_together_are_the_model(name: str, pp: int) -> None:
    """With tied embeddings the last stage has a copy of them."""
    one = model(name)
    sizes = weight_bytes(one, "bf16")
    copy = sizes.embedding if one.tied_embeddings else 0.0
    held = sum(stage.of(one, sizes).total for stage in stages(one, pp))
    assert held == pytest.approx(sizes.total + copy, rel=1e-12)


def test_weights_of_a_device_are_its_share_of_the_layers(deploy: Deploy) -> None:
    whole, split = (weights_per_accelerator(deploy("Llama-3.1-70B", "H100-SXM-80GB", pp=pp)) for pp in (1, 4))
    ends = weight_bytes(model("Llama-3.1-70B"), "bf16").embedding
    assert split == pytest.approx((whole - 2 * ends) / 4 + ends, rel=1e-3)


def test_every_stage_holds_the_kv_of_its_own_layers(deploy: Deploy, constants_of: ConstantsOf) -> None:
    """80 layers in 4 stages: a token's KV on a device is a quarter; in 3, the fullest has 27 of them."""
    for pp, layers in ((1, 80), (4, 20)):
        d = deploy("Llama-3.1-70B", "H200-SXM-141GB", pp=pp, tp=2)
        assert memory(d, constants_of(d)).kv_per_token == 2 * 8 * 128 * 2 * layers / 2


def test_the_kv_pool_is_that_of_all_stages(scenario: OF) -> None:
    """tp 4 and pp 2 hold about what tp 8 holds: the same devices, the same weights."""
    wide = replica_model(scenario({"parallelism.tp": 8}))
    deep = replica_model(scenario({"parallelism.tp": 4, "parallelism.pp": 2}))
    assert deep.kv_capacity_tokens == pytest.approx(wide.kv_capacity_tokens, rel=0.02)
    assert (deep.accelerators, deep.stages, wide.stages) == (8, 2, 1)


def test_two_hosts_hold_what_one_does_not(scenario: OF) -> None:
    with pytest.raises(ScenarioError, match="at 16 bit needs"):
        replica_model(scenario({**LARGE, "model.weight_dtype": "bf16"}))
    held = replica_memory(scenario({**LARGE, "model.weight_dtype": "bf16", "parallelism.pp": 2}))
    assert held.fits


@pytest.mark.parametrize("pp", [2, 4])
def test_a_pass_takes_one_groups_work_and_the_hops(pp: int, deploy: Deploy, constants_of: ConstantsOf) -> None:
    """The layers' work, term by term, is that of one group with all layers; only passing on and the host differ."""
    one = {term.name: term for term in step_terms(Scenario.from_dict({"parallelism": {"tp": 1}}))}
    many = {term.name: term for term in step_terms(Scenario.from_dict({"parallelism": {"tp": 1, "pp": pp}}))}
    for name in ("compute", "attention", "weights", "kv"):
        assert many[name].seconds(512, 9, 9000, 1e5) == one[name].seconds(512, 9, 9000, 1e5)
    d = deploy("Llama-3.1-70B", "H100-SXM-80GB", weight_dtype="fp8", pp=pp)
    c = constants_of(d)
    each = c.alpha_s + 512 * 8192 * 2 / (450e9 * c.eta_link)
    assert many["communication"].seconds(512, 9, 9000, 1e5) == pytest.approx((pp - 1) * each, rel=1e-9)
    more = many["overhead"].seconds(1, 1, 0, 0) - one["overhead"].seconds(1, 1, 0, 0)
    assert more == pytest.approx((pp - 1) * c.ov_s, rel=1e-9)


def test_hops_between_hosts_go_over_the_network() -> None:
    """Eight H100 share NVLink: of four stages of four, two are on each host, so one hop of three is between hosts."""
    inside, across = hops(accelerator("H100-SXM-80GB"), 4, 4)
    assert (inside.count, inside.bytes_per_s, across.count, across.bytes_per_s) == (2, 450e9, 1, 50e9)
    assert [(hop.count, hop.bytes_per_s) for hop in hops(accelerator("H100-SXM-80GB"), 8, 2)] == [(1, 50e9)]
    assert hops(accelerator("H100-SXM-80GB"), 8, 1) == ()


@pytest.mark.parametrize("performance", [{"kind": "analytic"}, {"kind": "linear", "overhead_s": 0.01}])
def test_fewer_layers_than_stages_are_refused(performance: dict[str, object]) -> None:
    s = Scenario.from_dict({"parallelism": {"pp": 81}, "performance": performance})
    with pytest.raises(ScenarioError) as error:
        replica_model(s)
    said = "parallelism.pp: 81 is more stages than Llama-3.1-70B has layers, 80; give at most 80"
    assert [str(problem) for problem in error.value.problems] == [said]


def test_the_notes_say_what_is_not_known(scenario: OF) -> None:
    notes = replica_model(scenario({"parallelism.pp": 3})).notes
    assert any("80 layers lie in 3 stages of 26 to 27, which count as equally slow" in note for note in notes)
    assert not any("stages" in note for note in replica_model(scenario()).notes)
