"""What a worker process does: from a scenario to its story, or to what would help.

Imports no Streamlit, so that a worker starts quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from engine.machine import replica_model
from engine.outcome.fan_out import FanOut, fan_out
from engine.outcome.story import Story, story
from engine.outcome.where import By, Where, where
from engine.placement import Addition, Packing, Problem, Solution, add_replica, most_placed, solve, why_not
from engine.scenario import Scenario, ScenarioError
from engine.study import (
    Fewest,
    Grouped,
    Layout,
    LayoutOutcome,
    LoadCurve,
    PolicyName,
    PolicyOutcome,
    Read,
    RuleName,
    RuleOutcome,
    Sized,
    Spare,
    Suggestion,
    Tried,
    Way,
    fewest_replicas,
    grouped,
    layout_outcomes,
    load_curve,
    policy_outcome,
    remember_capacity,
    rule_outcome,
    simulate,
    sized,
    spare,
    suggest,
    try_way,
    ways,
    with_cached,
    with_chunks,
)
from engine.traffic import Fit, Trace, fit

REQUESTS_PER_LANE = 200
"""Of a first answer: a run's time follows the requests of a replica, hardly the number of replicas and repetitions."""


def whole(scenario: Scenario, trace: Trace | None = None) -> Story:
    """The story of the whole run. Raises `ScenarioError` and `TraceError`."""
    return story(simulate(scenario, trace), scenario)


def beginning(scenario: Scenario, trace: Trace | None = None) -> Story:
    """The story of the beginning of each run, with a warm-up that leaves something to count; nothing on its terms, for
    which a slider would have to wait."""
    shorter = scenario.replace({"run.warmup_s": min(scenario.run.warmup_s, round(beginning_s(scenario, trace) / 4, 3))})
    return story(simulate(shorter, trace, requests_per_lane=REQUESTS_PER_LANE), scenario, with_terms=False)


def suggestions(scenario: Scenario, trace: Trace | None = None) -> tuple[Suggestion, ...]:
    """The changes that help most. Raises `ScenarioError` and `TraceError`."""
    return suggest(scenario, trace)


def ways_of(scenario: Scenario, trace: Trace | None = None) -> tuple[Way, ...]:
    """The ways of saying no that there are. Raises `ScenarioError` and `TraceError`."""
    return ways(scenario, trace)


def tried(scenario: Scenario, way: Way, each_rps: float | None, trace: Trace | None = None) -> Tried:
    """What one of them does. `each_rps`: what one replica can serve. Raises `ScenarioError` and `TraceError`."""
    remember_capacity(scenario, each_rps, trace)
    return try_way(scenario, way, trace)


def spare_of(scenario: Scenario, each_rps: float | None, trace: Trace | None = None) -> Spare | None:
    """The spare replicas that would have kept the promise. `each_rps`: what one replica can serve.

    Raises `ScenarioError` and `TraceError`.
    """
    remember_capacity(scenario, each_rps, trace)
    return spare(scenario, trace)


def fewest_of(scenario: Scenario, each_rps: float | None, trace: Trace | None = None) -> Fewest | None:
    """The fewest replicas that keep the first promise. Arguments and errors as of `spare_of`."""
    remember_capacity(scenario, each_rps, trace)
    return fewest_replicas(scenario, trace)


def ruled(scenario: Scenario, rule: RuleName, each_rps: float | None, trace: Trace | None = None) -> RuleOutcome | None:
    """What becomes of the scenario under an autoscaler's rule. Arguments and errors as of `spare_of`."""
    remember_capacity(scenario, each_rps, trace)
    return rule_outcome(scenario, rule, trace)


def taken_apart(scenario: Scenario, trace: Trace | None = None) -> tuple[dict[By, Where], FanOut]:
    """The whole run again, with an account of where seconds go; pipelines keep none. Raises `ScenarioError` and
    `TraceError`."""
    result = simulate(scenario, trace, waits=True)
    if result.run.stages > 1:
        return {}, fan_out(result)
    return {"e2e": where(result), "ttft": where(result, "ttft")}, fan_out(result)


def load_of(scenario: Scenario, each_rps: float | None, trace: Trace | None = None) -> LoadCurve | None:
    """Waits by load. Arguments and errors as of `spare_of`."""
    remember_capacity(scenario, each_rps, trace)
    return load_curve(scenario, trace)


def chunked(scenario: Scenario, tokens: int, trace: Trace | None = None) -> Read:
    """Another token budget of a step. Raises `ScenarioError` and `TraceError`."""
    return with_chunks(scenario, tokens, trace)


