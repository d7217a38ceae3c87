"""Random cases of the reference as runs of several seeds, and the figures that its rows and steps say they have."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any

from engine.outcome import Meter, Result
from engine.scenario import Scenario
from engine.serving import StepLog, run_fleet, run_users
from tests.reference.model import Outcome, Request, Row, Setup, Step
from tests.reference.scenarios import FEATURES, has_exact_times, random_case
from tests.reference.simulator import simulate
from tests.serving.compare import fleet_of, requests_of, users_of

FIRST_SEED = 5
COUNT = 72
"""Cases that tests go through."""
_ONE_POOL = 60
"""Of them have replicas that do everything, the others two pools."""
OTHERS = sorted(FEATURES - {"split", "disaggregated"})
"""What every third case uses at random."""


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

    def output(self, request: Request) -> int:
        """Tokens of a request's answer, cut to what is reserved."""
        most = self.setup.reserve_output_tokens
        return request.output_tokens if most is None else min(request.output_tokens, most)

    def rows(self) -> Iterator[tuple[int, Request, Row]]:
        """(seed, request, what became of it) of all that came, in order of arrival."""
        for i, (requests, outcome) in enumerate(zip(self.requests, self.expected, strict=True)):
            pairs = [pair for pair in zip(requests, outcome.requests, strict=True) if pair[1].order is not None]
            yield from ((i, *pair) for pair in sorted(pairs, key=lambda pair: pair[1].order or 0))

    def came(self, seed: int) -> list[Row]:
        """What became of the requests of a seed that came before the horizon."""
        return [row for i, _, row in self.rows() if i == seed]

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
    length = {"horizon_s": horizon, "warmup_s": warmup_s, "seeds": len(requests), "seed": FIRST_SEED}
    traffic = {"process": "trace"} if horizon is None else {}
    s = Scenario.from_dict({"run": length, "traffic": traffic, "fleet": {"replicas": setup.replicas}, **document})
    readers = setup.replicas if setup.decode_replicas else None
    meter = Meter(len(requests), setup.places, warmup_s, horizon, readers)
    pieces: list[StepLog] = []

    def sink(log: StepLog) -> None:
        meter(log)
        pieces.append(log)

    fleet = fleet_of(setup, [r for part in requests for r in part])
    if requests[0] and requests[0][0].user is not None:
        run = run_users(fleet, [users_of(r, horizon or inf) for r in requests], setup.backoff_s, sink)
    else:
        run = run_fleet(fleet, [requests_of(r)[0] for r in requests], FIRST_SEED, sink)
    return Result(s, fleet.model, run, meter, lambda: StepLog.joined(pieces), None, (), 0.0, FIRST_SEED)


@cache
def case(number: int) -> Case:
    """Case ``number``: three seeds, the second and third with part of the first one's requests."""
    rng = random.Random(number)
    plain: list[set[str]] = [set(), {"max_outstanding"}]
    features = plain[number % 3] if number % 3 < 2 else {name for name in OTHERS if rng.random() < 0.3}
    if number >= _ONE_POOL:
        features = {"disaggregated", *(name for name in OTHERS if name != "closed" and rng.random() < 0.3)}
        features -= {"static", "prefill_first"}
    if "closed" in features:
        features.discard("rate_limit")  # not available together
    setup, first = random_case(rng, features)
    if first and first[0].user is not None:
        users = 1 + max(r.user or 0 for r in first)
        requests = [first, *(first[: max(users, int(share * len(first)))] for share in (0.7, 0.4))]
    else:
        requests = [first, *([r for r in first if rng.random() < share] for share in (0.7, 0.4))]
    expected = [simulate(setup, part) for part in requests]
    exact = has_exact_times(setup)
    warmup = _warmup(rng, expected, exact)
    return Case(setup, requests, expected, result_of(setup, requests, warmup), warmup, exact)


def _warmup(rng: random.Random, expected: list[Outcome], exact: bool) -> float:
    """None, anywhere, or at the very end of a step, where nothing is lost to rounding."""
    end = min(outcome.horizon_s for outcome in expected)
    boundaries = [step.end for steps in expected[0].steps for step in steps if step.end < end]
    if exact and boundaries and rng.random() < 0.6:
        return rng.choice(boundaries)
    return rng.choice([0.0, rng.uniform(0.0, 0.6) * end])
