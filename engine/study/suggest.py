"""Which one change helps the promise most: changes that fit the situation, each simulated with the same requests.

The present scenario and every changed one run over the same seconds with the same seeds, so that the difference is the
change's and not the draw's; a change whose gain isn't larger than its own spread over runs counts as none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.machine import replica_model
from engine.outcome import Result, half_width, quantile
from engine.scenario import Scenario, ScenarioError
from engine.traffic import Trace, generate

from .candidates import Candidate, Kind, Situation, candidates
from .capacity import capacity_rps
from .run import simulate

REQUESTS_PER_REPLICA = 600
SEEDS = 16
_MOST_REQUESTS = 60_000
"""Of one scenario, all runs together: a large fleet gets fewer runs."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change, and what it does to the first promise and to the bill."""

    kind: Kind
    changes: dict[str, Any]
    """What `Scenario.replace` takes."""
    before: float | str | None
    """The setting's value, for a label; `None` where it was off."""
    after: float | str
    attainment_before: float
    attainment_after: float
    cost_before: float | None
    """US dollars an hour; ``None`` without a price."""
    cost_after: float | None
    runs: int
    """Repetitions behind the two shares."""
    horizon_s: float
    """Simulated seconds of each."""

    @property
    def gain(self) -> float:
        """How much more of the requests are in time; negative when fewer."""
        return self.attainment_after - self.attainment_before


def suggest(
    s: Scenario,
    trace: Trace | None = None,
    *,
    most: int = 3,
    requests_per_replica: int = REQUESTS_PER_REPLICA,
    seeds: int = SEEDS,
) -> tuple[Suggestion, ...]:
    """At most ``most`` changes, each of another kind, the one that gains most first.

    When the promise is kept, what it leaves room for comes after what makes it better: fewer machines, more traffic, a
    stricter promise.
    Empty without a promise, and when nothing can be judged. Raises ``ScenarioError`` and ``TraceError`` as `simulate`
    does for the present scenario; changes that can't run are left out.
    """
    if not s.slo:
        return ()
    short = shortened(s, trace, requests_per_replica, seeds)
    now = simulate(short, trace)
    if now.attainments[0].attainment is None:
        return ()
    situation = Situation(short, now.model, now.capacity_rps, bool(now.attainments[0].met), _kept_s(now))
    found: list[tuple[bool, Suggestion]] = []
    for candidate in candidates(situation):
        try:
            then = simulate(short.replace(candidate.changes), trace)
        except ScenarioError:
            continue
        helps = _gain(now, then)
        told = _suggestion(candidate, now, then)
        if told is not None and (helps or (candidate.leaves_room and then.attainments[0].met)):
            found.append((helps, told))
    found.sort(key=lambda entry: (not entry[0], -entry[1].gain))
    best: dict[Kind, Suggestion] = {}
    for _, suggestion in found:
        best.setdefault(suggestion.kind, suggestion)
    return tuple(best.values())[:most]


def shortened(s: Scenario, trace: Trace | None, requests_per_replica: int, seeds: int) -> Scenario:
    """The beginning of a scenario: as many requests a replica and as many seeds, a warm-up that leaves most of it.

    What depends on the whole run's length (growing lengths, a ramp, an autoscaler's help) keeps that length.
    """
    most = requests_per_replica * s.replicas
    seeds = min(s.run.seeds, seeds, max(2, _MOST_REQUESTS // most))
    if s.traffic.growth is not None or s.traffic.shape.kind == "ramp" or s.autoscaler.policy != "none":
        return s.replace({"run.seeds": seeds})
    horizon = s.run.horizon_s
    if s.traffic.process == "closed":  # users ask no faster than they are answered
        rate = capacity_rps(s, replica_model(s))
        end = s.traffic.closed.ramp_s + (requests_per_replica / rate if rate else np.inf)
    else:
        arrivals = generate(s.traffic, s.run, s.run.seed, trace).arrival_s
        if arrivals.size <= most:
            return s.replace({"run.seeds": seeds})
        end = float(arrivals[most])
    end = min(max(end, 1.0), np.inf if horizon is None else horizon)
    return s.replace({"run.seeds": seeds, "run.horizon_s": end, "run.warmup_s": min(s.run.warmup_s, end / 4)})


def _kept_s(result: Result) -> float | None:
    """The time within which the promised share of those who were answered had what is promised."""
    objective = result.scenario.slo[0]
    values = result.measured(objective)[result.observed]
    time_s = quantile(np.sort(values[~np.isnan(values)]), objective.target)
    return None if np.isnan(time_s) else time_s


def _gain(now: Result, then: Result) -> bool:
    """Whether more is in time, by more than the spread of the difference over runs."""
    a, b = now.attainments[0], then.attainments[0]
    if a.attainment is None or b.attainment is None:
        return False
    gain, difference = b.attainment - a.attainment, b.per_seed - a.per_seed
    return gain > (half_width(difference[~np.isnan(difference)]) or 0.0)


def _suggestion(candidate: Candidate, now: Result, then: Result) -> Suggestion | None:
    before, after = now.attainments[0].attainment, then.attainments[0].attainment
    if before is None or after is None:
        return None
    return Suggestion(
        kind=candidate.kind,
        changes=candidate.changes,
        before=candidate.before,
        after=candidate.after,
        attainment_before=before,
        attainment_after=after,
        cost_before=now.cost.per_hour,
        cost_after=then.cost.per_hour,
        runs=now.scenario.run.seeds,
        horizon_s=float(now.run.horizon_s.max()),
    )
