"""The laws on random cases of coupled fleets, the generator of the cases, and that the laws can be broken."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import pytest

from tests.reference.coupled_scenarios import coupled_case, is_dyadic, seeded_draws, some_features
from tests.reference.draws import Draws
from tests.reference.invariants import check
from tests.reference.model import Codel, Request, Setup, Throttle
from tests.reference.simulator import simulate


class TestRandomCases:
    @pytest.mark.parametrize("block", range(10))
    def test_invariants(self, block: int) -> None:
        for seed in range(20 * block, 20 * block + 20):
            rng = random.Random(seed)
            chosen = some_features(rng) | ({"routable"} if seed % 4 == 0 else set())
            setup, requests = coupled_case(rng, chosen)
            check(setup, requests, simulate(setup, requests, seeded_draws(seed)))

    def test_same_seed_same_case(self) -> None:
        assert coupled_case(random.Random(5)) == coupled_case(random.Random(5))

    def test_unknown_feature(self) -> None:
        with pytest.raises(ValueError, match="closed"):
            coupled_case(random.Random(0), {"closed"})

    def test_dyadic_cases_are_exact(self) -> None:
        """In about half of the cases every time is a multiple of 2^-20, retries' included."""
        exact = 0
        for seed in range(60):
            setup, requests = coupled_case(random.Random(seed))
            outcome = simulate(setup, requests, seeded_draws(seed))
            times = [step.end for steps in outcome.steps for step in steps]
            times += [row.arrival_s or 0.0 for row in outcome.requests]
            multiples = all((at * 2**20).is_integer() and at < 2**20 for at in times)
            assert multiples or not is_dyadic(setup) or not callable(setup.base), (seed, setup)
            exact += multiples
        assert 20 <= exact <= 45

    def test_generator_reaches_what_it_is_for(self) -> None:
        """Every reason, third attempts, budgets that bind, retries at a boundary, an overtaken request."""
        seen: set[str | None] = set()
        for seed in range(200):
            rng = random.Random(seed)
            setup, requests = coupled_case(rng, some_features(rng) | ({"routable"} if seed % 4 == 0 else set()))
            outcome = simulate(setup, requests, seeded_draws(seed))
            seen |= {row.reason or row.state for row in outcome.requests}
            seen |= {f"attempt {row.attempt}" for row in outcome.requests}
            boundaries = {step.end for steps in outcome.steps for step in steps}
            seen |= {"tie" for row in outcome.requests if row.attempt > 0 and row.arrival_s in boundaries}
            seen |= {"preempted" for row in outcome.requests if row.preemptions > 0}
            attempts = {row.request: row.attempt for row in outcome.requests if row.reason not in (None, "too_long")}
            if setup.retry_budget_ratio is not None and setup.horizon_s is None and 0 in attempts.values():
                seen.add("budget")
        assert seen >= {"tie", "preempted", "budget", "attempt 3", "completed", "unfinished", "too_long", "queue_full"}
        assert seen >= {"throttled", "rate_limited", "no_replica", "shed", "codel"}
        assert seen >= {"timeout", "ttft_timeout", "queue_timeout"}


class TestLawsCanFail:
    """Each law notices an outcome bent against it."""

    SETUP: ClassVar[dict[str, Any]] = {
        "max_num_seqs": 1,
        "max_outstanding": 2,
        "max_retries": 2,
        "backoff_s": 4.0,
        "retry_budget_ratio": 1.0,
        "throttle": Throttle(2.0, 100.0),
        "discipline": Codel(1.0, 2.0),
        "replicas": 2,
        "routable": [[(0.0, 5.0)], [(5.0, 90.0)]],
    }

    def bent(self, field: str, value: Any, request: int = 2, attempt: int = 0, **settings: Any) -> None:
        setup = Setup(base=lambda tokens: 1.0, **(self.SETUP | settings))
        requests = [Request(0.0, 1, 9), Request(0.0, 1, 1), Request(1.0, 1, 1)]
        draws = Draws(backoff=lambda a, r: 0.5, throttle=lambda a, r: 0.96875)
        outcome = simulate(setup, requests, draws)
        check(setup, requests, outcome)
        rows = {(row.request, row.attempt): row for row in outcome.requests}
        setattr(rows[request, attempt], field, value)
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)

    @pytest.mark.parametrize(
        ("field", "value", "attempt"),
        [
            ("attempt", 1, 0),
            ("request", 1, 0),
            ("state", "completed", 0),
            ("reason", "too_long", 0),
            ("reason", "no_replica", 0),
            ("reason", "codel", 0),
            ("reason", "shed", 0),
            ("reason", "throttled", 0),
            ("replica", 1, 0),
            ("arrival_s", 1.0, 1),
            ("arrival_s", 4.5, 1),
        ],
    )
    def test_bent_attempt(self, field: str, value: Any, attempt: int) -> None:
        self.bent(field, value, attempt=attempt)

    def test_more_attempts_than_allowed(self) -> None:
        setup = Setup(base=lambda tokens: 1.0, max_outstanding=1, max_retries=2, backoff_s=4.0)
        requests = [Request(0.0, 1, 30), Request(1.0, 1, 1)]
        outcome = simulate(setup, requests, Draws(backoff=lambda a, r: 0.5))
        check(setup, requests, outcome)
        setup.max_retries = 1
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)

    def test_fewer_attempts_than_wanted(self) -> None:
        setup = Setup(base=lambda tokens: 1.0, max_outstanding=1, max_retries=2, backoff_s=4.0)
        requests = [Request(0.0, 1, 30), Request(1.0, 1, 1)]
        outcome = simulate(setup, requests, Draws(backoff=lambda a, r: 0.5))
        outcome.requests.pop()
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)

    def test_overspent_budget(self) -> None:
        setup = Setup(base=lambda tokens: 1.0, max_outstanding=1, max_retries=2, backoff_s=4.0)
        requests = [Request(0.0, 1, 30), Request(1.0, 1, 1), Request(1.0, 1, 1)]
        outcome = simulate(setup, requests, Draws(backoff=lambda a, r: 0.5))
        setup.retry_budget_ratio = 0.5
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)
