"""The laws on random cases, the generator of the cases, and that the laws can be broken."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.reference.invariants import check
from tests.reference.model import Request, Setup
from tests.reference.scenarios import FEATURES, random_case
from tests.reference.simulator import simulate


class TestRandomCases:
    @pytest.mark.parametrize("seed", range(20))
    def test_invariants(self, seed: int) -> None:
        """Twenty times twelve cases, one without options and eleven with random ones."""
        rng = random.Random(seed)
        for case in range(12):
            features = {name for name in sorted(FEATURES) if case > 0 and rng.random() < 0.3}
            setup, requests = random_case(rng, features)
            check(setup, requests, simulate(setup, requests))

    def test_same_seed_same_case(self) -> None:
        assert random_case(random.Random(5), FEATURES) == random_case(random.Random(5), FEATURES)

    def test_unknown_feature(self) -> None:
        with pytest.raises(ValueError, match="teleport"):
            random_case(random.Random(0), {"teleport"})

    def test_dyadic_cases_are_exact(self) -> None:
        """In about half of the cases every time is a multiple of 2^-20, whatever is summed."""
        exact = 0
        for seed in range(60):
            setup, requests = random_case(random.Random(seed))
            steps = [step.end for steps in simulate(setup, requests).steps for step in steps]
            times = [*steps, *(request.arrival_s for request in requests)]
            exact += all((at * 2**20).is_integer() and at < 2**20 for at in times)
        assert 20 <= exact <= 45

    def test_generator_reaches_what_it_is_for(self) -> None:
        """Preemption, chunked prompts, cuts in mid-step, arrivals at boundaries, every reason and bottleneck."""
        seen: set[str | None] = set()
        for seed in range(150):
            rng = random.Random(seed)
            setup, requests = random_case(rng, {name for name in sorted(FEATURES) if rng.random() < 0.25})
            outcome = simulate(setup, requests)
            seen |= {row.reason or row.state for row in outcome.requests}
            for replica, steps in enumerate(outcome.steps):
                seen |= {step.limited_by for step in steps}
                seen |= {"cut" for step in steps if step.end > outcome.horizon_s}
                boundaries = {step.end for step in steps}
                rows = [row for row in outcome.requests if row.replica == replica]
                seen |= {"tie" for row in rows if row.arrival_s in boundaries}
                seen |= {"preempted" for row in rows if row.preemptions > 0}
        assert seen >= {"cut", "tie", "preempted", "completed", "unfinished"}
        assert seen >= {"none", "kv", "max_num_seqs", "token_budget"}
        assert seen >= {"rate_limited", "too_long", "queue_full", "timeout", "ttft_timeout", "queue_timeout"}


class TestInvariantsCanFail:
    """Each law notices an outcome bent against it."""

    @staticmethod
    def bent(field: str, value: Any, index: int = 1) -> None:
        setup = Setup(base=lambda tokens: 1.0, kv_capacity_tokens=10, max_num_seqs=2)
        requests = [Request(0.0, 3, 6), Request(0.0, 3, 6), Request(0.0, 1, 2)]
        outcome = simulate(setup, requests)
        check(setup, requests, outcome)
        setattr(outcome.requests[index], field, value)
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("state", "lost"),
            ("state", None),
            ("reason", "timeout"),
            ("scheduled_s", 1.5),
            ("scheduled_s", -1.0),
            ("finish_s", None),
            ("left_s", 4.0),
            ("token_times", [1.0, 2.0, 3.0, 7.0, 9.0]),
            ("replica", None),
            ("order", 0),
        ],
    )
    def test_bent_row(self, field: str, value: Any) -> None:
        self.bent(field, value)

    def test_overtaking(self) -> None:
        self.bent("scheduled_s", 0.5, index=0)  # the second, admitted at 0, would have passed it

    @pytest.mark.parametrize(
        ("field", "value"),
        [("kv_held_at_start", 10), ("running", 3), ("T", 7), ("n_decode", 0), ("end", 9.25), ("limited_by", "none")],
    )
    def test_bent_step(self, field: str, value: Any) -> None:
        setup = Setup(base=lambda tokens: 1.0, kv_capacity_tokens=10, max_num_seqs=2)
        requests = [Request(0.0, 3, 6), Request(0.0, 3, 6), Request(0.0, 1, 2)]
        outcome = simulate(setup, requests)
        setattr(outcome.steps[0][1], field, value)
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)
