"""Differences from A: sign, unit, and noise."""

from __future__ import annotations

import dataclasses

import pytest

from engine import Scenario, simulate
from engine.outcome.story import Story, story
from ui import against
from ui.words import NBSP

BASE = Scenario.from_dict(
    {
        "traffic": {"rate_rps": 6.0},
        "admission": {"max_outstanding": 20},
        "batching": {"max_num_seqs": 8},
        "performance": {"kind": "linear", "overhead_s": 0.02},
        "fleet": {"replicas": 1},
        "run": {"seeds": 4, "horizon_s": 200.0},
    }
)


@pytest.fixture(scope="module")
def stories() -> tuple[Story, Story]:
    """A, and twice the machines."""
    return story(simulate(BASE)), story(simulate(BASE.replace({"fleet.replicas": 2})))


def clean(text: str) -> str:
    return text.replace(NBSP, " ")


def test_signs_follow_the_change(stories: tuple[Story, Story]) -> None:
    a, b = stories
    assert against.tail(a, b).startswith("−")
    assert against.kept(a, b).startswith("+")
    assert "points against A (" in clean(against.kept(a, b))
    assert against.turned_away(a, b).startswith("−")
    assert against.tail(b, a).startswith("+")


def test_the_same_is_said_to_be_the_same(stories: tuple[Story, Story]) -> None:
    a, _ = stories
    assert against.tail(a, a).startswith("as in A (")
    assert against.kept(a, a).startswith("as in A (")


def test_a_difference_within_the_spread_says_so(stories: tuple[Story, Story]) -> None:
    a, b = stories
    near = dataclasses.replace(a, tail=dataclasses.replace(a.tail, p95=(a.tail.p95 or 0.0) * 1.001))
    assert against.tail(a, near).endswith(against.NOISE)
    assert against.NOISE not in against.turned_away(a, b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1.0, 2.0), (1.5, 3.0), True),
        ((1.0, 2.0), (2.0, 3.0), True),
        ((1.0, 2.0), (2.1, 3.0), False),
        ((2.1, 3.0), (1.0, 2.0), False),
        (None, (1.0, 2.0), False),
    ],
)
def test_intervals_overlap(a: tuple[float, float] | None, b: tuple[float, float], expected: bool) -> None:
    assert against.overlap(a, b) is expected


def test_another_metric_isn_t_compared(stories: tuple[Story, Story]) -> None:
    a, _ = stories
    other = story(simulate(BASE.replace({"slo.0.metric": "e2e"})))
    assert against.tail(a, other) == "A promises another time (TTFT)"


def test_what_was_changed_is_listed() -> None:
    more = BASE.replace({"fleet.replicas": 2})
    assert against.changed(BASE, more) == ("**Against A:** replicas 2 instead of 1. Both with the same random numbers.")
    assert against.changed(BASE, BASE).startswith("**This is A.**")
    assert "same random numbers" not in against.changed(BASE, BASE.replace({"run.seed": 2}))
    many = BASE.replace({"fleet.replicas": 2, "traffic.rate_rps": 5.0, "run.seeds": 3, "batching.max_num_seqs": 9})
    assert "1 more" in against.changed(BASE, many)
