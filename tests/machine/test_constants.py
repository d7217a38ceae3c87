"""The constants: complete, physical, and overridable by name."""

import copy
from collections.abc import Callable
from dataclasses import fields

import pytest

from engine.catalog import WEIGHT_BYTES, accelerator, accelerators, model
from engine.machine.constants import Constants, constants_for, engines, family_of, override, shipped
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
    assert {name for name in accelerators() if family_of(accelerator(name)) == "other"} == {"Trainium2", "Inferentia2"}


def test_each_constant_comes_from_its_place_in_the_table(deploy: Deploy, constants_of: ConstantsOf) -> None:
    table = shipped()
    hopper, own = table["families"]["hopper"], table["devices"]["H100-SXM-80GB"]
    host = table["engines"]["vllm"]["dense"]
    h100 = constants_of(deploy("Llama-3.1-70B", "H100-SXM-80GB", weight_dtype="fp8", tp=4))
    assert h100.eta_c == pytest.approx(hopper["eta_c"]["8"] * host["arithmetic"] * own["arithmetic"])
    assert h100.eta_c16 == pytest.approx(hopper["eta_c"]["16"] * host["arithmetic"] * own["arithmetic"])
    assert h100.eta_m == pytest.approx(hopper["eta_m"]["8"] * host["reads"] * own["reads"])
    assert h100.eta_kv == pytest.approx(hopper["eta_kv"] * host["reads"] * own["reads"] * host["kv"])
    assert (h100.ov_s, h100.layer_s, h100.seq_s, h100.moe_s) == (host["ov_s"], host["layer_s"], host["seq_s"], 0)
    assert h100.frontend_s == pytest.approx(host["frontend_s"] + 80 * host["launch_s"])
    assert h100.alpha_s == table["links"]["scale_up"]["alpha_s"]
    experts = table["engines"]["sglang"]["mla"]
    deepseek = constants_of(deploy("DeepSeek-R1", "H200-SXM-141GB", weight_dtype="fp8", tp=8), "sglang")
    assert (deepseek.moe_s, deepseek.moe_compute) == (
        experts["moe_s"],
        pytest.approx(table["shared"]["moe_compute"] * hopper["moe"]),
    )


def test_what_goes_over_pcie_depends_on_who_sends_it(deploy: Deploy, constants_of: ConstantsOf) -> None:
    links = shipped()["links"]

    def share(chip: str, engine: str) -> float:
        return constants_of(deploy("Llama-3.1-8B", chip, tp=2), engine).eta_link

    assert share("L40S", "tensorrt_llm") == links["pcie_direct"]["eta_link"]
    assert share("L40S", "vllm") == links["pcie_nccl"]["eta_link"]
    assert share("RTX 4090", "tensorrt_llm") == links["pcie_host"]["eta_link"]
    assert links["pcie_host"]["eta_link"] < links["pcie_nccl"]["eta_link"] < links["pcie_direct"]["eta_link"]


def test_no_product_of_shares_exceeds_one(deploy: Deploy) -> None:
    table = copy.deepcopy(dict(shipped()))
    table["devices"]["L4"] = {"arithmetic": 5.0, "reads": 5.0}
    d = deploy("Llama-3.1-8B", "L4")
    c = constants_for(d.model, d.accelerator, "bf16", "vllm", pcie=False, table=table)
    assert (c.eta_c, c.eta_m, c.eta_kv, c.eta_a) == (1.0, 1.0, 1.0, 1.0)


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
        ({"overlap": 0.5}, "performance.overrides.overlap: 0.5 is below 1; give 1 or more: how far arithmetic"),
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
