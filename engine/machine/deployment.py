"""What a scenario puts on its accelerators, with names resolved to rows of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from engine.catalog import (
    Accelerator,
    CatalogError,
    Model,
    accelerator,
    accelerator_from_columns,
    model,
    model_from_columns,
)
from engine.machine.context import typical_context
from engine.machine.parallel import context_problems, expert_problems, operator_problems, tensor_problems
from engine.machine.stages import stage_problems
from engine.scenario import Problem, Scenario, ScenarioError

_Row = TypeVar("_Row", Model, Accelerator)


@dataclass(frozen=True, slots=True)
class Deployment:
    """One replica's model, formats, devices and limits, as far as memory and step time depend on them.

    `step_tokens`: most tokens in a step; `budgeted`: it is the token budget, which can be lowered. `context_tokens`: a
    typical request's context, None when not known. `tp`: devices that share every layer. `ep` > 1: whole experts are
    spread over them instead of a slice of each. `attention_dp`: each of them attends to its own requests, with all of
    attention's weights. `pp`: stages of a pipeline, each of `tp` devices; `cp`: devices over which a context is split;
    `sp`: none, megatron, ulysses, or operators: `tp` devices for attention and as many for the feed-forward parts.
    """

    model: Model
    accelerator: Accelerator
    weight_dtype: str
    kv_dtype: str
    tp: int
    gpu_memory_utilization: float
    max_num_seqs: int
    step_tokens: int
    context_tokens: float | None
    budgeted: bool = True
    ep: int = 1
    attention_dp: bool = False
    pp: int = 1
    cp: int = 1
    sp: str = "none"

    @property
    def accelerators(self) -> int:
        """Accelerators of one replica."""
        return self.tp * self.pp * self.cp * (2 if self.sp == "operators" else 1)

    @property
    def windowed(self) -> bool:
        """Whether requests typically outgrow the sliding layers' window: those then cost the same for each request."""
        window = self.model.sliding_window
        return window is not None and self.context_tokens is not None and self.context_tokens > window


def deployment(s: Scenario, step_tokens: int) -> Deployment:
    """The deployment that a scenario describes; ScenarioError on unknown names, missing facts, impossible splits."""
    chosen, device = resolve_model(s), resolve_accelerator(s)
    p = s.parallelism
    problems = [
        *tensor_problems(chosen, device, p.tp),
        *context_problems(chosen, device, p.tp, p.cp, p.sp),
        *stage_problems(chosen, p.pp),
        *expert_problems(chosen, device, p),
        *operator_problems(p),
        *_missing_facts(device),
        *_too_long(s, chosen),
    ]
    if problems:
        raise ScenarioError(problems)
    return Deployment(
        model=chosen,
        accelerator=device,
        weight_dtype=s.model.weight_dtype,
        kv_dtype=s.model.kv_dtype,
        tp=max(p.tp, p.ep),
        pp=p.pp,
        gpu_memory_utilization=s.batching.gpu_memory_utilization,
        max_num_seqs=s.batching.max_num_seqs,
        step_tokens=step_tokens,
        context_tokens=typical_context(s),
        budgeted=s.batching.policy == "chunked",
        cp=p.cp,
        sp=p.sp,
        ep=p.ep,
        attention_dp=p.ep > p.tp,
    )


def accelerators_of(s: Scenario) -> int:
    """Accelerators of one replica."""
    p = s.parallelism
    return max(p.tp, p.ep) * p.pp * p.cp * (2 if p.sp == "operators" else 1)


def resolve_model(s: Scenario) -> Model:
    """The scenario's model: its custom columns, else the catalogue's row; ScenarioError naming the field."""
    return _resolve("model", "name", s.model.name, s.model.custom, model, model_from_columns)


def resolve_accelerator(s: Scenario) -> Accelerator:
    """The scenario's accelerator: its custom columns, else the catalogue's row; ScenarioError naming the field."""
    name, custom = s.hardware.accelerator, s.hardware.custom
    return _resolve("hardware", "accelerator", name, custom, accelerator, accelerator_from_columns)


def _resolve(
    section: str,
    key: str,
    name: str,
    custom: Mapping[str, Any] | None,
    find: Callable[[str], _Row],
    build: Callable[[Mapping[str, Any], str], _Row],
) -> _Row:
    """A catalogue row, or one built from columns under the scenario's name for it, faults put under their fields."""
    try:
        return find(name) if custom is None else build(custom, name)
    except CatalogError as error:
        raise ScenarioError(
            Problem(
                f"{section}.custom.{fault.column}" if fault.column else f"{section}.{key}",
                fault.value,
                fault.reason,
                fault.remedy,
            )
            for fault in error.faults
        ) from None


def _missing_facts(device: Accelerator) -> list[Problem]:
    """The catalogue lists a few accelerators whose arithmetic no source gave."""
    if device.fp16_tflops is not None:
        return []
    reason = "has no 16-bit arithmetic rate in the catalogue, so step times can't be computed"
    remedy = "give hardware.custom with dense_fp16_bf16_tflops, or choose another accelerator"
    return [Problem("hardware.accelerator", f'"{device.name}"', reason, remedy)]


def _too_long(s: Scenario, chosen: Model) -> list[Problem]:
    """An engine refuses a context beyond what the model was trained for."""
    limit, longest = s.batching.max_model_len, chosen.max_context
    if limit is None or longest is None or limit <= longest:
        return []
    reason = f"is above the {longest} tokens of context that {chosen.name} can take"
    return [Problem("batching.max_model_len", str(limit), reason, f"give at most {longest}, or null", (longest,))]
