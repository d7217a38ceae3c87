"""What becomes of a scenario's groups: over the run, and with groups that start and end together instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.outcome import GroupCourse, Result, group_course
from engine.scenario import Scenario
from engine.traffic import Trace

from .run import simulate
from .suggest import shortened

COURSE_SEEDS = 4
REQUESTS_PER_REPLICA = 600
SEEDS = 2


@dataclass(frozen=True, slots=True)
class Served:
    """One way of grouping the same traffic; seconds, None where nothing was measured."""

    policy: str
    capacity_rps: float | None
    """Requests per second of one replica that always has a queue."""
    tokens_per_s: float | None
    """Output tokens per second of the fleet, as the traffic comes."""
    mean_group: float | None
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    itl_p50_s: float | None
    itl_p99_s: float | None
    answered: int
    offered: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """The scenario's own course, and both ways of grouping."""

    course: GroupCourse
    continuous: Served
    """Who comes joins the running group; the scenario's own policy, or ``chunked`` where that is ``static``."""
    static: Served
    """A group starts and ends together."""
    runs: int
    horizon_s: float


def grouped(s: Scenario, trace: Trace | None = None) -> Grouped:
    """Simulate them: the whole length for the course; for the two ways the beginning, with the same requests and
    without an autoscaler.

    Raises ``ScenarioError`` and ``TraceError`` as `simulate` does.
    """
    course = group_course(simulate(s.replace({"run.seeds": min(s.run.seeds, COURSE_SEEDS)}), trace))
    short = shortened(s.replace({"autoscaler.policy": "none"}), trace, REQUESTS_PER_REPLICA, SEEDS)
    own = s.batching.policy
    ways = [_served(short.replace(change), trace) for change in (_continuous(own), _STATIC)]
    (continuous, result), (static, _) = ways
    return Grouped(course, continuous, static, result.run.attempts.seeds, float(result.run.horizon_s.max(initial=0.0)))


_STATIC: dict[str, Any] = {"batching.policy": "static", "admission.discipline": {"kind": "fifo"}}


def _continuous(own: str) -> dict[str, Any]:
    return {"batching.policy": "chunked" if own == "static" else own}


def _served(s: Scenario, trace: Trace | None) -> tuple[Served, Result]:
    result = simulate(s, trace)
    summary: dict[str, Any] = result.summary()
    ttft, itl, states = summary["latency_s"]["ttft"], summary["latency_s"]["itl"], summary["requests"]
    served = Served(
        policy=s.batching.policy,
        capacity_rps=result.capacity_rps,
        tokens_per_s=result.throughput["output_tokens_per_s"],
        mean_group=result.usage.mean_batch,
        ttft_p50_s=ttft["p50"],
        ttft_p95_s=ttft["p95"],
        itl_p50_s=itl["p50"],
        itl_p99_s=itl["p99"],
        answered=states["completed"],
        offered=states["offered"],
    )
    return served, result
