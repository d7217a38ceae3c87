"""Settings that don't go together yet.

One rule a combination whose behaviour isn't built: a scenario that has it is refused, never simulated without a part
of it. When the behaviour lands, delete the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.scenario.errors import Problem, show

if TYPE_CHECKING:
    from engine.scenario.schema.document import Document


def _users_of_a_coupled_fleet(scenario: Document) -> Iterator[Problem]:
    """Closed loops whose replicas are tied together by the router or by clients who try again."""
    if scenario.traffic.process != "closed":
        return
    client, routing = scenario.traffic.client, scenario.fleet.routing
    if routing.policy not in {"round_robin", "random"}:
        yield _problem("fleet.routing.policy", routing.policy, "use round_robin or random, or another process")
    if client.max_retries:
        yield _problem("traffic.client.max_retries", client.max_retries, "use 0, or another process")
    if client.throttle is not None:
        yield _problem("traffic.client.throttle", client.throttle, "leave it out, or use another process")
    if scenario.autoscaler.policy != "none":
        yield _problem("autoscaler.policy", scenario.autoscaler.policy, "use none, or another process")


def _users_at_the_gateway(scenario: Document) -> Iterator[Problem]:
    """A gateway's limit in a closed loop, which ties the replicas together."""
    limit = scenario.admission.rate_limit
    if limit is not None and scenario.traffic.process == "closed":
        yield _problem("admission.rate_limit.rate_rps", limit.rate_rps, "use max_outstanding, or another process")


def _users_who_get_wordier(scenario: Document) -> Iterator[Problem]:
    """Growing lengths in a closed loop, whose requests have no times before they are made."""
    if scenario.traffic.growth is not None and scenario.traffic.process == "closed":
        yield _problem("traffic.growth", scenario.traffic.growth, "leave it out, or use another process")


def _actions_without_a_rate(scenario: Document) -> Iterator[Problem]:
    """Several calls an action where a trace or users who wait say which request comes when."""
    calls = scenario.traffic.client.fan_out
    if calls > 1 and scenario.traffic.process in {"closed", "trace"}:
        yield _problem("traffic.client.fan_out", calls, "use 1, or a process with a rate_rps")


def _static_disciplines(scenario: Document) -> Iterator[Problem]:
    """Orders of the queue for groups, which are formed by looking ahead in it."""
    kind = scenario.admission.discipline.kind
    if scenario.batching.policy == "static" and kind != "fifo":
        yield _problem("admission.discipline.kind", kind, "use fifo, or policy chunked or prefill_first")


def _pools_that_react(scenario: Document) -> Iterator[Problem]:
    """Two pools whose replicas would be tied together: by users, the router, clients who try again or an autoscaler."""
    if scenario.batching.policy != "disaggregated":
        return
    client, routing = scenario.traffic.client, scenario.fleet.routing
    other = "or batching.policy chunked, prefill_first or static"
    if scenario.traffic.process == "closed":
        yield _problem("traffic.process", "closed", f"use poisson, {other}")
    if routing.policy not in {"round_robin", "random"}:
        yield _problem("fleet.routing.policy", routing.policy, f"use round_robin or random, {other}")
    if client.max_retries:
        yield _problem("traffic.client.max_retries", client.max_retries, f"use 0, {other}")
    if client.throttle is not None:
        yield _problem("traffic.client.throttle", client.throttle, f"leave it out, {other}")
    if scenario.autoscaler.policy != "none":
        yield _problem("autoscaler.policy", scenario.autoscaler.policy, f"use none, {other}")


def _pipelines(scenario: Document) -> Iterator[Problem]:
    """What pipelines don't go with: split contexts, policies but ``chunked``, replicas tied together, other queues."""
    if scenario.parallelism.pp == 1:
        return
    client, admission, fleet = scenario.traffic.client, scenario.admission, scenario.fleet
    alone = "or parallelism.pp 1"
    if scenario.parallelism.cp > 1:
        yield _problem("parallelism.cp", scenario.parallelism.cp, f"use 1, {alone}")
    if scenario.parallelism.sp != "none":
        yield _problem("parallelism.sp", scenario.parallelism.sp, f"use none, {alone}")
    if scenario.batching.policy != "chunked":
        yield _problem("batching.policy", scenario.batching.policy, f"use chunked, {alone}")
    if scenario.traffic.process == "closed":
        yield _problem("traffic.process", "closed", f"use another process, {alone}")
    if fleet.routing.policy not in {"round_robin", "random"}:
        yield _problem("fleet.routing.policy", fleet.routing.policy, f"use round_robin or random, {alone}")
    if client.max_retries:
        yield _problem("traffic.client.max_retries", client.max_retries, f"use 0, {alone}")
    if client.throttle is not None:
        yield _problem("traffic.client.throttle", client.throttle, f"leave it out, {alone}")
    if scenario.autoscaler.policy != "none":
        yield _problem("autoscaler.policy", scenario.autoscaler.policy, f"use none, {alone}")
    if admission.shed is not None:
        yield _problem("admission.shed.ttft_s", admission.shed.ttft_s, f"use max_outstanding, {alone}")
    if admission.discipline.kind != "fifo":
        yield _problem("admission.discipline.kind", admission.discipline.kind, f"use fifo, {alone}")


NOT_YET_TOGETHER: tuple[Callable[[Document], Iterator[Problem]], ...] = (
    _static_disciplines,
    _users_of_a_coupled_fleet,
    _users_at_the_gateway,
    _users_who_get_wordier,
    _actions_without_a_rate,
    _pools_that_react,
    _pipelines,
)


def problems(scenario: Document) -> Iterator[Problem]:
    """One problem a setting that doesn't go with the others yet."""
    for rule in NOT_YET_TOGETHER:
        yield from rule(scenario)


def _problem(field: str, value: Any, instead: str) -> Problem:
    return Problem(field, show(_plain(value)), "is not available yet", instead)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
