"""One replica as the serving engine sees it: a table of step times, slopes, and what fits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.catalog import kv_bytes_per_token, price, weight_bytes
from engine.machine.advice import does_not_fit
from engine.machine.constants import Constants, constants_for, override
from engine.machine.context import typical_context
from engine.machine.deployment import Deployment, accelerators_of, deployment, resolve_accelerator, resolve_model
from engine.machine.linear import linear_terms
from engine.machine.memory import Memory, memory
from engine.machine.notes import deployment_notes
from engine.machine.stages import joining_link, stage_problems
from engine.machine.steptime import Term, analytic_terms
from engine.scenario import Analytic, Batching, Linear, Scenario, ScenarioError


@dataclass(frozen=True, slots=True)
class ReplicaModel:
    """What one replica can hold and how long a step lasts.

    A step of T tokens, R requests, C tokens of context and A attention pairs lasts
    base[T] + seq_s * R + kv_token_s * C + prefill_pair_s * A seconds. `base` has entries for T = 0..largest step
    (base[0] is never used) and can't be written to. `frontend_s` is added to a request's reported latencies.
    `kv_capacity_tokens` None: unlimited; `context_limit` None: none. `weights_bytes` is the model's size, each weight
    once (0 with a linear profile, which doesn't know); `kv_bytes_per_token` that of a token, each element once.
    With `stages` above 1 the replica is a pipeline: a step is a pass through all of them, and takes an equal part of
    its time in each. `notes`: what the reader must know.
    """

    base: NDArray[np.float64]
    seq_s: float
    kv_token_s: float
    prefill_pair_s: float
    frontend_s: float
    kv_capacity_tokens: int | None
    context_limit: int | None
    weights_bytes: float
    kv_bytes_per_token: float
    accelerators: int
    stages: int = 1
    notes: tuple[str, ...] = ()

    def step_s(self, tokens: int, requests: int, context_tokens: float, pairs: float) -> float:
        """Seconds of a step of T tokens, R requests, C tokens of context and A attention pairs."""
        rest = self.seq_s * requests + self.kv_token_s * context_tokens + self.prefill_pair_s * pairs
        return float(self.base[tokens]) + rest


def largest_step(batching: Batching, prompts_at_once: int = 1) -> int:
    """The most tokens that a step of the policy can have.

    A lone prompt longer than the budget, and a static group's prompts, exceed it: their policies need to know how many
    prompt tokens a step may read at once, `prompts_at_once`.
    """
    budget = max(batching.max_num_batched_tokens, batching.max_num_seqs)
    return budget if batching.policy == "chunked" else max(budget, prompts_at_once)


def replica_model(s: Scenario, prompts_at_once: int = 1) -> ReplicaModel:
    """The replica of a scenario. Raises ScenarioError in words: unknown names, impossible splits, doesn't fit.

    `prompts_at_once` is needed by policies whose steps can exceed the token budget (see `largest_step`). Memory is
    planned for the budget: engines read what exceeds it piece by piece.
    """
    steps = largest_step(s.batching, prompts_at_once)
    if isinstance(s.performance, Linear):
        return _linear_replica(s, s.performance, steps)
    return _analytic_replica(s, s.performance, steps)


def step_terms(s: Scenario, prompts_at_once: int = 1) -> tuple[Term, ...]:
    """The named parts of the replica's step time; their sums are the replica's base and slopes."""
    steps = largest_step(s.batching, prompts_at_once)
    if isinstance(s.performance, Linear):
        return linear_terms(s.performance, steps)
    d = deployment(s, steps)
    return analytic_terms(d, constants(s, d), s.performance.scale)


def replica_memory(s: Scenario) -> Memory:
    """Memory of one of the replica's accelerators, whether or not the model fits."""
    d = deployment(s, largest_step(s.batching))
    return memory(d, constants(s, d))


def constants(s: Scenario, d: Deployment) -> Constants:
    """The constants of a scenario's deployment, overrides applied. Raises ScenarioError naming a bad override."""
    engine, overrides = "vllm", {}
    if isinstance(s.performance, Analytic):
        engine, overrides = s.performance.engine, dict(s.performance.overrides)
    final, problems = override(_shipped_constants(d, engine), overrides, "performance.overrides")
    if problems:
        raise ScenarioError(problems)
    return final


def _shipped_constants(d: Deployment, engine: str) -> Constants:
    joined = joining_link(d.accelerator, d.tp * d.cp, 2 if d.sp == "operators" else d.pp)
    return constants_for(d.model, d.accelerator, d.weight_dtype, engine, joined is not None and joined.pcie)


def device_memory(d: Deployment, engine: str = "vllm") -> Memory:
    """Memory of one of a deployment's accelerators, whether or not the model fits."""
    return memory(d, _shipped_constants(d, engine))


def hourly_price(s: Scenario) -> tuple[float | None, str]:
    """USD an hour of one accelerator, and where the figure is from, in words; None when nobody gave one."""
    given = s.hardware.price_per_gpu_hour
    if given is not None:
        return given, "your price"
    name = s.hardware.accelerator
    found = price(name) if s.hardware.custom is None else None
    if found is None:
        return None, f"the catalogue has no list price of {name}: give hardware.price_per_gpu_hour for a cost"
    return (
        found.median,
        f"median of {found.quotes} on-demand prices, {found.low:g} to {found.high:g} USD, {found.newest}",
    )


def _linear_replica(s: Scenario, profile: Linear, steps: int) -> ReplicaModel:
    """A measured profile: memory isn't checked; model and hardware only say what a token's KV is and what it costs."""
    resolve_accelerator(s)
    model = resolve_model(s)
    problems = stage_problems(model, s.parallelism.pp)
    if problems:
        raise ScenarioError(problems)
    return _assemble(
        linear_terms(profile, steps),
        frontend_s=0.0,
        kv_capacity_tokens=s.batching.kv_capacity_tokens,
        context_limit=s.batching.max_model_len,
        weights_bytes=0.0,
        kv_bytes_per_token=kv_bytes_per_token(model, s.model.kv_dtype, typical_context(s)),
        accelerators=accelerators_of(s),
        stages=s.parallelism.pp,
    )


def _analytic_replica(s: Scenario, performance: Analytic, steps: int) -> ReplicaModel:
    d = deployment(s, steps)
    c = constants(s, d)
    held = memory(replace(d, step_tokens=largest_step(s.batching)), c)
    if not held.fits:
        raise ScenarioError([does_not_fit(d, c)])
    given = s.batching.kv_capacity_tokens
    return _assemble(
        analytic_terms(d, c, performance.scale),
        frontend_s=c.frontend_s,
        kv_capacity_tokens=held.kv_capacity_tokens if given is None else given,
        context_limit=s.batching.max_model_len or d.model.max_context,
        weights_bytes=weight_bytes(d.model, d.weight_dtype).total,
        kv_bytes_per_token=kv_bytes_per_token(d.model, d.kv_dtype, d.context_tokens),
        accelerators=accelerators_of(s),
        stages=s.parallelism.pp,
        notes=tuple(deployment_notes(d, held, given)),
    )


def _assemble(
    terms: tuple[Term, ...],
    *,
    frontend_s: float,
    kv_capacity_tokens: int | None,
    context_limit: int | None,
    weights_bytes: float,
    kv_bytes_per_token: float,
    accelerators: int,
    stages: int,
    notes: tuple[str, ...] = (),
) -> ReplicaModel:
    """The replica whose step time is the sum of the terms."""
    base = np.sum([term.base for term in terms], axis=0)
    base.setflags(write=False)
    return ReplicaModel(
        base=base,
        seq_s=sum(term.seq_s for term in terms),
        kv_token_s=sum(term.kv_token_s for term in terms),
        prefill_pair_s=sum(term.pair_s for term in terms),
        frontend_s=frontend_s,
        kv_capacity_tokens=kv_capacity_tokens,
        context_limit=context_limit,
        weights_bytes=weights_bytes,
        kv_bytes_per_token=kv_bytes_per_token,
        accelerators=accelerators,
        stages=stages,
        notes=notes,
    )
