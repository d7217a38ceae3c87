"""The same traffic under each autoscaler's rule: how long help takes, whom that harms, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from engine.machine import replica_model
from engine.outcome import relief
from engine.scenario import Scenario
from engine.traffic import Requests, Trace, generate

from .capacity import capacity_rps
from .prompts import prompts_at_once
from .run import simulate
from .spare import spare

RuleName = Literal["hpa", "keda", "knative", "ray_serve", "aibrix", "schedule", "fixed"]
RULES: tuple[RuleName, ...] = ("hpa", "keda", "knative", "ray_serve", "aibrix", "schedule", "fixed")
"""``fixed`` is no autoscaler, and the fewest replicas that keep the promise."""
SEEDS = 2
RAY_SERVE_TICK_S = 1.0
"""Ray Serve's own loop runs ten times as often, for decisions that must hold 30 s: ten times the work, and the same
outcome."""
_SLOT_S = 60.0
_LOAD = 0.8
"""Share of its replicas' capacity that a plan uses."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """One rule on a scenario's traffic."""

    rule: RuleName
    changes: dict[str, Any]
    """What `Scenario.replace` takes to use it."""
    replicas: int
    """That it began with."""
    lag_s: float | None
    """Of the run with the median lag; ``None`` without one that ended."""
    runs_short: int
    """Runs in which demand outgrew the ready replicas."""
    attainment: float | None
    broken: float | None
    """Requests for which the first promise was broken, mean over runs."""
    replica_hours: float
    """Paid for in a run, from its start to its end; mean over runs."""
    per_hour: float | None
    """US dollars, mean of the window."""
    runs: int


def rule_outcome(s: Scenario, rule: RuleName, trace: Trace | None = None, *, seeds: int = SEEDS) -> RuleOutcome | None:
    """What becomes of a scenario under a rule; ``None`` for ``fixed`` where no number of replicas keeps the promise.

    Metric, target, bounds and start-up are the scenario's. Interval and window are too for the rule that it has; the
    others get their own. Raises ``ScenarioError`` and ``TraceError`` as `simulate` does.
    """
    s = s.replace({"run.seeds": min(s.run.seeds, seeds)})
    changes = _fixed(s, trace) if rule == "fixed" else changes_for(s, rule, trace)
    if changes is None:
        return None
    changed = s.replace(changes)
    result = simulate(changed, trace)
    told, end = relief(result), result.run.horizon_s
    judged = result.attainments[0] if result.attainments else None
    return RuleOutcome(
        rule=rule,
        changes=changes,
        replicas=changed.fleet.replicas,
        lag_s=None if told is None else told.typical,
        runs_short=0 if told is None else len(told.lags_s),
        attainment=None if judged is None else judged.attainment,
        broken=None if judged is None else (judged.valid - judged.good) / end.size,
        replica_hours=float(result.replicas.paid.seconds(0.0, end).mean()) / 3600.0,
        per_hour=result.cost.per_hour,
        runs=end.size,
    )


def changes_for(s: Scenario, rule: RuleName, trace: Trace | None = None) -> dict[str, Any]:
    """What makes a scenario use an autoscaler's rule; nothing where it does."""
    if rule == s.autoscaler.policy:
        return {}
    changes: dict[str, Any] = {
        "autoscaler.policy": rule,
        "autoscaler.interval_s": RAY_SERVE_TICK_S if rule == "ray_serve" else None,
        "autoscaler.metric_window_s": None,
    }
    if rule == "schedule":
        lead = _startup_s(s)
        changes |= {"autoscaler.schedule.steps": plan(s, trace), "autoscaler.schedule.lead_s": lead}
    return changes


def _startup_s(s: Scenario) -> float:
    start = s.autoscaler.startup
    return start.provision_s + start.image_pull_s + start.weights_load_s + start.warmup_s


def plan(s: Scenario, trace: Trace | None = None) -> list[tuple[float, int]]:
    """[moment, replicas] of somebody who knows the traffic beforehand, though not its luck: the mean of the runs,
    minute by minute, on replicas loaded by 80 %.

    To be asked for ahead of each moment by as long as a start takes; what is still needed by then isn't taken away.
    """
    requests = [generate(s.traffic, s.run, s.run.seed + i, trace) for i in range(s.run.seeds)]
    each = capacity_rps(s, replica_model(s, prompts_at_once(s.batching, requests)), trace)
    if not each or not any(len(r) for r in requests):
        return []
    lead = _startup_s(s)
    ahead = ceil(lead / _SLOT_S) + 2  # the minute itself, those until a start is over, and one to be on the safe side
    demand = np.pad(_demand_rps(requests), (0, ahead - 1), mode="edge")
    need = np.lib.stride_tricks.sliding_window_view(demand, ahead).max(axis=1)
    low, high = max(s.autoscaler.min_replicas, 1), s.autoscaler.max_replicas
    counts = [min(max(ceil(rps / (_LOAD * each) - 1e-9), low), high) for rps in need.tolist()]
    steps = [(i * _SLOT_S + lead, count) for i, count in enumerate(counts) if i == 0 or count != counts[i - 1]]
    return steps[:1000]


def _demand_rps(requests: list[Requests]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(minutes,): work that comes, in mean requests per second, mean over runs."""
    arrival = np.concatenate([r.arrival_s for r in requests])
    work = np.concatenate([r.prompt_tokens - r.cached_prefix_tokens + r.output_tokens for r in requests])
    total = np.bincount((arrival // _SLOT_S).astype(np.int64), work / work.mean())
    return np.asarray(total / _SLOT_S / len(requests), np.float64)


def _fixed(s: Scenario, trace: Trace | None) -> dict[str, Any] | None:
    alone = s.replace({"autoscaler.policy": "none"})
    found = spare(alone, trace, seeds=s.run.seeds)
    return None if found is None else {"autoscaler.policy": "none"} | found.changes
