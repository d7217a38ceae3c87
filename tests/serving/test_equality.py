"""The engine equals the step-by-step reference, request by request and step by step, and whatever it runs beside."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine.serving import fleet
from tests.reference.invariants import check
from tests.reference.scenarios import LinearBase, random_case
from tests.reference.simulator import simulate
from tests.serving.compare import differences, run_engine

EXTRAS = (
    (), ("classes",), ("deadlines",), ("deadlines", "classes"), ("ignore",), ("ignore", "deadlines", "classes"),
    ("max_outstanding",), ("max_queued_tokens", "classes"), ("rate_limit", "deadlines"), ("reserve_output", "max_outstanding"),
    ("table",), ("deadlines", "max_outstanding", "max_queued_tokens"), ("watermark", "reserve_output", "classes"),
)  # fmt: skip
POLICIES = ((), ("prefill_first",), ("static",))
"""What random cases use, in turn, beside both KV policies, prefixes, limits, several replicas and horizons."""


def features(seed: int) -> set[str]:
    """Every policy with every combination of extras comes round once in 39 seeds."""
    return {*POLICIES[seed % 3], *EXTRAS[seed % 13]}


def compare(seed: int) -> None:
    """One random case; the reference's own laws are checked too."""
    rng = random.Random(seed)
    setup, requests = random_case(rng, features(seed))
    expected = simulate(setup, requests)
    check(setup, requests, expected)
    exact = isinstance(setup.base, LinearBase) and (setup.base.overhead_s * 1024) % 1 == 0
    assert not differences(setup, requests, expected, exact), (seed, setup)


@pytest.mark.parametrize("block", range(30))
def test_the_engine_equals_the_reference(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        compare(seed)


@pytest.mark.accept
@pytest.mark.parametrize("block", range(100))
def test_the_engine_equals_the_reference_on_twenty_thousand(block: int) -> None:
    for seed in range(1_000_000 + 200 * block, 1_000_000 + 200 * block + 200):
        compare(seed)


@pytest.mark.parametrize("seed", range(12))
def test_the_result_does_not_depend_on_what_runs_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    setup, first = random_case(rng, {"max_outstanding"} if seed % 2 else set())
    setup.horizon_s = None
    others = [random_case(rng, set())[1] for _ in range(6)]
    together = run_engine(setup, [*others[:3], first, *others[3:]])[0].attempts
    alone = run_engine(setup, [first])[0].attempts
    monkeypatch.setattr(fleet, "BATCH_LANES", 1)
    one_by_one = run_engine(setup, [*others[:3], first, *others[3:]])[0].attempts
    part = slice(int(together.seed_start[3]), int(together.seed_start[4]))
    for name in ("scheduled_s", "first_token_s", "finish_s", "state", "preemptions", "replica"):
        np.testing.assert_array_equal(getattr(together, name)[part], getattr(alone, name))
        np.testing.assert_array_equal(getattr(together, name), getattr(one_by_one, name))
