"""The solver against trying everything, against the rules of thumb, and under every kind of restriction."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf

import pytest

from engine.placement import Chip, Item, Problem, Solution, solve
from tests.placement.brute import cheapest
from tests.placement.check import check
from tests.placement.draw import large, small

PATIENCE_S = 60.0


@pytest.mark.parametrize("seed", range(60))
def test_small_problems_against_trying_everything(seed: int) -> None:
    problem = small(seed)
    found, best = solve(problem, PATIENCE_S), cheapest(problem)
    assert found.impossible == (best == inf)
    if found.packing is not None:
        check(problem, found.packing)
        assert found.packing.cost == pytest.approx(best, abs=1e-6)
        assert found.proven_optimal


def keeps(problem: Problem, found: Solution) -> None:
    """Never worse than the rules of thumb, never below the bound, and no packing where there can't be one."""
    rules = [packing for packing in (found.first_fit, found.best_fit) if packing.complete]
    for packing in rules:
        check(problem, packing)
        assert found.packing is not None
        assert found.packing.cost <= packing.cost
    if found.packing is None:
        assert found.impossible or found.lower_bound >= 0
        return
    check(problem, found.packing)
    assert found.lower_bound <= found.packing.cost
    assert found.gap is not None
    assert (found.gap == 0) == found.proven_optimal


@pytest.mark.parametrize("seed", range(30))
def test_up_to_thirty_replicas(seed: int) -> None:
    problem = large(seed)
    keeps(problem, solve(problem, 0.25))


@pytest.mark.accept
def test_two_hundred_random_placements() -> None:
    """Solved or bounded in time; prints how many, the widest gap, and the slowest."""
    proven, gaps, slowest = 0, [], 0.0
    for seed in range(200):
        problem, begun = large(seed), time.process_time()
        found = solve(problem)
        slowest = max(slowest, time.process_time() - begun)
        keeps(problem, found)
        proven += found.proven_optimal or found.impossible
        gaps.append(found.gap or 0.0)
        assert found.packing is not None or found.impossible
    print(f"proven {proven} of 200, widest gap {max(gaps):.1%}, slowest {slowest:.2f} s of processor")
    assert proven >= 175
    assert slowest < 2.0


def seventy(**changes: object) -> Problem:
    """Three replicas of 40 GB, chips of 48 and 80 GB."""
    plain = Problem((Item("m", 40.0, 3),), (Chip("48GB", 43.2, 2.0, 2, 2), Chip("80GB", 72.0, 4.0, 2, 2)))
    return replace(plain, **changes)  # type: ignore[arg-type]


def cost(problem: Problem) -> float | None:
    found = solve(problem, PATIENCE_S)
    if found.packing is not None:
        check(problem, found.packing)
    return None if found.packing is None else found.packing.cost


def test_fixed_and_open_stock() -> None:
    assert cost(seventy()) == 8.0  # both small ones, and a large one
    assert cost(seventy(chips=(Chip("48GB", 43.2, 2.0), Chip("80GB", 72.0, 4.0)))) == 6.0
    assert cost(seventy(chips=(Chip("48GB", 43.2, 2.0, 2),))) is None


def test_headroom_rules_the_small_chips_out() -> None:
    assert cost(seventy(headroom=0.1)) is None  # 38.9 GB on the small ones
    assert cost(seventy(headroom=0.05, chips=(Chip("48GB", 43.2, 2.0), Chip("80GB", 72.0, 4.0)))) == 6.0


def test_replicas_on_different_hosts() -> None:
    together = seventy(chips=(Chip("80GB", 90.0, 4.0, None, 2),))
    assert cost(together) == 8.0
    assert cost(replace(together, spread=True)) == 12.0
    assert cost(seventy(spread=True)) is None  # two hosts for three replicas


def test_a_split_replica_stays_in_one_host() -> None:
    split = Problem((Item("m", 80.0, 2, (4,)),), (Chip("24GB", 21.6, 1.0, 8, 2),))
    assert cost(split) == 8.0
    assert cost(replace(split, spread=True)) is None
    assert cost(replace(split, spread=True, chips=(Chip("24GB", 21.6, 1.0, 8, 4),))) == 8.0


def test_sizes_by_chip_and_split() -> None:
    sizes = {(1, "80GB"): 60.0, (2, "80GB"): 35.0, (2, "48GB"): 43.0}
    item = Item("m", 60.0, 2, (1, 2), sizes)
    both = (Chip("48GB", 43.2, 2.0), Chip("80GB", 72.0, 4.0))
    assert cost(Problem((item,), both)) == 8.0
    assert cost(Problem((replace(item, replicas=1),), both)) == 4.0
    assert cost(Problem((replace(item, allowed_tp=(4,)),), both)) is None


def test_nothing_wanted_costs_nothing() -> None:
    assert cost(Problem((Item("m", 40.0, 0),), (Chip("48GB", 43.2, 2.0),))) == 0.0
    assert cost(Problem((), ())) == 0.0


def test_chips_that_cost_nothing_are_used_first() -> None:
    assert cost(seventy(chips=(Chip("mine", 43.2, 0.0, 2), Chip("80GB", 72.0, 4.0)))) == 4.0


def test_the_same_problem_has_the_same_answer() -> None:
    problem = large(5)
    assert solve(problem, PATIENCE_S).packing == solve(problem, PATIENCE_S).packing
