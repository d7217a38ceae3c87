"""Would the verdict be another if every step took somewhat longer or shorter? Estimated from a result, without a run.

Of a request's time, what it waits in the queue changes with the backlog, the rest in proportion to the steps. The
backlog is that of one server with the fleet's capacity, before and after, under the run's own arrivals; how much of it
running requests take in before anybody queues is read off the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.scenario import Objective
from engine.serving import REJECTED

from .busiest import busiest
from .objectives import attain, score
from .places import before_s
from .result import Result
from .spread import Floats

_QUEUED_S = 0.5
"""Who is taken sooner has waited for a step to end, not in a queue."""
_ABSORBED = 0.95
"""Quantile of the backlogs met by those who didn't queue that counts as what running requests take in."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Which judgements about a promise would turn, were every step a little longer or shorter."""

    overall: bool = False
    """Whether it is kept over the whole run."""
    busiest: bool = False
    """Whether it is kept in the busiest minutes."""
    overload: bool = False
    """Whether more arrives than can be served."""


def doubt(
    result: Result, objective: Objective, offered_rps: float | None, fleet_rps: float | None, off: float
) -> Doubt:
    """What would turn if predicted step times were `off` (a share of the truth, below 1) too high or too low."""
    now = shares_in_time(result, objective, fleet_rps, 1.0)
    overall = busy = overload = False
    for factor in (1 / (1 + off), 1 / (1 - off)):
        then = shares_in_time(result, objective, fleet_rps, factor)
        overall |= _kept(now[0], objective) != _kept(then[0], objective)
        busy |= _kept(now[1], objective) != _kept(then[1], objective)
        if offered_rps is not None and fleet_rps:
            overload |= (offered_rps > fleet_rps) != (offered_rps > fleet_rps / factor)
    return Doubt(overall, busy, overload)


def _kept(share: float | None, objective: Objective) -> bool:
    return share is None or share >= objective.target


def shares_in_time(
    result: Result, objective: Objective, fleet_rps: float | None, factor: float
) -> tuple[float | None, float | None]:
    """Share of requests in time with all steps `factor` times as long: overall, and in the busiest minutes.

    None where there is nothing to judge. Of refused requests, a served share s becomes s / `factor`, at most 1.
    """
    before = before_s(objective, result.run.attempts, result.scenario.traffic.client.network_rtt_s)
    metric = scaled_metric(result, objective.metric, fleet_rps, factor) + before
    scored = score(objective, result.run.attempts, metric, result.run.horizon_s)
    overall = attain(objective, scored, result.counted, result.run.attempts.seed_start).attainment
    worst = busiest(result, scored)
    then = None if worst is None or worst.broken is None else 1.0 - worst.broken
    counts = "rejected" in objective.failures and objective.measured_at != "server"
    more = _served_more(result, factor) if counts else 1.0
    return tuple(None if share is None else min(1.0, share * more) for share in (overall, then))  # type: ignore[return-value]


def scaled_metric(result: Result, name: str, fleet_rps: float | None, factor: float) -> Floats:
    """(attempts,): an objective's metric with all steps `factor` times as long, seconds; `nan` as before."""
    metric = result.metric(name)
    if name in ("tpot", "max_itl"):
        return metric * factor
    queue = np.nan_to_num(result.queue_s)
    return (metric - queue) * factor + _scaled_queue(result, queue, fleet_rps, factor)


def _scaled_queue(result: Result, queue: Floats, fleet_rps: float | None, factor: float) -> Floats:
    """(attempts,): waits in the queue; in proportion where arrivals follow the answers or refusals bound the queue."""
    bounded = result.scenario.traffic.process == "closed" or bool((result.run.attempts.state == REJECTED).any())
    if bounded or not fleet_rps:
        return queue * factor
    before, after = (backlog_s(result, each / fleet_rps) for each in (1.0, factor))
    free = queue < _QUEUED_S
    absorbed = float(np.quantile(before[free], _ABSORBED)) if free.any() else 0.0
    grown = after - np.where(free, np.maximum(before, absorbed), before)
    return np.maximum(0.0, np.where(free & (grown < 0), queue * factor, queue + grown))


def backlog_s(result: Result, work_s: float) -> Floats:
    """(attempts,): seconds of work before each arrival of its seed, for a server that needs `work_s` a request."""
    a = result.run.attempts
    found = np.zeros(a.arrival_s.size)
    for start, end in zip(a.seed_start[:-1], a.seed_start[1:], strict=True):
        if start == end:
            continue
        order = start + np.argsort(a.arrival_s[start:end], kind="stable")
        net = work_s * np.arange(order.size) - a.arrival_s[order]
        found[order] = net - np.minimum.accumulate(net)
    return found


def _served_more(result: Result, factor: float) -> float:
    state = result.run.attempts.state[result.counted]
    served = 1.0 - float((state == REJECTED).mean()) if state.size else 1.0
    return min(1.0, served / factor) / served if 0 < served < 1 else 1.0
