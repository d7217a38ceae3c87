"""The measured constants of the step time and of memory: values, where they come from, and overrides.

constants.json holds them by accelerator family, number format and engine; a scenario may override any by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from engine.catalog import Accelerator, Model, bits, is_sixteen_bit
from engine.scenario import Problem

_OTHER = "other"
Status = Literal["measured", "alike", "judgement"]


def _share(text: str) -> Any:
    """A constant between 0 (excluded) and 1: nothing runs faster than its peak."""
    return field(metadata={"text": text, "share": True})


def _amount(text: str) -> Any:
    """A constant of at least 0."""
    return field(metadata={"text": text, "share": False})


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
    moe_touched: float = _share("experts touched, as a share of what evenly spread routing would touch")
    moe_compute: float = _amount("arithmetic of experts, as a multiple of the same work in one matrix")
    block_fp8_compute: float = _share("arithmetic rate of weights published as block-wise fp8, over plain fp8's")
    block_fp8_reads: float = _share("read rate of weights published as block-wise fp8, over plain fp8's")
    logits_bytes: float = _amount("bytes of the sampler's workspace for each request and entry of the vocabulary")
    driver_share: float = _share("share of device memory that driver and firmware keep")
    runtime_gib: float = _amount("GiB a device of context, libraries and captured graphs")
    comm_gib: float = _amount("GiB a device of communication buffers, with more than one device")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the constants of a deployment rest on. `status`: measured on this accelerator, on its kind, or judgement."""

    family: str
    status: Status
    accelerator_text: str
    engine_text: str


@cache
def _file() -> Mapping[str, Any]:
    text = resources.files("engine.machine").joinpath("constants.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def _families() -> Mapping[str, str]:
    """Accelerator name -> family name."""
    families = _file()["families"].items()
    return {name: family for family, entry in families for name in (*entry["measured"], *entry["alike"])}


def family_of(accelerator: Accelerator) -> str:
    """The family whose constants an accelerator takes; one that isn't in the table takes cautious ones."""
    return _families().get(accelerator.name, _OTHER)


def engines() -> tuple[str, ...]:
    """Serving engines with constants."""
    return tuple(_file()["engines"])


def evidence(accelerator: Accelerator, engine: str) -> Evidence:
    """What is known about this accelerator and engine."""
    family = family_of(accelerator)
    entry = _file()["families"][family]
    status: Status = (
        "measured" if accelerator.name in entry["measured"] else "alike" if entry["measured"] else "judgement"
    )
    return Evidence(family, status, entry["evidence"], _file()["engines"][engine]["evidence"])


def constants_for(model: Model, accelerator: Accelerator, weight_dtype: str, engine: str, pcie: bool) -> Constants:
    """The constants of a deployment, before any override. `pcie`: its devices talk over PCIe."""
    family, host = _file()["families"][family_of(accelerator)], _file()["engines"][engine]
    shared = dict(_file()["shared"])
    alpha = {True: shared.pop("alpha_pcie_s"), False: shared.pop("alpha_scale_up_s")}
    kind = "mla" if model.moe and model.mla else "moe" if model.moe else "dense"
    width = "16" if is_sixteen_bit(weight_dtype) else str(bits(weight_dtype))
    return Constants(
        eta_c=family["eta_c"][width],
        eta_c16=family["eta_c"]["16"],
        eta_m=family["eta_m"][width],
        eta_m16=family["eta_m"]["16"],
        eta_kv=family["eta_kv"],
        alpha_s=alpha[pcie],
        ov_s=host["ov_s"],
        layer_s=host["layer_s"],
        moe_s=host["moe_s"][kind] if model.moe else 0.0,
        seq_s=host["seq_s"],
        frontend_s=host["frontend_s"][kind],
        **shared,
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
        elif value < 0:
            problems.append(Problem(at, str(value), "is below 0", f"give 0 or more: {known[name]['text']}"))
    accepted = {} if problems else {name: float(value) for name, value in values.items()}
    return replace(constants, **accepted), problems
