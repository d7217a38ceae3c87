"""How far off step times usually are for a scenario: the errors that its verdicts and captions speak of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.machine.evidence import held_out_table, replica_evidence
from engine.scenario import Analytic, Scale, Scenario

_MOST = 0.9
"""A prediction that is too low by all of the truth isn't one."""


@dataclass(frozen=True, slots=True)
class StepTimeError:
    """Errors as shares: half of published deployments not used in the fit were within `median`, nine in ten in `p90`.

    `own_point`: with a correction by a measurement of the deployment's own, as far as that is known to help.
    """

    median: float
    p90: float
    own_point: bool


def step_time_error(s: Scenario) -> StepTimeError | None:
    """The errors of a scenario's class; None with a measured profile, whose errors nobody knows."""
    found = replica_evidence(s)
    if found is None or not isinstance(s.performance, Analytic):
        return None
    median, p90 = found.median_ape, found.p90_ape
    after = _after_own_point() if s.performance.scale != Scale() else None
    if after is not None:
        median, p90 = min(median, after[0]), min(p90, after[1])
    return StepTimeError(min(median / 100, _MOST), min(p90 / 100, _MOST), after is not None)


def _after_own_point() -> tuple[float, float] | None:
    rows = [row for row in held_out_table() if row["class"] == "after one own point" and "median_ape" in row]
    return (rows[0]["median_ape"], rows[0]["p90_ape"]) if rows else None
