"""Ways of using so many accelerators for one model: copies, tensor, pipeline, context and expert parallel, and what
each does.

Every layout serves the same requests. Its users' pace is measured under the scenario's own traffic, what its machines
could give at most is the engine's saturated measure; the one is what is felt, the other what is paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.machine import ReplicaModel, accelerators_of, replica_model, resolve_model, typical_lengths
from engine.outcome import Result
from engine.scenario import Problem, Scenario, ScenarioError
from engine.traffic import Trace

from .run import simulate, simulate_together
from .saturated import mix_of

SEEDS = 2
MOST_ACCELERATORS = 64
MOST_REQUESTS_IN_STAGES = 6_000
"""Of a copy that is a pipeline, in a run. Measured: a thousand take 3 to 6 s; up to 30 s where copies of 16 stages have
little to do."""
MOST_TOGETHER = 1_000_000
"""Requests of all layouts that are simulated in one run of the engine: memory grows with them."""
Pressure = Literal["memory", "requests", "prompts", "pace", "none"]
"""What forces a split or more copies. memory: no chip alone holds the model. requests: copies on as few chips as
hold it can't serve what arrives. prompts: reading a prompt takes them most of the promised time. pace: their words come
too slowly. none: they keep the promise."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`replicas` copies, each over `tp` x `pp` x `cp` accelerators, or with `tp` 1 over `ep`, which hold the experts
    together and attend each to their own requests. `problem`: why it can't be used, if it can't."""

    tp: int
    pp: int
    cp: int
    replicas: int
    problem: Problem | None = None
    ep: int = 1

    @property
    def chips(self) -> int:
        """Accelerators of a copy."""
        return max(self.tp, self.ep) * self.pp * self.cp

    @property
    def changes(self) -> dict[str, Any]:
        """What `Scenario.replace` takes to use it; without sequence parallel, which would be a choice of its own."""
        sizes = {f"parallelism.{name}": getattr(self, name) for name in ("tp", "pp", "cp", "ep")}
        return sizes | {"parallelism.sp": "none", "fleet.replicas": self.replicas}


@dataclass(frozen=True, slots=True)
class LayoutOutcome:
    """What a layout does with the scenario's traffic."""

    layout: Layout
    tokens_per_user: float | None
    """Words a second that a user sees while an answer comes: 1 / median TPOT, under this traffic."""
    tokens_per_gpu: float | None
    """Output tokens a second and accelerator when there is always a queue."""
    capacity_rps: float | None
    """Of all copies together."""
    first_word_s: float | None
    """TTFT that 95 % of the answered requests stay below."""
    attainment: float | None
    met: bool | None
    lone_first_word_s: float | None
    """Seconds to read a prompt of mean length with nobody else there."""
    kv_capacity_tokens: int | None
    runs: int


