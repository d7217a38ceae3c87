"""What is short, by how much, and what to try."""

from __future__ import annotations

import pytest

from engine.placement import Chip, Item, Problem, enough_more, most_placed, reason, ruled_out, solve, why_not
from tests.placement.check import check

CHIPS = (Chip("24GB", 21.6, 1.0, 4), Chip("40GB", 36.0, 2.2, 4), Chip("80GB", 72.0, 4.0, 1))


def test_chips_that_are_ruled_out_by_their_memory() -> None:
    problem = Problem((Item("13B", 17.0), Item("34B", 39.4, 1, (1,)), Item("70B", 90.0, 1, (1, 2))), CHIPS)
    found = ruled_out(problem)
    assert [(one.item, one.chip, one.cause) for one in found] == [
        (1, 0, "memory"), (1, 1, "memory"), (2, 0, "memory"), (2, 1, "memory"), (2, 2, "chips"),
    ]  # fmt: skip
    assert found[1].short_gb == pytest.approx(3.4)
    assert reason(problem, found[1]) == "34B needs 39.4 GB on a chip, and one 40GB gives 36 GB: short by 3.4 GB"
    assert reason(problem, found[3]) == (
        "70B needs 45 GB on each of 2 chips, and one 40GB gives 36 GB: short by 9 GB"
    )  # fmt: skip
    assert reason(problem, found[4]) == "70B needs 2 chips of type 80GB for a replica, and there are 1 in stock"


def test_a_split_that_a_chip_does_not_allow() -> None:
    problem = Problem((Item("m", 30.0, 1, (2,), {(2, "40GB"): 16.0}),), CHIPS)
    assert [reason(problem, one) for one in ruled_out(problem)] == [
        "m can't be split over 2 chips of type 24GB",
        "m can't be split over 2 chips of type 80GB",
    ]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (
            (Item("34B", 82.0),),
            "34B fits no chip: it needs 82 GB on a chip, and one 80GB gives 72 GB: short by 10 GB. "
            "Try a split over 4 (tp 4): 20.5 GB on each 24GB.",
        ),
        (
            (Item("big", 700.0, 1, (1, 2, 4, 8, 16)),),
            "big fits no chip: it needs 43.8 GB on each of 16 chips, and one 80GB gives 72 GB: short by 0 GB. ",
        ),
    ],
    ids=["another split", "too few chips"],
)
def test_a_model_that_fits_no_chip(items: tuple[Item, ...], said: str) -> None:
    problem = Problem(items, CHIPS)
    answer = why_not(solve(problem))
    if "short by 0" in said:
        assert answer.startswith("big fits no chip: it needs 16 chips of type 80GB for a replica, and there are 1 in")
        assert answer.endswith("Try 16 chips of type 80GB.")
    else:
        assert answer == said


def test_too_few_chips_say_how_many_more() -> None:
    problem = Problem((Item("7B", 20.0, 7), Item("34B", 35.0, 3)), CHIPS[:2])
    found = solve(problem)
    assert found.impossible
    best = most_placed(problem)
    check(problem, best)
    assert sum(best.left_out) == 2  # eight chips, one replica on each
    assert enough_more(problem) == (0, 2)
    said = why_not(found)
    assert said.startswith("8 of 10 replicas find a place; left out: ")
    assert said.endswith("Try 2 more 24GB.")


def test_no_chips_at_all() -> None:
    assert why_not(solve(Problem((Item("m", 1.0),), ()))).startswith("there are no chips")
