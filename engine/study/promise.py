"""The fewest replicas that keep a promise, found with the engine itself.

Every number is tried with the same requests (common random numbers), so that one replica more changes the outcome and
the draw doesn't. The fleet is a fixed one: an autoscaler is switched off. The strictest threshold that the present
fleet keeps needs no further run: it is read off the one that there is (``engine.outcome.promises``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from engine.outcome import Result, demand
from engine.scenario import Scenario
from engine.traffic import Trace

from .run import simulate, simulate_together
from .search import fewest

FEW_SEEDS = 2
"""Repetitions of the search before the answer, where the scenario has more than twice as many and they cost more."""
MOST_REPLICAS = 512
_FEW_LANES = 64
"""Up to so many a round costs its NumPy calls, whatever the number."""
_FURTHER = 4
"""So many replicas around the answer are tried for its uncertainty."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a number of replicas does for the promise, over all runs."""

    replicas: int
    attainment: float
    ci95: tuple[float, float] | None
    """From the spread over runs; ``None`` with fewer than two."""
    runs_kept: int
    """Runs that keep it on their own."""
    cost: float | None
    """US dollars an hour; ``None`` without a price."""


@dataclass(frozen=True, slots=True)
class Fewest:
    """The fewest replicas with which the first promise's target is met over all runs."""

    replicas: int
    have: int
    """The scenario's own."""
    changes: dict[str, Any]
    """What `Scenario.replace` takes; empty where there are just so many."""
    perhaps: int | None
    """The fewest whose interval reaches the target; ``None`` with one run."""
    surely: int | None
    """The fewest whose whole interval does; ``None`` with one run, or where a few more don't suffice."""
    trials: tuple[Trial, ...]
    """Every number tried with all runs, ascending; the answer's and, above 1, that of one fewer are among them."""
    target: float
    runs: int

    def trial(self, replicas: int) -> Trial | None:
        """What a number of replicas does, if it was tried with all runs."""
        return next((trial for trial in self.trials if trial.replicas == replicas), None)


@dataclass(frozen=True, slots=True)
class _Tried:
    trial: Trial
    met: bool
    needed: int
    """Replicas that the highest demand of the first run keeps busy, retries left out."""


def fewest_replicas(s: Scenario, trace: Trace | None = None, *, most: int = MOST_REPLICAS) -> Fewest | None:
    """The fewest replicas for the first promise.

    ``None`` where ``most`` don't keep it, where there is nothing to judge, or two pools share them.

    More replicas are taken to do no harm. The number is looked for around what the highest demand needs, on few runs,
    then settled with all of them: one fewer was seen to miss. Raises ``ScenarioError`` and ``TraceError`` as `simulate`
    does.
    """
    if not s.slo or s.batching.policy == "disaggregated":
        return None
    runs = s.run.seeds
    few = FEW_SEEDS if runs > 2 * FEW_SEEDS and not _all_at_once(s) else runs
    known: dict[tuple[int, int], _Tried | None] = {}

    def tried(count: int, many: int) -> _Tried | None:
        if (count, many) not in known:
            # Those beside it will be asked for, and cost little more in the same run of the engine.
            beside = 0 if _ties(s) or count * many > _FEW_LANES else 1
            near = range(max(count - beside, 1), min(count + beside, most) + 1)
            missing = [n for n in near if (n, many) not in known]
            fleets = [s.replace({**_changes(s, n), "run.seeds": many}) for n in missing]
            results = simulate_together(fleets, trace) if beside else [simulate(fleets[0], trace)]
            known.update(zip([(n, many) for n in missing], map(_judged, results), strict=True))
        return known[count, many]

    def met(count: int, many: int) -> bool:
        found = tried(count, many)
        return found is not None and found.met

    have = min(s.fleet.replicas, most)
    first = tried(have, few)
    if first is None:
        return None
    guess: int | None = have if first.met and few == runs else min(max(first.needed, 1), most)
    if few < runs:
        guess = fewest(lambda n: met(n, few), guess or 1, most)
    found = fewest(lambda n: met(n, runs), guess or most, most)
    if found is None:
        return None
    perhaps, surely = _range(lambda n: tried(n, runs), found, most, s.slo[0].target)
    trials = [entry.trial for (_, many), entry in sorted(known.items()) if many == runs and entry is not None]
    same = found == s.fleet.replicas and s.autoscaler.policy == "none"
    changes = {} if same else _changes(s, found)
    return Fewest(found, s.fleet.replicas, changes, perhaps, surely, tuple(trials), s.slo[0].target, runs)


def _all_at_once(s: Scenario) -> bool:
    """Whether few runs take about as long as all: with few lanes, or where all replicas wait for one another."""
    return _ties(s) or s.run.seeds * s.fleet.replicas <= _FEW_LANES


def _ties(s: Scenario) -> bool:
    """Whether replicas wait for one another again and again, or for their users."""
    client, routing = s.traffic.client, s.fleet.routing.policy
    waits = client.max_retries or client.throttle is not None or routing not in ("round_robin", "random")
    return bool(waits) or s.traffic.process == "closed"


def _changes(s: Scenario, count: int) -> dict[str, Any]:
    """A fixed fleet of so many."""
    off = {} if s.autoscaler.policy == "none" else {"autoscaler.policy": "none"}
    return {"fleet.replicas": count, **off}


def _range(
    tried: Callable[[int], _Tried | None], found: int, most: int, target: float
) -> tuple[int | None, int | None]:
    """(perhaps, surely) around the number found."""

    def interval(count: int) -> tuple[float, float] | None:
        entry = tried(count)
        return None if entry is None else entry.trial.ci95

    if interval(found) is None:
        return None, None
    perhaps = found
    while perhaps > 1 and found - perhaps < _FURTHER and (at := interval(perhaps - 1)) is not None and at[1] >= target:
        perhaps -= 1
    for surely in range(found, min(found + _FURTHER, most) + 1):
        at = interval(surely)
        if at is not None and at[0] >= target:
            return perhaps, surely
    return perhaps, None


def _judged(result: Result) -> _Tried | None:
    s, judged = result.scenario, result.attainments[0]
    if judged.attainment is None:
        return None
    each = result.capacity_rps or 1.0
    # What a fleet that is too small makes of it by retries wouldn't be there with enough.
    peak = demand(result.run, result.replicas, 0, each, retries=False).demand_rps.max(initial=0.0)
    kept = judged.per_seed[~np.isnan(judged.per_seed)] >= s.slo[0].target
    interval = None if judged.ci95 is None else (judged.ci95[0], judged.ci95[1])
    trial = Trial(s.fleet.replicas, judged.attainment, interval, int(kept.sum()), result.cost.per_hour)
    return _Tried(trial, bool(judged.met), ceil(float(peak) / each - 1e-9))
