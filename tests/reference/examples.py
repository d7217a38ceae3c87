"""Short forms for examples worked by hand."""

from __future__ import annotations

from typing import Any

from tests.reference.draws import Draws
from tests.reference.invariants import check
from tests.reference.model import Outcome, Request, Setup
from tests.reference.simulator import simulate


def run(*requests: Request, draws: Draws | None = None, **settings: Any) -> Outcome:
    """Simulate with steps of 1 s, unless told otherwise, and check the invariants on the way."""
    settings.setdefault("base", lambda tokens: 1.0)
    if settings.get("max_num_batched_tokens", 8192) < settings.get("max_num_seqs", 256):
        settings["max_num_seqs"] = settings["max_num_batched_tokens"]
    setup = Setup(**settings)
    outcome = simulate(setup, requests, draws)
    check(setup, requests, outcome)
    return outcome


def scheduled(outcome: Outcome) -> list[float | None]:
    return [row.scheduled_s for row in outcome.requests]


def ends(outcome: Outcome) -> list[tuple[str | None, str | None, float | None]]:
    return [(row.state, row.reason, row.left_s) for row in outcome.requests]


def column(outcome: Outcome, name: str, replica: int = 0) -> list[Any]:
    return [getattr(step, name) for step in outcome.steps[replica]]


def replicas(outcome: Outcome) -> list[int | None]:
    return [row.replica for row in outcome.requests]


def attempts(outcome: Outcome) -> list[tuple[int, int, float | None, str | None]]:
    return [(row.request, row.attempt, row.arrival_s, row.reason or row.state) for row in outcome.requests]
