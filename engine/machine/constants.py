"""The measured constants of the step time and of memory: values, where they come from, and overrides.

constants.json holds them by accelerator family, number format and engine; a scenario may override any by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import resources
from typing import Any

from engine.catalog import Accelerator, Model, bits, is_sixteen_bit
from engine.scenario import Problem

_OTHER = "other"
# Over PCIe, TensorRT-LLM's kernels write to the other device directly. NCCL, which the others use, does so only below
# one PCIe switch: else every byte crosses PCIe twice, by way of the host's memory. Consumer cards never can.
_CONSUMER = frozenset({"RTX 3090", "RTX 4090", "RTX 5090"})
_PEER_TO_PEER = frozenset({"tensorrt_llm", "tensorrt_llm_2024"})
ENGINES = ("vllm", "tensorrt_llm", "sglang")


def _share(text: str) -> Any:
    """A constant between 0 (excluded) and 1: nothing runs faster than its peak."""
    return field(metadata={"text": text, "share": True, "low": 0.0})


def _amount(text: str, low: float = 0.0) -> Any:
    """A constant of at least `low`."""
    return field(metadata={"text": text, "share": False, "low": low})


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of one deployment, every field overridable by its name. Seconds, bytes, or shares of a peak."""

    eta_c: float = _share("share of peak arithmetic that matrix products reach, in the format of the weights")
    eta_c16: float = _share("the same for what stays at 16 bits, the head above all")
    eta_m: float = _share("share of peak bandwidth at which weights are read, in their format")
    eta_m16: float = _share("the same for what stays at 16 bits")
    eta_kv: float = _share("share of peak bandwidth at which KV is read")
    eta_a: float = _share("share of peak 16-bit arithmetic that attention inside prompts reaches")
    eta_mla: float = _share("share of peak 16-bit arithmetic that decoding with latent attention reaches")
    eta_link: float = _share("share of a link's rate that an all-reduce reaches")
    alpha_s: float = _amount("seconds of an all-reduce of two devices however small it is")
    ov_s: float = _amount("seconds of host work a step")
    layer_s: float = _amount("seconds of host work a step and layer")
    moe_s: float = _amount("seconds more a step and layer with experts")
    seq_s: float = _amount("seconds of host work a step and request in it")
    frontend_s: float = _amount("seconds a request spends outside the replica: HTTP, tokeniser, detokeniser")
    overlap: float = _amount("how far arithmetic and reading weights overlap: 1 not at all, large fully", low=1.0)
    moe_touched: float = _share("experts touched, as a share of what evenly spread routing would touch")
    moe_compute: float = _amount("arithmetic of experts, as a multiple of the same work in one matrix")
    weight_only_compute: float = _share("arithmetic rate with weights stored in fewer bits than they are computed at")
    block_fp8_compute: float = _share("arithmetic rate of weights published as block-wise fp8, over plain fp8's")
    block_fp8_reads: float = _share("read rate of weights published as block-wise fp8, over plain fp8's")
    logits_bytes: float = _amount("bytes of the sampler's workspace for each request and entry of the vocabulary")
    driver_share: float = _share("share of device memory that driver and firmware keep")
    runtime_gib: float = _amount("GiB a device of context, libraries and captured graphs")
    comm_gib: float = _amount("GiB a device of communication buffers, with more than one device")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a deployment's constants stand in constants.json."""

    family: str
    engine: str
    kind: str  # of model: dense, moe, or mla (experts and latent attention)
    width: str  # bits of the weights
    link: str


@cache
def _file(name: str) -> Mapping[str, Any]:
    text = resources.files("engine.machine").joinpath(name).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def shipped() -> Mapping[str, Any]:
    """The table of constants that the app uses."""
    return _file("constants.json")


@cache
def _families() -> Mapping[str, str]:
    """Accelerator name -> family name."""
    return {name: family for family, names in _file("families.json").items() for name in names}


def family_of(accelerator: Accelerator) -> str:
    """The family whose constants an accelerator takes; one that isn't in the table takes cautious ones."""
    return _families().get(accelerator.name, _OTHER)