def under_policy(scenario: Scenario, policy: PolicyName, trace: Trace | None = None) -> PolicyOutcome | str:
    """Another batching policy, or why it doesn't go with the scenario's other settings. Raises `TraceError`."""
    try:
        return policy_outcome(scenario, policy, trace)
    except ScenarioError as error:
        return str(error.problems[0])


def cached(scenario: Scenario, share: float) -> Read:
    """A share of every prompt cached. Raises `ScenarioError`."""
    return with_cached(scenario, share)


def grouped_of(scenario: Scenario, trace: Trace | None = None) -> Grouped:
    """The groups over the run, and both ways of grouping. Raises `ScenarioError` and `TraceError`."""
    return grouped(scenario, trace)


def sized_of(scenario: Scenario, trace: Trace | None = None) -> Sized | None:
    """Fleets sized for the average and for the worst minute. Raises `ScenarioError` and `TraceError`."""
    return sized(scenario, trace)


def fit_of(trace: Trace) -> Fit | None:
    """A process and lengths that resemble a trace."""
    return fit(trace)


def laid_out(scenario: Scenario, several: Sequence[Layout], trace: Trace | None = None) -> list[LayoutOutcome]:
    """What becomes of the scenario's traffic on some layouts. Raises `ScenarioError` and `TraceError`."""
    return layout_outcomes(scenario, several, trace)


def placed(problem: Problem) -> tuple[Solution, Packing, str]:
    """The cheapest packing; without one as much as finds a place, and why not everything does."""
    found = solve(problem)
    if found.packing is not None:
        return found, found.packing, ""
    return found, most_placed(problem), why_not(found)


def one_more(problem: Problem, packing: Packing, item: int) -> Addition:
    """One more replica of an item, with and without moving the others."""
    return add_replica(problem, packing, item)


def beginning_s(scenario: Scenario, trace: Trace | None = None) -> float:
    """About how much of each run the beginning is, seconds."""
    wanted = REQUESTS_PER_LANE * scenario.replicas
    traffic, horizon = scenario.traffic, scenario.run.horizon_s
    if traffic.process == "trace" and trace is not None:
        times = trace.arrival_s
        return float(times[min(wanted, times.size - 1)]) / traffic.trace.speed
    low, high = 0.0, horizon or 0.0
    for _ in range(30):
        middle = (low + high) / 2
        below = _rate_rps(scenario) * traffic.shape.mean_factor(middle) * middle < wanted
        low, high = (middle, high) if below else (low, middle)
    return high


def expected_requests(scenario: Scenario, trace: Trace | None = None) -> float:
    """About how many requests the whole run simulates, all repetitions together."""
    run, traffic = scenario.run, scenario.traffic
    if traffic.process == "trace":
        return float(run.seeds * len(trace)) if trace is not None else 0.0
    horizon = run.horizon_s or 0.0
    return _rate_rps(scenario) * traffic.shape.mean_factor(horizon) * horizon * run.seeds


def refuse_unfit(scenario: Scenario) -> None:
    """Raise `ScenarioError` for a model that doesn't fit its machines, before anybody waits for a run."""
    replica_model(scenario)


def rounds(scenario: Scenario) -> float:
    """About how often in a run all replicas wait for each other, because clients or the router look at them.

    The beginning of such a run isn't shown first: retries make it as slow as the whole, and the story is in the end. An
    autoscaler's help isn't in the beginning either. Lanes of a pipeline wait for each other at every step.
    """
    client, routing, horizon = scenario.traffic.client, scenario.fleet.routing, scenario.run.horizon_s or 0.0
    if scenario.autoscaler.policy != "none" or scenario.parallelism.pp > 1:
        return inf
    seen: list[float] = []
    if client.max_retries:
        seen.append(min(max(client.backoff_s / 10, 0.02), 0.25))
    if client.throttle is not None:
        seen.append(min(max(client.throttle.window_s / 100, 0.05), 1.0))
    if routing.policy in ("least_outstanding", "power_of_two", "least_kv"):
        seen.append(routing.report_interval_s or 1.0 / _rate_rps(scenario))
    return horizon / min(seen) if seen else 0.0


def _rate_rps(scenario: Scenario) -> float:
    """The rate before the shape; of a fixed number of users, what they can bring at most when an answer takes 1 s."""
    traffic = scenario.traffic
    if traffic.process == "closed":
        return traffic.closed.users / (traffic.closed.think_s + 1.0)
    return traffic.rate_rps
