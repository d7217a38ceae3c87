"""Promises (SLOs): how many requests count, and how many of those were good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scenario import Objective
from engine.serving import COMPLETED, REJECTED, STATES, UNFINISHED, Attempts

from .places import BETWEEN_TOKENS, asked_s, first_rows, last_rows
from .spread import Floats, half_width

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scored:
    """One objective against every attempt; at the client against every request, which stands at its first attempt."""

    valid: Bools
    """(n,): counts at all."""
    good: Bools
    """(n,): counts and kept the promise."""


@dataclass(frozen=True, slots=True)
class Attainment:
    """One objective's result over the window, pooled and by seed."""

    name: str
    attainment: float | None
    ci95: list[float] | None
    budget_burned: float | None
    met: bool | None
    per_seed: Floats
    """(seeds,): attainment of each seed, ``nan`` where nothing was valid."""
    good: int
    valid: int

    def as_summary(self) -> dict[str, object]:
        """The summary's entry."""
        return {
            "name": self.name, "attainment": self.attainment, "ci95": self.ci95, "budget_burned": self.budget_burned,
            "met": self.met,
        }  # fmt: skip


def score(objective: Objective, attempts: Attempts, metric: Floats, horizon_s: Floats) -> Scored:
    """Judge every attempt by ``objective``.

    ``metric`` (n,) holds the objective's metric in seconds as its place measures it, ``nan`` where it isn't known or
    not defined; ``horizon_s`` (seeds,) is when each seed's clock stopped. Good: known, within the threshold, and the
    attempt completed or still in the system. An unfinished attempt whose metric isn't known yet is left out while
    younger than the threshold, and of gaps between tokens while it is being answered: how old it is says nothing of
    them. One whose metric has no meaning (gaps in an answer of one token) is left out in every state.
    At the client the last attempt decides for all of its request, and age counts from the first.
    """
    state = attempts.state
    known = ~np.isnan(metric)
    failures = np.isin(state, [STATES.index(name) for name in objective.failures])
    if objective.measured_at == "server":
        failures &= state != REJECTED
    reached = (state == COMPLETED) | (state == UNFINISHED)
    age = np.repeat(horizon_s, np.diff(attempts.seed_start)) - asked_s(objective, attempts)
    pending = (state == UNFINISHED) & ~known
    valid = np.where(reached & known, True, failures & (state != COMPLETED))
    valid &= ~(pending & (age < objective.threshold_s))
    if objective.metric in BETWEEN_TOKENS:
        valid &= (attempts.output_tokens > 1) & ~(pending & ~np.isnan(attempts.first_token_s))
    good = reached & known & (metric <= objective.threshold_s) & valid
    return _by_request(attempts, valid, good) if objective.measured_at == "client" else Scored(valid, good)


def _by_request(attempts: Attempts, valid: Bools, good: Bools) -> Scored:
    """What became of each last attempt, written at the first one of its request: that is when the caller asked."""
    first, last = first_rows(attempts), last_rows(attempts)
    moved = np.zeros((2, valid.size), np.bool_)
    moved[0, first], moved[1, first] = valid[last], good[last]
    return Scored(moved[0], moved[1])


def attain(objective: Objective, scored: Scored, counted: Bools, seed_start: NDArray[np.int64]) -> Attainment:
    """Attainment over the attempts that are ``counted`` (n,): good / valid, ``None`` when nothing is valid."""
    valid = _by_seed(scored.valid & counted, seed_start)
    good = _by_seed(scored.good & counted, seed_start)
    with np.errstate(invalid="ignore"):
        per_seed = good / valid
    total, kept = int(valid.sum()), int(good.sum())
    if not total:
        return Attainment(objective.name, None, None, None, None, per_seed, 0, 0)
    share = kept / total
    half = half_width(per_seed)
    interval = None if half is None else [max(0.0, share - half), min(1.0, share + half)]
    budget = 1.0 - objective.target
    burned = (1.0 - share) / budget if budget > 0 else None
    return Attainment(objective.name, share, interval, burned, share >= objective.target, per_seed, kept, total)


def _by_seed(flags: Bools, seed_start: NDArray[np.int64]) -> Floats:
    total = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(total[seed_start[1:]] - total[seed_start[:-1]], np.float64)
