"""Short forms for examples worked by hand."""

from __future__ import annotations

from typing import Any

from tests.reference.invariants import check
from tests.reference.model import Outcome, Request, Setup
from tests.reference.simulator import simulate


def run(*requests: Request, **settings: Any) -> Outcome:
    """Simulate with steps of 1 s, unless told otherwise, and check the invariants on the way."""
    settings.setdefault("base", lambda tokens: 1.0)
    if settings.get("max_num_batched_tokens", 8192) < settings.get("max_num_seqs", 256):
        settings["max_num_seqs"] = settings["max_num_batched_tokens"]
    setup = Setup(**settings)
    outcome = simulate(setup, requests)
    check(setup, requests, outcome)
    return outcome


def scheduled(outcome: Outcome) -> list[float | None]:
    return [row.scheduled_s for row in outcome.requests]


def ends(outcome: Outcome) -> list[tuple[str | None, str | None, float | None]]:
    return [(row.state, row.reason, row.left_s) for row in outcome.requests]


def column(outcome: Outcome, name: str, replica: int = 0) -> list[Any]:
    return [getattr(step, name) for step in outcome.steps[replica]]
