"""Coupled fleets: the engine equals the step-by-step reference, attempt by attempt and step by step."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import pytest

from tests.reference.coupled_scenarios import BASIS, coupled_case, is_dyadic, some_features
from tests.reference.invariants import check
from tests.reference.model import ROUTING
from tests.reference.simulator import simulate
from tests.serving.compare_coupled import coupled_differences, draws_of


def compare(seed: int) -> None:
    """One random case with the luck of the engine's own streams; the reference's own laws are checked too."""
    rng = random.Random(seed)
    setup, requests = coupled_case(rng)
    exact = is_dyadic(setup)
    expected = simulate(setup, requests, draws_of(seed, len(requests), exact))
    check(setup, requests, expected)
    assert not coupled_differences(setup, requests, seed, expected, exact), (seed, setup)


@pytest.mark.parametrize("block", range(20))
def test_the_engine_equals_the_reference(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        compare(seed)


ACCEPT = range(2_000_000, 2_005_000)


@pytest.mark.accept
@pytest.mark.parametrize("block", range(50))
def test_the_engine_equals_the_reference_on_five_thousand(block: int) -> None:
    for seed in ACCEPT[100 * block : 100 * block + 100]:
        compare(seed)


@pytest.mark.accept
def test_the_five_thousand_hit_every_pair_forty_times() -> None:
    pairs: Counter[tuple[str, str]] = Counter()
    for seed in ACCEPT:
        pairs.update(combinations(sorted(some_features(random.Random(seed))), 2))
    exclusive = [*combinations(sorted(ROUTING), 2), ("adaptive_lifo", "codel"), ("prefill_first", "static")]
    never = {*exclusive, ("codel", "static"), ("adaptive_lifo", "static")}
    every = {*BASIS, *ROUTING, "retries", "budget", "layers", "throttle", "shed", "codel", "adaptive_lifo"}
    rare = {pair: pairs[pair] for pair in combinations(sorted(every), 2) if pair not in never and pairs[pair] < 40}
    assert not rare