def layouts(s: Scenario, accelerators: int, traced: int = 0) -> tuple[Layout, ...]:
    """Every way of dealing out so many accelerators in copies of one shape, most copies first.

    Those that can't work say why: heads that don't divide, fewer layers than stages, no link that joins so many, not
    enough memory and by how much; so do pipelines that take too long to simulate. `traced`: how many requests of a
    trace come, where one is replayed. Raises `ScenarioError`.
    """
    if not 1 <= accelerators <= MOST_ACCELERATORS:
        raise ScenarioError.of("", f"{accelerators}", "accelerators", f"give from 1 to {MOST_ACCELERATORS}")
    shapes = [
        Layout(tp, pp, cp, accelerators // (tp * pp * cp))
        for tp in _divisors(accelerators)
        for pp in _divisors(accelerators // tp)
        for cp in _divisors(accelerators // (tp * pp))
        if pp == 1 or cp == 1
    ]
    if resolve_model(s).moe is not None:
        shapes += [Layout(1, 1, 1, accelerators // ep, ep=ep) for ep in _divisors(accelerators) if ep > 1]
    shapes.sort(key=lambda one: (-one.replicas, one.pp, one.cp))
    asked = float(traced) if s.traffic.process == "trace" else _asked(s)
    return tuple(_checked(s, shape, asked) for shape in shapes)


def _divisors(number: int) -> Iterator[int]:
    return (n for n in range(1, number + 1) if number % n == 0)


def _checked(s: Scenario, shape: Layout, asked: float) -> Layout:
    layers = resolve_model(s).layers
    if shape.pp > layers:
        problem = Problem("parallelism.pp", str(shape.pp), f"stages are more than the {layers} layers", "give fewer")
        return replace(shape, problem=problem)
    each = asked / shape.replicas
    if shape.pp > 1 and each > MOST_REQUESTS_IN_STAGES:
        reason = (
            f"stages would be simulated with {each:,.0f} requests a copy, more than the {MOST_REQUESTS_IN_STAGES:,} "
            "that take about half a minute"
        )
        problem = Problem("parallelism.pp", str(shape.pp), reason, "shorten run.horizon_s")
        return replace(shape, problem=problem)
    try:
        replica_model(s.replace(layout_changes(s, shape)))
    except ScenarioError as error:
        return replace(shape, problem=error.problems[0])
    return shape


def _asked(s: Scenario) -> float:
    """About how many requests come in a run; 0 where only its end will tell."""
    if s.traffic.process == "closed" or s.run.horizon_s is None:
        return 0.0
    return s.traffic.rate_rps * s.traffic.shape.mean_factor(s.run.horizon_s) * s.run.horizon_s


def layout_changes(s: Scenario, layout: Layout) -> dict[str, Any]:
    """What `Scenario.replace` takes to use a layout. Two pools, whose replicas aren't copies of each other, give way to
    prompts that are read in chunks."""
    pools = s.batching.policy == "disaggregated"
    return layout.changes | ({"batching.policy": "chunked"} if pools else {})


def layout_outcome(s: Scenario, layout: Layout, trace: Trace | None = None, *, seeds: int = SEEDS) -> LayoutOutcome:
    """The scenario's traffic on a layout, without an autoscaler, which would buy other chips, and without two pools,
    whose replicas aren't copies of each other: those that have them are compared with prompts read in chunks.

    Raises `ScenarioError` and `TraceError` as `simulate` does.
    """
    return _outcome(layout, simulate(_on(s, layout, seeds), trace), trace)


def layout_outcomes(s: Scenario, several: Sequence[Layout], trace: Trace | None = None) -> list[LayoutOutcome]:
    """`layout_outcome` of each, for less time: those with as many stages are simulated in one run of the engine, unless
    users wait for their answers, or there are more than `MOST_TOGETHER` requests."""
    if s.traffic.process == "closed":
        return [layout_outcome(s, layout, trace) for layout in several]
    asked = float(len(trace)) if s.traffic.process == "trace" and trace is not None else _asked(s)
    many = max(1, int(MOST_TOGETHER / max(1.0, asked * min(s.run.seeds, SEEDS))))
    found: list[LayoutOutcome] = []
    for begin in range(0, len(several), many):
        some = several[begin : begin + many]
        results = simulate_together([_on(s, layout, SEEDS) for layout in some], trace)
        found += [_outcome(layout, result, trace) for layout, result in zip(some, results, strict=True)]
    return found


def _on(s: Scenario, layout: Layout, seeds: int) -> Scenario:
    return s.replace(layout_changes(s, layout) | {"run.seeds": min(s.run.seeds, seeds), "autoscaler.policy": "none"})


def _outcome(layout: Layout, result: Result, trace: Trace | None) -> LayoutOutcome:
    changed, latency = result.scenario, result.latency
    pace, first = latency["tpot"].figures["p50"], latency["ttft"].figures["p95"]
    judged = result.attainments[0] if result.attainments else None
    each = result.capacity_rps
    lengths = typical_lengths(changed) or _lengths_of(changed, result.model, trace)
    per_gpu = None if each is None or lengths is None else each * lengths[1] / layout.chips
    return LayoutOutcome(
        layout=layout,
        tokens_per_user=None if pace is None or not pace > 0 else 1.0 / pace,
        tokens_per_gpu=per_gpu,
        capacity_rps=None if each is None else each * layout.replicas,
        first_word_s=first,
        attainment=None if judged is None else judged.attainment,
        met=None if judged is None else judged.met,
        lone_first_word_s=None if lengths is None else _lone_s(changed, lengths[0]),
        kv_capacity_tokens=replica_model(changed).kv_capacity_tokens,
        runs=changed.run.seeds,
    )


def _lengths_of(s: Scenario, model: ReplicaModel, trace: Trace | None) -> tuple[float, float] | None:
    """Mean tokens of a prompt and of an answer of a trace; None when nothing of it fits a replica."""
    mix = mix_of(s, model, trace)
    return (float(mix.prompt_tokens.mean()), float(mix.output_tokens.mean())) if len(mix) else None


def _lone_s(s: Scenario, prompt: float) -> float:
    """Seconds to read a prompt in chunks of the token budget, on an idle replica."""
    model, budget = replica_model(s), s.batching.max_num_batched_tokens
    left, before, seconds = round(prompt), 0, model.frontend_s
    while left > 0:
        q = min(left, budget)
        seconds += model.step_s(q, 1, float(before), q * before + q * (q + 1) / 2)
        left, before = left - q, before + q
    return seconds


def frontier(found: Sequence[LayoutOutcome]) -> tuple[LayoutOutcome, ...]:
    """Those that no other beats in pace and in tokens a GPU, the fastest for a user first."""
    known = [one for one in found if one.tokens_per_user is not None and one.tokens_per_gpu is not None]
    best = [
        one
        for one in known
        if not any(
            _at_least(other, one) and (other.tokens_per_user, other.tokens_per_gpu) != _point(one) for other in known
        )
    ]
    return tuple(sorted(best, key=lambda one: -_point(one)[0]))


def _point(one: LayoutOutcome) -> tuple[float, float]:
    return one.tokens_per_user or 0.0, one.tokens_per_gpu or 0.0


def _at_least(one: LayoutOutcome, other: LayoutOutcome) -> bool:
    return all(a >= b for a, b in zip(_point(one), _point(other), strict=True))


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The layout to use, what presses, and the extremes that it lies between. `kept`: whether it keeps the promise."""

    best: LayoutOutcome
    pressure: Pressure
    kept: bool | None
    fastest: LayoutOutcome
    most: LayoutOutcome
    plain: LayoutOutcome
    """The most copies that fit."""


def recommend(s: Scenario, tried: Sequence[Layout], found: Sequence[LayoutOutcome]) -> Recommendation | None:
    """Of those that keep the promise the one with the most tokens a GPU; else the one nearest to keeping it.

    None when nothing could be tried.
    """
    known = [one for one in found if one.tokens_per_user is not None and one.tokens_per_gpu is not None]
    if not known:
        return None
    keep = [one for one in known if one.met is not False]
    if keep:
        best = max(keep, key=lambda one: _point(one)[1])
    else:
        best = max(known, key=lambda one: (one.attainment or 0.0, _point(one)[1]))
    plain = max(known, key=lambda one: (one.layout.replicas, -one.layout.pp, -one.layout.cp))
    return Recommendation(
        best=best,
        pressure=_pressure(s, tried, plain),
        kept=best.met,
        fastest=max(known, key=lambda one: _point(one)[0]),
        most=max(known, key=lambda one: _point(one)[1]),
        plain=plain,
    )


def _pressure(s: Scenario, tried: Sequence[Layout], plain: LayoutOutcome) -> Pressure:
    if plain.met is not False:
        memory = any(one.problem is not None and one.problem.field == "model.name" for one in tried)
        return "memory" if memory and plain.layout.chips > 1 else "none"
    if s.traffic.process != "closed" and plain.capacity_rps is not None and s.traffic.process != "trace":
        horizon = s.run.horizon_s or 0.0
        if s.traffic.rate_rps * s.traffic.shape.mean_factor(horizon) > plain.capacity_rps:
            return "requests"
    promise = s.slo[0]
    read = promise.metric in ("ttft", "e2e", "queue") and plain.lone_first_word_s is not None
    if read and (plain.lone_first_word_s or 0.0) > promise.threshold_s / 2:
        return "prompts"
    return "pace" if promise.metric in ("tpot", "max_itl") else "requests"


def present(s: Scenario) -> int:
    """Accelerators that a scenario has, all copies together, or both pools."""
    return accelerators_of(s) * s.replicas
