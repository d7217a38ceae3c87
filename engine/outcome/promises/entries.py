"""What a promise counts, apart from its threshold: attempts, or at the client requests, and the time that each took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.outcome.places import BETWEEN_TOKENS, asked_s, first_rows, last_rows
from engine.outcome.result import Result
from engine.outcome.spread import Floats
from engine.scenario import Objective
from engine.serving import COMPLETED, REJECTED, STATES, UNFINISHED


@dataclass(frozen=True, slots=True)
class Entries:
    """All entries that can count, seed after seed; (n,) each, seconds.

    Each is known, lost or pending: its time is known and counts; it is bad whatever the threshold; or it is under way
    and bad once it is as old as the threshold.
    """

    start: NDArray[np.int64]
    """(seeds + 1,): where each seed's entries begin."""
    asked_s: Floats
    """When its clock began."""
    took_s: Floats
    """``inf`` for the lost, ``nan`` for the pending."""
    age_s: Floats
    """At the end of its run; only of the pending."""


def entries(result: Result, objective: Objective) -> Entries:
    """The entries of a run, by the rules of `score`; the objective's own threshold plays no part."""
    a, metric = result.run.attempts, result.measured(objective)
    client = objective.measured_at == "client"
    first = first_rows(a) if client else np.arange(a.arrival_s.size)
    last = last_rows(a) if client else first
    state, took = a.state[last], metric[last]
    counted = result.counted[first]
    if objective.metric in BETWEEN_TOKENS:
        counted = counted & (a.output_tokens[last] > 1)
    failing = np.isin(state, [STATES.index(name) for name in objective.failures])
    if objective.measured_at == "server":
        failing &= state != REJECTED
    known = ~np.isnan(took) & ((state == COMPLETED) | (state == UNFINISHED))
    pending = ~known & failing & (state == UNFINISHED)
    if objective.metric in BETWEEN_TOKENS:  # being answered: how old it is says nothing of its gaps
        pending &= np.isnan(a.first_token_s[last])
    lost = ~known & failing & (state != UNFINISHED) & (state != COMPLETED)
    took = np.where(known, took, np.where(lost, np.inf, np.nan))
    chosen = np.flatnonzero(counted & (known | pending | lost))
    seed, asked = a.seed_index[first], asked_s(objective, a)[first]
    return Entries(
        start=np.searchsorted(seed[chosen], np.arange(a.seeds + 1)).astype(np.int64),
        asked_s=asked[chosen],
        took_s=took[chosen],
        age_s=(result.run.horizon_s[seed] - asked)[chosen],
    )
