"""What is said when a model doesn't fit, and that what is suggested is true."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.catalog import model, models
from engine.machine import replica_model
from engine.machine.advice import does_not_fit
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.memory import memory
from engine.scenario import Scenario, ScenarioError

Deploy = Callable[..., Deployment]
ConstantsOf = Callable[..., Constants]
Build = Callable[..., Scenario]


def said(d: Deployment, c: Constants) -> str:
    problem = does_not_fit(d, c)
    return f"{problem.reason}; {problem.remedy}"


def test_a_70b_at_16_bit_on_two_48_gb_chips(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-70B", "RTX A6000", tp=2, step_tokens=8192)
    assert said(d, constants_of(d)) == (
        "at 16 bit needs 141 GB for its weights; two 48 GB chips (RTX A6000) can give it 95 GB; "
        "try 4 chips (parallelism.tp), 8 bit (model.weight_dtype fp8) or "
        "80 GB chips (hardware.accelerator A100-PCIe-80GB)"
    )


@pytest.mark.parametrize("chip", ["L4", "A100-SXM4-40GB", "L40S"])
def test_a_70b_is_ruled_out_on_one_small_chip_with_the_gigabytes(
    chip: str, deploy: Deploy, constants_of: ConstantsOf
) -> None:
    d = deploy("Llama-3.1-70B", chip, weight_dtype="fp8")
    assert not memory(d, constants_of(d)).fits
    assert said(d, constants_of(d)).startswith("at 8 bit needs 73 GB for its weights; one ")


@pytest.mark.parametrize("chip", ["L4", "A100-SXM4-40GB", "L40S", "A100-SXM4-80GB"])
def test_a_13b_at_8_bit_fits_from_24_gb(chip: str, deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-2-13B", chip, weight_dtype="fp8", kv_dtype="fp8")
    assert memory(d, constants_of(d)).kv_capacity_tokens > 10_000


def test_when_weights_fit_but_nothing_else_does(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-70B", "H100-SXM-80GB", weight_dtype="fp8", gpu_memory_utilization=0.86)
    assert not memory(d, constants_of(d)).fits
    assert said(d, constants_of(d)).startswith(
        "at 8 bit needs 72.7 GB for its weights and 2.4 GB on each chip for activations and runtime; "
        "one 80 GB chip (H100-SXM-80GB) can give it 73.9 GB; try 2 chips"
    )


def test_too_many_seats_can_be_the_reason(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-8B", "RTX 4090", max_num_seqs=2048, weight_dtype="bf16")
    assert "fewer seats (batching.max_num_seqs 256)" in said(d, constants_of(d))


def test_too_large_steps_can_be_the_reason(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-70B", "H100-SXM-80GB", tp=4, weight_dtype="fp8", step_tokens=1_048_576)
    assert "smaller steps (batching.max_num_batched_tokens 8192)" in said(d, constants_of(d))
    group = deploy("Llama-3.1-70B", "H100-SXM-80GB", tp=4, weight_dtype="fp8", step_tokens=1_048_576, budgeted=False)
    assert "smaller steps" not in said(group, constants_of(group))


def test_when_one_change_is_not_enough_a_whole_layout_is_named(scenario: Build) -> None:
    start = {"model.name": "DeepSeek-V3", "parallelism.tp": 1, "hardware.accelerator": "L4"}
    with pytest.raises(ScenarioError) as error:
        replica_model(scenario(start))
    remedy = error.value.problems[0].remedy
    found = re.fullmatch(
        r"try (\d+) chips of \d+ GB at 8 bit "
        r"\(parallelism\.tp (\d+), hardware\.accelerator (.+), model\.weight_dtype (\w+)\)",
        remedy,
    )
    assert found is not None, remedy
    layout = {"parallelism.tp": int(found[2]), "hardware.accelerator": found[3], "model.weight_dtype": found[4]}
    assert replica_model(scenario({**start, **layout})).kv_capacity_tokens > 2048


def test_nothing_holds_a_model_beyond_the_catalogue(deploy: Deploy, constants_of: ConstantsOf) -> None:
    giant = replace(model("Llama-3.1-405B"), layers=12_600)
    d = deploy("Llama-3.1-405B", "H100-SXM-80GB", model=giant, tp=8)
    assert said(d, constants_of(d)).endswith("nothing in the catalogue holds it: choose a smaller model")


SUGGESTION = re.compile(
    r"\((parallelism\.tp|model\.weight_dtype|hardware\.accelerator|batching\.max_num_seqs) ?([^)]*)\)"
)


def test_every_suggestion_is_true(scenario: Build) -> None:
    """Each change that is suggested, made alone, gives a replica with room for a conversation."""
    checked = 0
    for name in list(models())[::4]:
        for chip in ("L4", "RTX A6000", "A100-SXM4-40GB", "H100-SXM-80GB", "MI300X"):
            changes: dict[str, Any] = {
                "model.name": name,
                "model.weight_dtype": "bf16",
                "parallelism.tp": 1,
                "hardware.accelerator": chip,
            }
            try:
                replica_model(scenario(changes))
            except ScenarioError as error:
                (problem,) = error.problems
                assert problem.remedy.startswith("try "), problem.remedy
                if " at " in problem.remedy:  # a whole layout
                    continue
                counts = re.findall(r"(\d+) chips \(parallelism", problem.remedy)
                for path, value in SUGGESTION.findall(problem.remedy):
                    number = path in ("parallelism.tp", "batching.max_num_seqs")
                    setting: Any = int(value or counts[0]) if number else value
                    replica = replica_model(scenario({**changes, path: setting}))
                    assert replica.kv_capacity_tokens is not None
                    assert replica.kv_capacity_tokens >= 2048
                    checked += 1
    assert checked > 20


@pytest.mark.parametrize(
    ("name", "chip", "split", "said"),
    [
        ("Mixtral-8x22B", "A100-SXM4-40GB", {"tp": 1, "ep": 2}, "try 8 chips (parallelism.ep) or "),
        ("Mixtral-8x22B", "A100-SXM4-40GB", {"tp": 2, "ep": 2}, "try 4 chips (parallelism.tp and parallelism.ep) or "),
        ("Llama-3.1-70B", "A100-SXM4-40GB", {"tp": 1, "sp": "operators"}, "try 4 chips (parallelism.tp 2), 4 bit"),
        ("DeepSeek-V3", "L4", {"tp": 1, "ep": 2}, "8 bit (parallelism.ep 1, parallelism.tp "),
        ("DeepSeek-V3", "L4", {"tp": 2, "sp": "megatron"}, "8 bit (parallelism.sp none, parallelism.tp "),
    ],
)
def test_other_splits_are_widened_or_undone(
    name: str, chip: str, split: dict[str, Any], said: str, scenario: Build
) -> None:
    start = {"model.name": name, "model.weight_dtype": "fp8", "hardware.accelerator": chip}
    start |= {f"parallelism.{key}": value for key, value in split.items()}
    with pytest.raises(ScenarioError) as error:
        replica_model(scenario(start))
    remedy = error.value.problems[0].remedy
    assert said in remedy
    found = re.search(r"(\d+) chips[^(]*\(([^)]*)\)", remedy)
    assert found is not None
    changes: dict[str, Any] = {}
    for path, value in re.findall(r"([a-z]+\.[a-z_]+) ?([^,]*)", found[2].replace(" and ", ", ")):
        changes[path] = (int(value) if value.isdigit() else value) if value else int(found[1])
    replica = replica_model(scenario({**start, **changes}))
    assert replica.kv_capacity_tokens is not None
    assert replica.kv_capacity_tokens >= 2048
    if "at 8 bit" not in remedy:
        assert replica.accelerators == int(found[1])
