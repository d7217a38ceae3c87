"""The fewest spare replicas with which a promise is kept until help arrives, and what they cost.

Spare replicas are there from the start and stay: ``fleet.replicas`` and ``autoscaler.min_replicas`` are raised
together. Every number is tried with the same requests (common random numbers), so that one replica more changes the
outcome and the draw doesn't; the answer is that of the promise's attainment over all runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from engine.machine import accelerators_of, hourly_price
from engine.outcome import demand
from engine.scenario import Scenario
from engine.traffic import Trace

from .candidates import with_spare
from .run import simulate
from .search import fewest

SEEDS = 8
"""Repetitions of the answer, unless the scenario has fewer."""
FEW_SEEDS = 2
"""Of the search before it, where twice as many would be more than are worth it."""
MOST_SPARE = 512


@dataclass(frozen=True, slots=True)
class Spare:
    """The fewest spare replicas, and what they do for the first promise and to the bill."""

    spare: int
    """0: the promise is kept as it is."""
    replicas: int
    """The fleet with them."""
    changes: dict[str, Any]
    """What `Scenario.replace` takes."""
    attainment: float
    """With them."""
    attainment_with_fewer: float | None
    """With one fewer; ``None`` for 0."""
    attainment_without: float
    cost: float | None
    """US dollars an hour with them, mean of the window; ``None`` without a price."""
    cost_without: float | None
    price: float | None
    """US dollars an hour of the spare replicas alone, which stay when the burst is over."""
    runs: int

    @property
    def more_per_hour(self) -> float | None:
        """What they add to the bill: less than their price where the autoscaler orders fewer for them."""
        return None if self.cost is None or self.cost_without is None else self.cost - self.cost_without


@dataclass(frozen=True, slots=True)
class _Trial:
    attainment: float
    met: bool
    cost: float | None
    short_of: int
    """Replicas that the highest demand of the first run needs beyond those that it began with."""


def spare(s: Scenario, trace: Trace | None = None, *, seeds: int = SEEDS, most: int = MOST_SPARE) -> Spare | None:
    """The fewest spare replicas for the first promise's target; ``None`` where ``most`` aren't enough, or there is
    nothing to judge.

    More replicas are taken to do no harm: the number is looked for around what the highest demand needs, by growing
    steps and bisection, on few runs where there are many, then settled with all of them: one fewer was seen to miss.
    Raises ``ScenarioError`` and ``TraceError`` as `simulate` does.
    """
    if not s.slo:
        return None
    runs = min(s.run.seeds, seeds)
    trials: dict[tuple[int, int], _Trial | None] = {}

    def tried(count: int, many: int) -> _Trial | None:
        if (count, many) not in trials:
            trials[count, many] = _try(s.replace({**with_spare(s, count), "run.seeds": many}), trace)
        return trials[count, many]

    def met(count: int, many: int) -> bool:
        found = tried(count, many)
        return found is not None and found.met

    without = tried(0, runs)
    if without is None:
        return None
    count = 0 if without.met else min(max(without.short_of, 1), most)
    if count:
        if runs > 2 * FEW_SEEDS:
            count = fewest(lambda n: met(n, FEW_SEEDS), count, most) or most
        settled = fewest(lambda n: met(n, runs), count, most)
        if settled is None:
            return None
        count = settled
    found, fewer = tried(count, runs), tried(count - 1, runs) if count else None
    assert found is not None
    return Spare(
        spare=count,
        replicas=s.replicas + count,
        changes=with_spare(s, count),
        attainment=found.attainment,
        attainment_with_fewer=None if fewer is None else fewer.attainment,
        attainment_without=without.attainment,
        cost=found.cost,
        cost_without=without.cost,
        price=_price(s, count),
        runs=runs,
    )


def _try(s: Scenario, trace: Trace | None) -> _Trial | None:
    result = simulate(s, trace)
    judged = result.attainments[0]
    if judged.attainment is None:
        return None
    course = demand(result.run, result.replicas, 0, result.capacity_rps or 1.0)
    needed = ceil(course.demand_rps.max(initial=0.0) / (result.capacity_rps or 1.0) - 1e-9)
    return _Trial(judged.attainment, bool(judged.met), result.cost.per_hour, needed - s.replicas)


def _price(s: Scenario, count: int) -> float | None:
    each = hourly_price(s)[0]
    return None if each is None else each * accelerators_of(s) * count
