"""What the step-time model says of a point, in closed form: the steps that it consists of, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.machine.calibration.rows import Point
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.memory import memory
from engine.machine.steptime import Term, analytic_terms

Floats = NDArray[np.float64]


IN_STEP = 0.5
"""Of the others' prompts, when all begin together and prompts go first: those read before one's own aren't seen."""


FREE_FOR_KV = 0.95
"""TensorRT-LLM's `kv_cache_free_gpu_mem_fraction` in its own benchmarks."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a point. `steps` is (k, 5): how many, tokens T, requests R, context C, attention pairs A of each.

    A prediction is their time plus `frontends` front ends, in seconds; or, with `tokens`, that many tokens over it.
    """

    steps: Floats
    frontends: float
    tokens: float | None

    def predicted(self, seconds: float | Floats) -> float | Floats:
        """The prediction in the point's unit from the seconds of all steps and front ends."""
        return seconds if self.tokens is None else self.tokens / seconds


Steps = list[tuple[float, float, float, float, float]]


def plan_of(point: Point, c: Constants) -> Plan | None:
    """The steps of a point; None where its memory holds no request. Only memory's constants of `c` matter."""
    seqs = held(point, c)
    return None if seqs is None else plan_with(point, seqs)


def plan_with(point: Point, seqs: float) -> Plan:
    """The steps of a point of which `seqs` requests fit at once.

    Closed loop and offline: TPOT is a step in which N write at a context of P + O/2, plus the prompts of those who come
    next; throughput N O / (own prompt + (O - 1) TPOT). Static batch: all prompts in chunks, then O - 1 steps.
    """
    p, o, budget = point.prompt, point.output, float(point.deployment.step_tokens)
    if point.load == "static_batch":
        return _static(point, seqs)
    if point.metric == "ttft_low_load":
        return Plan(np.array(_prefill(1, p, budget, seqs - 1, p + o / 2)), 1.0, None)
    if point.metric == "tpot":
        return Plan(np.array(_decode(seqs, p, o, budget, IN_STEP if point.waves else 1.0)), 0.0, None)
    writing = min(seqs, budget * o / (p + o))  # more can't write at once: prompts take the budget
    own = _prefill(1, p, max(budget - writing, 1.0), writing - 1, p + o / 2)
    return Plan(np.array([*own, *_times(_decode(writing, p, o, budget), o - 1)]), 0.0, writing * o)


def held(point: Point, c: Constants) -> float | None:
    """Requests at once, as many as KV holds at their mean context; None: not even one (or the weights don't fit)."""
    context = point.prompt + point.output / 2
    d = replace(point.deployment, max_num_seqs=int(max(1, min(point.seqs, 1024))))
    m = memory(d, c)
    capacity: float = m.kv_capacity_tokens
    if point.engine.startswith("tensorrt_llm"):  # takes a share of what is free, not of all
        free = m.device - m.weights - m.activations - m.runtime
        capacity = max(0.0, FREE_FOR_KV * free / m.kv_per_token)
    if capacity < point.prompt + 1:
        return None
    return max(1.0, min(point.seqs, capacity / context))


def _times(steps: Steps, factor: float) -> Steps:
    return [(count * factor, *rest) for count, *rest in steps]  # type: ignore[misc]


def _decode(n: float, p: float, o: float, budget: float, seen: float = 1.0) -> Steps:
    """One step's worth of writing for N requests, with its share of steps that read prompts beside it.

    `seen`: the share of the others' prompts that are read between a request's first token and its last.
    """
    context = n * (p + o / 2)
    arriving = seen * max(n - 1, 0.0) * p / max(o, 1.0)
    if arriving <= 0:
        return [(1.0, n, n, context, 0.0)]
    room = max(budget - n, 1.0)
    read = max(min(p, room), min(arriving, room))
    share = min(1.0, arriving / read)
    chunks = max(1.0, p / room)
    # A long prompt comes in chunks, which read what is there of it already: half of it on average.
    earlier = (chunks - 1) / 2 * room if chunks > 1 else 0.0
    mixed = (share, n + read, n + max(1.0, read / p), context + earlier, read * (p + 1) / 2)
    return [(1.0 - share, n, n, context, 0.0), mixed]


def _prefill(prompts: float, p: float, budget: float, others: float, context: float) -> Steps:
    """Reading `prompts` prompts of P tokens, while `others` write at a mean context."""
    total = prompts * p
    whole = int(total // budget)
    rest = total - whole * budget
    steps: Steps = []
    # Prompts come one after the other; a chunk reads what is there of its own prompt.
    earlier = max(0.0, (p - budget) / 2)
    pairs = (p + 1) / 2
    each = max(1.0, budget / p)
    if whole:
        steps.append((float(whole), budget + others, each + others, others * context + earlier, budget * pairs))
    if rest > 0:
        last = max(0.0, p - rest) if whole and p > budget else 0.0
        steps.append((1.0, rest + others, max(1.0, rest / p) + others, others * context + last, rest * pairs))
    return steps


def _static(point: Point, n: float) -> Plan:
    """A batch that begins and ends together; what KV doesn't hold at once comes in a later group.

    A script runs it, in the engine's process: its front end is a smaller one.
    """
    p, o, budget = point.prompt, point.output, float(point.deployment.step_tokens)
    groups = point.seqs / n
    prefill = _prefill(n, p, budget, 0.0, 0.0)
    write: Steps = [(o - 1, n, n, n * (p + o / 2), 0.0)] if o > 1 else []
    if point.metric == "ttft_low_load":
        return Plan(np.array(prefill), 1.0, None)
    if point.metric == "tpot":
        return Plan(np.array([(1.0, n, n, n * (p + o / 2), 0.0)]), 0.0, None)
    steps = np.array(_times([*prefill, *write], groups))
    return Plan(steps, 1.0, None if point.metric == "batch_latency" else point.seqs * o)


def seconds_of(plan: Plan, terms: tuple[Term, ...], frontend_s: float) -> float:
    """Seconds of a plan; the terms' base arrays are for the plan's numbers of tokens, in order."""
    count, _, requests, context, pairs = plan.steps.T
    total = plan.frontends * frontend_s
    for term in terms:
        rest = term.seq_s * requests + term.kv_token_s * context + term.pair_s * pairs
        total += float(count @ (term.base + rest))
    return total


def predict(plan: Plan, d: Deployment, c: Constants) -> float:
    """The prediction of a plan in its point's unit."""
    terms = analytic_terms(d, c, tokens=plan.steps[:, 1])
    return float(plan.predicted(seconds_of(plan, terms, c.frontend_s)))
