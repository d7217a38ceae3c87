"""Random cases of the reference as runs of several seeds, and the figures that its rows and steps say they have."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from engine.outcome import Meter, Result
from engine.scenario import Scenario
from engine.serving import StepLog, run_fleet
from tests.reference.model import Outcome, Request, Row, Setup, Step
from tests.reference.scenarios import random_case
from tests.reference.simulator import simulate
from tests.serving.compare import fleet_of, model_of, requests_of

FIRST_SEED = 5
COUNT = 60
"""Cases that tests go through."""


@dataclass(frozen=True)
class Case:
    """One setup, a list of requests for each seed, what the reference makes of each, and the engine's result."""

    setup: Setup
    requests: list[list[Request]]
    expected: list[Outcome]
    result: Result
    warmup_s: float
    exact: bool
    """Whether all times are sums of powers of two, so that even coincidences must agree."""

    @property
    def includes_end(self) -> bool:
        """Without a horizon the last event's instant belongs to the window."""
        return self.setup.horizon_s is None

    def rows(self) -> Iterator[tuple[int, Request, Row]]:
        """(seed, request, what became of it), in the engine's order."""
        for i, (requests, outcome) in enumerate(zip(self.requests, self.expected, strict=True)):
            for j in sorted(range(len(requests)), key=lambda j: requests[j].arrival_s):
                yield i, requests[j], outcome.requests[j]

    def steps(self) -> Iterator[tuple[int, Step]]:
        """(seed, step) of all replicas."""
        for i, outcome in enumerate(self.expected):
            for steps in outcome.steps:
                yield from ((i, step) for step in steps)

    def in_window(self, seed: int, time: float | None) -> bool:
        """Whether something that happened at that time counts for the throughput."""
        if time is None or time < self.warmup_s:
            return False
        return time < self.expected[seed].horizon_s or self.includes_end

    def gaps(self, seed: int) -> list[float]:
        """Gaps between tokens whose second token came in the window."""
        rows = self.expected[seed].requests
        return [b - a for row in rows for a, b in pairwise(row.token_times) if b >= self.warmup_s]

    def overlap(self, seed: int, step: Step) -> float:
        """Seconds of a step inside the window."""
        return max(0.0, min(step.end, self.expected[seed].horizon_s) - max(step.start, self.warmup_s))


def result_of(setup: Setup, requests: Sequence[Sequence[Request]], warmup_s: float = 0.0, **document: Any) -> Result:
    """The engine's result for reference requests; ``document`` holds sections of the scenario to report under."""
    document.setdefault("slo", [])
    horizon = setup.horizon_s
    run = {"horizon_s": horizon, "warmup_s": warmup_s, "seeds": len(requests), "seed": FIRST_SEED}
    traffic = {"process": "trace"} if horizon is None else {}
    s = Scenario.from_dict({"run": run, "traffic": traffic, "fleet": {"replicas": setup.replicas}, **document})
    meter = Meter(len(requests), setup.replicas, warmup_s, horizon)
    pieces: list[StepLog] = []

    def sink(log: StepLog) -> None:
        meter(log)
        pieces.append(log)

    run_ = run_fleet(fleet_of(setup), [requests_of(r)[0] for r in requests], FIRST_SEED, sink)
    return Result(s, model_of(setup), run_, meter, lambda: StepLog.joined(pieces), None, (), 0.0, FIRST_SEED)


@cache
def case(number: int) -> Case:
    """Case ``number``: three seeds, the second and third with part of the first one's requests."""
    rng = random.Random(number)
    setup, first = random_case(rng, {"max_outstanding"} if number % 2 else set())
    requests = [first, [r for r in first if rng.random() < 0.7], [r for r in first if rng.random() < 0.4]]
    expected = [simulate(setup, part) for part in requests]
    exact = (setup.base.overhead_s * 1024) % 1 == 0  # type: ignore[union-attr]
    warmup = _warmup(rng, expected, exact)
    return Case(setup, requests, expected, result_of(setup, requests, warmup), warmup, exact)


def _warmup(rng: random.Random, expected: list[Outcome], exact: bool) -> float:
    """None, anywhere, or at the very end of a step, where nothing is lost to rounding."""
    end = min(outcome.horizon_s for outcome in expected)
    boundaries = [step.end for steps in expected[0].steps for step in steps if step.end < end]
    if exact and boundaries and rng.random() < 0.6:
        return rng.choice(boundaries)
    return rng.choice([0.0, rng.uniform(0.0, 0.6) * end])
