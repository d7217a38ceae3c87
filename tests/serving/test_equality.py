"""The engine equals the step-by-step reference, request by request and step by step, and whatever it runs beside."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from engine.serving import fleet
from tests.reference.scenarios import FEATURES, random_case
from tests.serving.compare import assert_equal, run_engine

POLICIES = ("chunked", "prefill_first", "static")
EXTRAS = sorted(FEATURES - {*POLICIES, "disaggregated", "split"})
"""What random cases use beside both KV policies, prefixes, limits, several replicas and horizons."""


def features(seed: int) -> set[str]:
    """A policy, and each extra in three cases of ten; a gateway's limit isn't available in a closed loop."""
    rng = random.Random(f"features {seed}")
    chosen = {POLICIES[seed % 3], *(extra for extra in EXTRAS if rng.random() < 0.3)} - {"chunked"}
    return chosen - {"rate_limit"} if "closed" in chosen else chosen


def compare(seed: int) -> None:
    """One random case; the reference's own laws are checked too."""
    rng = random.Random(seed)
    setup, requests = random_case(rng, features(seed))
    assert_equal(setup, requests, seed)


@pytest.mark.parametrize("block", range(30))
def test_the_engine_equals_the_reference(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        compare(seed)


ACCEPT = range(1_000_000, 1_020_000)


@pytest.mark.accept
@pytest.mark.parametrize("block", range(100))
def test_the_engine_equals_the_reference_on_twenty_thousand(block: int) -> None:
    for seed in ACCEPT[200 * block : 200 * block + 200]:
        compare(seed)


@pytest.mark.accept
def test_the_twenty_thousand_hit_every_pair_five_hundred_times() -> None:
    pairs: Counter[tuple[str, str]] = Counter()
    for seed in ACCEPT:
        chosen = features(seed)
        setup, _ = random_case(random.Random(seed), chosen)
        used = {*chosen, setup.policy, setup.kv_policy}
        pairs.update(combinations(sorted(used), 2))
    every = {*POLICIES, *EXTRAS, "on_demand", "reserve"}
    never = {("reserve", "watermark"), ("on_demand", "reserve"), ("closed", "rate_limit"), *combinations(POLICIES, 2)}
    rare = {pair: pairs[pair] for pair in combinations(sorted(every), 2) if pair not in never and pairs[pair] < 500}
    assert not rare
    print("rarest pairs:", pairs.most_common()[-5:])


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


@pytest.mark.parametrize("seed", [1_002_556])
def test_cases_that_once_differed(seed: int) -> None:
    """1002556: of arrivals between two boundaries one is let in, gives up, and makes room for a later one."""
    compare(seed)