def class_of(model: Model) -> str:
    """dense or moe: what errors are told apart by."""
    return "moe" if model.moe else "dense"


def engines() -> tuple[str, ...]:
    """Serving engines that a scenario can name."""
    return ENGINES


def place_of(model: Model, accelerator: Accelerator, weight_dtype: str, engine: str, pcie: bool) -> Place:
    """Where the constants of a deployment stand."""
    return Place(
        family=family_of(accelerator),
        engine=engine,
        kind="mla" if model.moe and model.mla else "moe" if model.moe else "dense",
        width="16" if is_sixteen_bit(weight_dtype) else str(bits(weight_dtype)),
        link=_link_of(accelerator, engine) if pcie else "scale_up",
    )


def _link_of(accelerator: Accelerator, engine: str) -> str:
    """Which constants exchanges over PCIe have."""
    if accelerator.name in _CONSUMER:
        return "pcie_host"
    bridged = accelerator.link_kind == "bridge"  # in pairs: half of a ring's hops don't cross PCIe
    return "pcie_direct" if bridged or engine in _PEER_TO_PEER else "pcie_nccl"


def constants_for(
    model: Model,
    accelerator: Accelerator,
    weight_dtype: str,
    engine: str,
    pcie: bool,
    table: Mapping[str, Any] | None = None,
) -> Constants:
    """The constants of a deployment, before any override. `pcie`: its devices talk over PCIe.

    `table` takes the place of constants.json. `arithmetic`, `reads` and `kv` of an engine or of a single accelerator
    say how near it comes to what the family's share says; no product exceeds 1. An engine's `launch_s` is what a
    prompt's first step takes longer a layer, its kernels being launched one by one; it counts with the front end.
    """
    table = table or shipped()
    at = place_of(model, accelerator, weight_dtype, engine, pcie)
    family, host, joined = table["families"][at.family], table["engines"][at.engine][at.kind], table["links"][at.link]
    own = table["devices"].get(accelerator.name, {"arithmetic": 1.0, "reads": 1.0})

    def arithmetic(share: float) -> float:
        return min(1.0, share * float(host["arithmetic"]) * float(own["arithmetic"]))

    def reads(share: float) -> float:
        return min(1.0, share * float(host["reads"]) * float(own["reads"]))

    return Constants(
        eta_c=arithmetic(family["eta_c"][at.width]),
        eta_c16=arithmetic(family["eta_c"]["16"]),
        eta_m=reads(family["eta_m"][at.width]),
        eta_m16=reads(family["eta_m"]["16"]),
        eta_kv=reads(family["eta_kv"] * host["kv"]),
        eta_a=arithmetic(family["eta_a"]),
        eta_link=joined["eta_link"],
        alpha_s=joined["alpha_s"],
        ov_s=host["ov_s"],
        layer_s=host["layer_s"],
        moe_s=host["moe_s"],
        seq_s=host["seq_s"],
        frontend_s=host["frontend_s"] + host["launch_s"] * model.layers,
        **(table["shared"] | {"moe_compute": family["moe"] * table["shared"]["moe_compute"]}),
    )


def override(constants: Constants, values: Mapping[str, Any], where: str) -> tuple[Constants, list[Problem]]:
    """The constants with some replaced by name, and what is wrong with the names or values (fields under `where`)."""
    known = {entry.name: entry.metadata for entry in fields(constants)}
    problems: list[Problem] = []
    for name, value in values.items():
        at = f"{where}.{name}"
        if name not in known:
            names = ", ".join(known)
            problems.append(Problem(at, str(value), "is for a constant that doesn't exist", f"constants: {names}"))
        elif known[name]["share"] and not 0 < value <= 1:
            problems.append(Problem(at, str(value), "is not a share of a peak", "give a value above 0, at most 1"))
        elif value < known[name]["low"]:
            low = f"{known[name]['low']:g}"
            problems.append(Problem(at, str(value), f"is below {low}", f"give {low} or more: {known[name]['text']}"))
    accepted = {} if problems else {name: float(value) for name, value in values.items()}
    return replace(constants, **accepted), problems
