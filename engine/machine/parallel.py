"""Splitting a model over the accelerators of one replica: what is possible, and over which link."""

from __future__ import annotations

from dataclasses import dataclass

from engine.catalog import Accelerator, Model
from engine.scenario import Parallelism, Problem

_PCIE_DEVICES = 8  # cards that one host usually takes
_TP, _CP, _SP, _EP = (f"parallelism.{name}" for name in ("tp", "cp", "sp", "ep"))


@dataclass(frozen=True, slots=True)
class Link:
    """How the devices of a group talk: rate in bytes/s and direction of one device, whether it is PCIe."""

    name: str
    bytes_per_s: float
    pcie: bool
    devices: int  # that it can join


def link(accelerator: Accelerator, tp: int) -> Link | None:
    """The fastest link that joins `tp` devices; None when none does or none is known.

    Devices bridged in pairs talk over PCIe in larger groups; a switched domain is a limit.
    """
    rate, domain = accelerator.link_gb_per_s, accelerator.scale_up_domain
    if accelerator.link_kind in ("scale_up", "bridge") and rate and domain and tp <= domain:
        return Link(accelerator.link, rate * 1e9, pcie=False, devices=domain)
    if accelerator.link_kind in ("bridge", "pcie") and accelerator.pcie_gb_per_s and tp <= _PCIE_DEVICES:
        return Link("PCIe", accelerator.pcie_gb_per_s * 1e9, pcie=True, devices=_PCIE_DEVICES)
    return None


def _most_devices(accelerator: Accelerator) -> int:
    """Devices that some link of the accelerator joins; 1 without one."""
    domain = accelerator.scale_up_domain or 1
    return max((tp for tp in (2, domain, _PCIE_DEVICES) if link(accelerator, tp)), default=1)


def tensor_problems(model: Model, accelerator: Accelerator, tp: int) -> list[Problem]:
    """Why a model can't be split into `tp` parts by heads over this accelerator, in words; empty when it can."""
    problems = []
    fitting = ", ".join(map(str, split_sizes(model, accelerator)))
    remedy = f"{model.name} on {accelerator.name} splits into {fitting}"
    if model.heads % tp:
        problems.append(Problem(_TP, str(tp), f"doesn't divide the {model.heads} attention heads", remedy))
    elif not _kv_heads_split(model, tp):
        reason = f"neither divides the {model.kv_heads} KV heads nor is a multiple of them"
        problems.append(Problem(_TP, str(tp), reason, remedy))
    if tp > 1 and link(accelerator, tp) is None:
        most = _most_devices(accelerator)
        said = f"is beyond the {most} {accelerator.name} that a fast link joins"
        if most == 1:
            said = f"needs a link between {accelerator.name} devices, and the catalogue knows none"
        problems.append(Problem(_TP, str(tp), said, remedy))
    return problems


def context_problems(model: Model, accelerator: Accelerator, tp: int, cp: int, sp: str) -> list[Problem]:
    """Why a context can't be split over `cp` devices, or activations be sharded, in words; empty when they can."""
    problems = []
    if cp > 1 and link(accelerator, tp * cp) is None:
        most = _most_devices(accelerator)
        said = f"with {_TP} {tp} makes {tp * cp} devices, and a fast link joins {most} {accelerator.name}"
        problems.append(Problem(_CP, str(cp), said, f"give at most {max(1, most // tp)}, or a smaller {_TP}"))
    if sp == "ulysses" and cp == 1:
        remedy = f"give {_CP} above 1, or none"
        problems.append(
            Problem(_SP, '"ulysses"', f"swaps shards of a sequence over {_CP} devices: there is one", remedy)
        )
    elif sp == "ulysses" and model.heads % (tp * cp):
        said = f"with {_TP} {tp} doesn't divide the {model.heads} attention heads, which ulysses deals out"
        problems.append(Problem(_CP, str(cp), said, f"give another number, or {_SP} none: a ring needs no heads"))
    if sp == "megatron" and tp == 1:
        remedy = f"give {_TP} above 1, or none"
        problems.append(Problem(_SP, '"megatron"', f"shards activations over {_TP} devices: there is one", remedy))
    return problems


def expert_problems(model: Model, accelerator: Accelerator, p: Parallelism) -> list[Problem]:
    """Why experts can't be spread over `p.ep` devices, in words; empty when they can.

    They are spread over the devices of tensor parallel, which then share attention, or, with `p.tp` 1, over devices
    each of which attends to its own requests.
    """
    if p.ep == 1:
        return []

    def problem(reason: str, remedy: str) -> list[Problem]:
        return [Problem(_EP, str(p.ep), reason, remedy)]

    if model.moe is None:
        return problem(f"spreads experts, and {model.name} has none", "give 1")
    if p.ep > model.moe.experts:
        return problem(f"is more than {model.name} has experts, {model.moe.experts}", "give fewer")
    if p.ep == p.tp:
        return []
    if p.tp > 1:
        reason = f"is neither 1 nor {_TP}, {p.tp}: experts are spread over the devices that share attention"
        return problem(reason, f"give {p.tp}, or {_TP} 1: then every device attends to its own requests")
    if link(accelerator, p.ep) is None:
        most = _most_devices(accelerator)
        return problem(f"is beyond the {most} {accelerator.name} that a fast link joins", f"give at most {most}")
    if p.pp > 1 or p.cp > 1:
        other = "parallelism.pp" if p.pp > 1 else _CP
        reason = f"with {_TP} 1 has every device attend to its own requests, which doesn't go with {other}"
        return problem(reason, f"give {_TP} {p.ep}, or {other} 1")
    return []


def operator_problems(p: Parallelism) -> list[Problem]:
    """Why attention and feed-forward parts can't lie on devices of their own, in words; empty when they can."""
    others = {"parallelism.pp": p.pp, _CP: p.cp, _EP: p.ep}
    also = [f"{name} {ways}" for name, ways in others.items() if p.sp == "operators" and ways > 1]
    reason = f"divides every layer between two groups of {_TP} devices, which isn't known to go with {', '.join(also)}"
    return [Problem(_SP, '"operators"', reason, "give none, or 1 there")] if also else []


def _kv_heads_split(model: Model, tp: int) -> bool:
    """Whether KV heads can be dealt out evenly, or copied evenly. Latent attention has none to deal out."""
    return model.mla is not None or model.kv_heads % tp == 0 or tp % model.kv_heads == 0


def split_sizes(model: Model, accelerator: Accelerator) -> list[int]:
    """The powers of two into which the model can be split on this accelerator, ascending."""
    return [
        tp
        for tp in (1 << power for power in range(8))
        if model.heads % tp == 0 and _kv_heads_split(model, tp) and (tp == 1 or link(accelerator, tp) is not None)
    ]


def kv_shards(model: Model, tp: int, attention_dp: bool = False) -> int:
    """Among how many of `tp` devices a token's KV is divided: min(tp, KV heads); the rest hold copies.

    With latent attention every device holds all of it. With data-parallel attention a device holds its own requests'
    only, so that on average a token's share is one in `tp`.
    """
    if attention_dp:
        return tp
    return 1 if model.mla is not None else min(tp, model.kv_heads)
