"""What to say when a model doesn't fit: what it needs, what there is, and what would fit (each computed)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.catalog import Accelerator, accelerators, bits, weight_bytes
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.memory import memory
from engine.machine.parallel import context_problems, split_sizes, tensor_problems
from engine.scenario import Problem

_GB = 1e9
_WORTHWHILE_TOKENS = 2048  # room for KV below which a suggestion would be of no use
_USUAL_SEQS = 256
_USUAL_STEP_TOKENS = 8192
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def does_not_fit(d: Deployment, c: Constants) -> Problem:
    """The problem of a deployment whose memory leaves no room for KV, in words."""
    m = memory(d, c)
    many = d.accelerators // d.cp
    total, offer = weight_bytes(d.model, d.weight_dtype).total, many * m.usable
    close = 0.9 < total / offer < 1.1
    reason = f"at {bits(d.weight_dtype)} bit needs {_gb(total, close)} for its weights"
    if d.sp == "operators":
        reason += f", {_gb(m.weights, True)} of them on each chip of one of its two groups"
    if m.weights < m.usable:
        reason += f" and {_gb(m.activations + m.runtime, True)} on each chip for activations and runtime"
    count = _NUMBERS[many] if many < len(_NUMBERS) else str(many)
    chips = f"{count} {d.accelerator.memory_gib:g} GB chip{'s' if many > 1 else ''} ({d.accelerator.name})"
    options = list(_suggestions(d, c)) or list(_elsewhere(d, c))
    remedy = f"try {_or(options)}" if options else "nothing in the catalogue holds it: choose a smaller model"
    return Problem("model.name", f'"{d.model.name}"', f"{reason}; {chips} can give it {_gb(offer, close)}", remedy)


def _gb(size: float, fine: bool) -> str:
    """Bytes in units of 1e9; `fine`: with a decimal."""
    return f"{size / _GB:.1f} GB" if fine or size < 10 * _GB else f"{size / _GB:.0f} GB"


def _or(options: list[str]) -> str:
    return options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"


def _suggestions(d: Deployment, c: Constants) -> Iterator[str]:
    """Single changes after which the model fits with some room, in the order: more chips, fewer bits, larger chips."""
    yield from _more_chips(d, c)
    for dtype in _narrower(d):
        if _roomy(replace(d, weight_dtype=dtype), c):
            yield f"{bits(dtype)} bit (model.weight_dtype {dtype})"
            break
    larger = _larger(d, c)
    if larger is not None:
        yield f"{larger.memory_gib:g} GB chips (hardware.accelerator {larger.name})"
    if d.max_num_seqs > _USUAL_SEQS and _roomy(replace(d, max_num_seqs=_USUAL_SEQS), c):
        yield f"fewer seats (batching.max_num_seqs {_USUAL_SEQS})"
    lower = d.budgeted and d.max_num_seqs <= _USUAL_STEP_TOKENS < d.step_tokens
    if lower and _roomy(replace(d, step_tokens=_USUAL_STEP_TOKENS), c):
        yield f"smaller steps (batching.max_num_batched_tokens {_USUAL_STEP_TOKENS})"


def _more_chips(d: Deployment, c: Constants) -> Iterator[str]:
    """The next larger group, over which experts are spread that were spread before."""
    experts = 0 if d.model.moe is None else d.model.moe.experts
    for tp in split_sizes(d.model, d.accelerator):
        wider = replace(d, tp=tp, ep=tp if d.ep > 1 else 1)
        spread = d.ep == 1 or tp <= experts
        possible = spread and not context_problems(d.model, d.accelerator, tp, d.cp, d.sp)
        if tp > d.tp and possible and _roomy(wider, c):
            names = [*([] if d.attention_dp else ["tp"]), *(["ep"] if d.ep > 1 else [])]
            settings, chips = " and ".join(f"parallelism.{name}" for name in names), wider.accelerators // d.cp
            yield f"{chips} chips ({settings})" if chips == tp else f"{chips} chips ({settings} {tp})"
            return


def _narrower(d: Deployment) -> list[str]:
    """Formats of weights with fewer bits than now."""
    return [dtype for dtype in ("fp8", "fp4") if bits(dtype) < bits(d.weight_dtype)]


def _elsewhere(d: Deployment, c: Constants) -> Iterator[str]:
    """When no single change suffices: the fewest, then smallest, chips that hold the model, at most bits possible.

    Chips of the present vendor first. Of other splits than tensor parallel only that of the context stays.
    """
    others = {"pp": (d.pp, 1), "ep": (d.ep, 1), "sp": (d.sp, "none")}
    undone = "".join(f"parallelism.{name} {usual}, " for name, (now, usual) in others.items() if now != usual)
    plain = replace(d, pp=1, ep=1, attention_dp=False, sp="none")
    devices = [device for device in accelerators().values() if device.fp16_tflops is not None]
    for dtype in (d.weight_dtype, *_narrower(d)):
        layouts = [
            (device.vendor != d.accelerator.vendor, tp, device.memory_gib, device.name)
            for device in devices
            for tp in split_sizes(d.model, device)
            if not context_problems(d.model, device, tp, d.cp, "none")
            and _roomy(replace(plain, accelerator=device, tp=tp, weight_dtype=dtype), c)
        ]
        if layouts:
            _, tp, memory_gib, name = min(layouts)
            settings = f"{undone}parallelism.tp {tp}, hardware.accelerator {name}, model.weight_dtype {dtype}"
            yield f"{tp} chips of {memory_gib:g} GB at {bits(dtype)} bit ({settings})"
            return


def _larger(d: Deployment, c: Constants) -> Accelerator | None:
    """The next larger accelerator, of the same vendor if there is one, of which as many hold the model."""
    now = d.accelerator
    for device in sorted(accelerators().values(), key=lambda one: (one.vendor != now.vendor, one.memory_gib)):
        usable = device.fp16_tflops is not None and not tensor_problems(d.model, device, d.tp)
        usable = usable and not context_problems(d.model, device, d.tp, d.cp, d.sp)
        if device.memory_gib > now.memory_gib and usable and _roomy(replace(d, accelerator=device), c):
            return device
    return None


def _roomy(d: Deployment, c: Constants) -> bool:
    """Whether a deployment fits and leaves room for a conversation."""
    return memory(d, c).kv_capacity_tokens >= _WORTHWHILE_TOKENS
