"""The constants: complete, physical, and overridable by name."""

from collections.abc import Callable
from dataclasses import fields

import pytest

from engine.catalog import WEIGHT_BYTES, accelerator, accelerators, model
from engine.machine.constants import Constants, constants_for, engines, evidence, family_of, override
from engine.machine.deployment import Deployment

Deploy = Callable[..., Deployment]
ConstantsOf = Callable[..., Constants]


def test_every_accelerator_dtype_and_engine_has_physical_constants() -> None:
    for device in accelerators().values():
        for dtype in WEIGHT_BYTES:
            for engine in engines():
                for name in ("Llama-3.1-8B", "Mixtral-8x7B", "DeepSeek-V3"):
                    c = constants_for(model(name), device, dtype, engine, pcie=False)
                    for entry in fields(c):
                        value = getattr(c, entry.name)
                        assert 0 < value <= 1 if entry.metadata["share"] else value >= 0


def test_every_accelerator_of_the_catalogue_has_a_family() -> None:
    assert {name for name in accelerators() if family_of(accelerator(name)) == "other"} == {
        "Intel Arc Pro B60",
        "TPU v5e",
        "TPU v5p",
        "TPU v6e",
        "TPU v7",
        "Trainium2",
        "Inferentia2",
    }


def test_evidence_says_measured_alike_or_judgement() -> None:
    assert evidence(accelerator("H100-SXM-80GB"), "vllm").status == "measured"
    assert evidence(accelerator("H100-NVL-94GB"), "vllm").status == "alike"
    assert evidence(accelerator("MI300X"), "sglang").status == "judgement"
    assert evidence(accelerator("TPU v6e"), "vllm").status == "judgement"


def test_published_first_values(deploy: Deploy, constants_of: ConstantsOf) -> None:
    h100 = constants_of(deploy("Llama-3.1-70B", "H100-SXM-80GB", weight_dtype="fp8", tp=4))
    assert (h100.eta_c, h100.eta_c16, h100.eta_m, h100.eta_kv) == (0.60, 0.69, 0.74, 0.94)
    assert (h100.ov_s, h100.layer_s, h100.seq_s, h100.frontend_s, h100.moe_s) == (1.5e-3, 25e-6, 6.7e-6, 0.024, 0)
    assert h100.alpha_s == 4.7e-6
    l40s = constants_of(deploy("Llama-3.1-8B", "L40S", tp=2))
    assert (l40s.eta_c, l40s.eta_m, l40s.alpha_s) == (0.59, 0.89, 51e-6)
    deepseek = constants_of(deploy("DeepSeek-R1", "H200-SXM-141GB", weight_dtype="fp8", tp=8), "sglang")
    assert (deepseek.moe_s, deepseek.frontend_s) == (85e-6, 0.180)


def test_overrides_replace_by_name(deploy: Deploy, constants_of: ConstantsOf) -> None:
    first = constants_of(deploy("Llama-3.1-8B", "L4"))
    changed, problems = override(first, {"eta_m": 0.5, "ov_s": 0}, "performance.overrides")
    assert problems == []
    assert (changed.eta_m, changed.ov_s, changed.eta_c) == (0.5, 0.0, first.eta_c)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"eta_x": 0.5}, "performance.overrides.eta_x: 0.5 is for a constant that doesn't exist; constants: eta_c, "),
        ({"eta_m": 1.2}, "performance.overrides.eta_m: 1.2 is not a share of a peak; give a value above 0, at most 1"),
        ({"eta_m": 0}, "performance.overrides.eta_m: 0 is not a share of a peak"),
        ({"layer_s": -1.0}, "performance.overrides.layer_s: -1.0 is below 0; give 0 or more: seconds of host work"),
    ],
)
def test_what_is_wrong_with_an_override_is_said(
    values: dict[str, float], said: str, deploy: Deploy, constants_of: ConstantsOf
) -> None:
    first = constants_of(deploy("Llama-3.1-8B", "L4"))
    unchanged, problems = override(first, values, "performance.overrides")
    assert unchanged == first
    assert [str(problem)[: len(said)] for problem in problems] == [said]
