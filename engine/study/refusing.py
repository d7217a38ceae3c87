"""Ways of saying no, each on its own, tried with the same requests: what each does for those who come.

A way takes the place of whatever the scenario does about admission, so that they can be told apart. All run over the
same seconds with the same seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from engine.machine import replica_model
from engine.outcome import Fates, bins_of, overload
from engine.scenario import Client, Scenario, ScenarioError
from engine.traffic import Trace

from .capacity import capacity_rps
from .run import simulate
from .saturated import group_size
from .suggest import shortened

Kind = Literal[
    "now", "everybody", "shed", "queue_timeout", "cap", "codel", "lifo", "rate_limit", "throttle", "budget", "abort"
]
"""now: the scenario as it is. everybody: nobody is refused. shed: by predicted time to the first word. cap: on a
replica's requests. codel and lifo: orders of the queue. rate_limit: at the gateway. throttle: clients hold back when a
cap refuses. budget: of retries. abort: the server notices that callers have left."""

REQUESTS_PER_REPLICA = 600
SEEDS = 8
_OFF: dict[str, Any] = {
    "admission.max_outstanding": None,
    "admission.max_queued_tokens": None,
    "admission.queue_timeout_s": None,
    "admission.rate_limit": None,
    "admission.shed": None,
    "admission.discipline": {"kind": "fifo"},
    "traffic.client.throttle": None,
}
_CAPS = (0.25, 0.5, 0.75, 1.0, 1.4, 2.0)
"""Caps that are tried, as multiples of the requests that a busy replica works on."""
_USUAL_S = 2.0
"""Where nothing is promised about the wait for the first word."""
_UNDER_CAPACITY = 0.95
"""Rate limit, of what the fleet can serve: waits need some slack to stay short."""
_BURST_S = 1.0
_GENEROSITY = 2.0
"""Google's K (Beyer et al., Site Reliability Engineering, 2016, chapter 21)."""
_BUDGET = 0.1
"""Retries for each first attempt, the same book's per-client budget."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of saying no: what `Scenario.replace` takes, and the setting that it is about, for a label."""

    kind: Kind
    changes: dict[str, Any]
    value: float | None = None
    """Seconds, requests, a rate or a ratio, by kind; ``None`` for kinds without one."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a way does."""

    way: Way
    fates: Fates
    goodput_rps: float
    first_rps: float
    end_share: float | None
    """Answers in time for each request in the last quarter of the runs."""
    attempts: float | None
    """For each request."""
    wasted: float | None
    """Share of the tokens worked on that were late or for nothing; ``None`` when nothing was worked on."""
    runs: int
    horizon_s: float


def ways(s: Scenario, trace: Trace | None = None) -> tuple[Way, ...]:
    """Every way that this scenario can take, the present one first; those that can't be set up, and refusing
    nobody where that is the present one, are left out.

    Caps come last, several of them, from the smallest on: which is best can only be found by trying. Raises
    ``ScenarioError`` and ``TraceError`` as `simulate` does.
    """
    model = replica_model(s)
    rate, group = capacity_rps(s, model, trace), group_size(s, model, trace)
    found = [Way("now", {}), Way("everybody", _OFF), *_by_promise(s)]
    if rate:
        limit = float(f"{_UNDER_CAPACITY * rate * s.replicas:.3g}")
        bucket = {"rate_rps": limit, "burst": max(1.0, round(_BURST_S * limit))}
        found.append(Way("rate_limit", _OFF | {"admission.rate_limit": bucket}, limit))
    if group:
        cap = {"admission.max_outstanding": max(1, round(0.85 * group))}
        if s.traffic.client.max_retries:
            found.append(Way("throttle", _OFF | cap | {"traffic.client.throttle": {"k": _GENEROSITY}}, _GENEROSITY))
    found += _by_clients(s.traffic.client)
    if group:
        sizes = sorted({max(1, round(part * group)) for part in _CAPS})
        found += [Way("cap", _OFF | {"admission.max_outstanding": size}, size) for size in sizes]
    return tuple(way for way in found if _possible(s, way) and not (way.kind == "everybody" and s.replace(_OFF) == s))


def _by_promise(s: Scenario) -> list[Way]:
    """Limits on the wait, from what is promised: half of it for waiting leaves half for the prompt."""
    promised = [o.threshold_s for o in s.slo if o.metric in ("ttft", "queue") and o.threshold_s > 0]
    wait = min(promised, default=_USUAL_S)
    half, most = float(f"{0.5 * wait:.2g}"), float(f"{0.8 * wait:.2g}")
    codel = {"kind": "codel", "target_s": half, "interval_s": 10 * half}
    return [
        Way("shed", _OFF | {"admission.shed": {"ttft_s": half}}, half),
        Way("queue_timeout", _OFF | {"admission.queue_timeout_s": most}, most),
        Way("codel", _OFF | {"admission.discipline": codel}, half),
        Way("lifo", _OFF | {"admission.discipline": {"kind": "adaptive_lifo", "after_s": wait}}, wait),
    ]


def _by_clients(client: Client) -> list[Way]:
    found = []
    if client.max_retries and (client.retry_budget_ratio is None or client.retry_budget_ratio > _BUDGET):
        found.append(Way("budget", _OFF | {"traffic.client.retry_budget_ratio": _BUDGET}, _BUDGET))
    if client.on_timeout == "ignore" and (client.timeout_s is not None or client.ttft_timeout_s is not None):
        found.append(Way("abort", _OFF | {"traffic.client.on_timeout": "abort"}))
    return found


def _possible(s: Scenario, way: Way) -> bool:
    try:
        s.replace(way.changes)
    except ScenarioError:
        return False
    return True


def try_way(s: Scenario, way: Way, trace: Trace | None = None) -> Tried:
    """What a way does in the beginning of a scenario's runs, or in all of them where they are short.

    Raises ``ScenarioError`` and ``TraceError`` as `simulate` does.
    """
    short = shortened(s, trace, REQUESTS_PER_REPLICA, SEEDS)
    result = simulate(short.replace(way.changes), trace)
    horizon = float(result.run.horizon_s.max(initial=0.0))
    facts = overload(result, bins_of(horizon))
    spent = facts.spent
    return Tried(
        way=way,
        fates=facts.fates,
        goodput_rps=facts.goodput_rps,
        first_rps=facts.first_rps,
        end_share=facts.end.share,
        attempts=facts.attempts,
        wasted=(spent.late + spent.for_nothing) / spent.total if spent.total else None,
        runs=result.run.attempts.seeds,
        horizon_s=horizon,
    )
