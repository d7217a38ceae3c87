"""The overload page's sentences, each for facts of which it is true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from engine.outcome.course import Bins
from engine.outcome.overload import End, Fates, Load, Overload, Spent
from engine.scenario import Scenario
from engine.study import Tried, Way
from engine.study.refusing import Kind
from ui import overload_words as words
from ui.words import NBSP

PROMISED = Scenario()
_BINS = Bins(10.0, np.arange(3) * 10.0)
_THREE = np.ones(3)


def facts(**changes: Any) -> Overload:
    """A calm service with room; changed as asked."""
    calm = Overload(
        kind="fine",
        fates=Fates(in_time=98, late=2, refused=0, gave_up=0, waiting=0),
        in_time_ci=None,
        load=Load(_BINS, _THREE, 0 * _THREE, _THREE, _THREE),
        spent=Spent(in_time=1000, late=0, for_nothing=0),
        end=End(from_s=20.0, first_rps=2.0, offered_rps=2.0, in_time_rps=1.9),
        attempts=1.0,
        first_rps=2.0,
        goodput_rps=1.9,
        fleet_rps=4.0,
        refused_length=None,
        rush_over_s=None,
    )
    return replace(calm, **changes)


def headline(scenario: Scenario = PROMISED, **changes: Any) -> str:
    return words.headline(facts(**changes), scenario).replace(NBSP, " ")


def fates(in_time: int = 0, late: int = 0, refused: int = 0, gave_up: int = 0) -> Fates:
    return Fates(in_time, late, refused, gave_up, 0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "No need to say no: 98 % are served in time."),
        ({"kind": "idle"}, "Nothing arrives, so there is nobody to refuse."),
        ({"kind": "refused"}, "Everybody is refused: nobody is served."),
        ({"kind": "saved", "fates": fates(90, 0, 10)}, "Refusing 1 in 10 keeps everybody else in time."),
        ({"kind": "saved", "fates": fates(88, 2, 10)}, "Refusing 1 in 10 keeps 97.8 % of the others in time."),
        ({"kind": "late", "fates": fates(10, 90)}, "Nobody is refused, and 9 in 10 people are late."),
        ({"kind": "late", "fates": fates(75, 25)}, "Nobody is refused, and 1 in 4 people is late."),
        ({"kind": "late", "fates": fates(75, 0, 0, 25)}, "Nobody is refused, and 1 in 4 people times out."),
        ({"kind": "late", "fates": fates(20, 40, 0, 40)}, "Nobody is refused, and 3 in 4 people are late or time out."),
        (
            {"kind": "late", "fates": fates(30, 60, 10)},
            "1 in 10 people is refused, and 2 in 3 of the others are late all the same.",
        ),
        (
            {"kind": "late", "fates": fates(0, 90, 10)},
            "1 in 10 people is refused, and all of the others are late all the same.",
        ),
        (
            {"kind": "storm", "rush_over_s": 120.0, "end": End(300.0, 2.0, 8.0, 0.0)},
            "The rush is over, the outage stays: at the end, nobody is served in time.",
        ),
        (
            {"kind": "storm", "end": End(300.0, 2.0, 8.0, 0.4)},
            "Retries keep it overloaded: at the end, 1 in 5 people is served in time.",
        ),
    ],
)
def test_the_verdict(changes: dict[str, Any], said: str) -> None:
    assert headline(**changes) == said


def test_without_a_promise_nobody_is_in_time() -> None:
    assert headline(Scenario.from_dict({"slo": []})) == "No need to say no: 98 % get an answer."


def test_what_stands_behind_it() -> None:
    def said(**changes: Any) -> str:
        return words.explanation(facts(**changes)).replace(NBSP, " ")

    assert said() == "2 requests a second arrive; 4 a second can be served."
    assert said(attempts=3.2).startswith("2 requests a second arrive, each sent 3.2 times;")
    assert "**88 % of the work** was for late answers" in said(spent=Spent(12, 88, 0))
    assert "nobody waited for" in said(spent=Spent(12, 8, 80))
    assert "none can be served" in said(fleet_rps=None)
    assert "have prompts 2.3 times as long as the others'." in said(refused_length=2.3)
    assert "prompts" not in said(refused_length=1.02)
    assert said(kind="late", rush_over_s=9.0).endswith("The rush passes: at the end 95 % are in time.")


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, "stays below what can be served (4 a second)"),
        ({"fleet_rps": None}, "nothing can be served"),
        (
            {"end": End(20.0, 6.0, 6.0, 4.4), "refused_length": 2.0},
            "4.4 a second are answered in time:** more than of the",
        ),
        ({"rush_over_s": 90.0}, "above what can be served until around second 90"),
        (
            {"end": End(20.0, 6.0, 6.0, 0.01)},
            "6 requests a second are sent at the end, 4 a second can be served, and hardly",
        ),
        (
            {"kind": "storm", "rush_over_s": 90.0, "end": End(20.0, 2.0, 8.0, 0.0)},
            "people ask 2 a second, their clients send 8 a second, and none is answered in time",
        ),
    ],
)
def test_the_load(changes: dict[str, Any], part: str) -> None:
    assert part in words.load_sentence(facts(**changes)).replace(NBSP, " ")


def test_retries_and_work() -> None:
    assert words.amplification_sentence(facts()).startswith("**Hardly anybody asks twice**")
    stormy = facts(attempts=3.2, end=End(20.0, 2.0, 8.2, 0.0))
    assert (
        words.amplification_sentence(stormy) == "**Each request is sent 3.2 times on average**, 4.1 times at the end."
    )
    told = words.spent_sentence(facts(spent=Spent(12, 8, 80))).replace(NBSP, " ")
    assert told == "**12 % of the work was for answers in time**, 8 % for late ones and 80 % for callers who had left."
    assert words.spent_sentence(facts(spent=Spent(0, 0, 0))) == "**No work was done.**"


def tried(kind: Any, in_time: int, refused: int = 0, value: float | None = None) -> Tried:
    outcome = fates(in_time, 100 - in_time - refused, refused)
    return Tried(Way(kind, {}, value), outcome, in_time / 50, 2.0, in_time / 100, 1.0, 0.1, 8, 300.0)


FOUND = [
    tried("now", 5),
    tried("shed", 91, 9, 1.0),
    tried("cap", 40, 60, 8),
    tried("cap", 70, 27, 22),
    tried("cap", 5, 13, 60),
]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_way_has_a_name_and_a_verb(kind: Any) -> None:
    way = Way(kind, {}, 0.5 if kind == "budget" else 2.0)
    assert words.name(way)
    assert words.button(way).split()[0] in {"Keep", "Refuse", "Drop", "Use", "Serve", "Limit", "Let", "Allow", "Stop"}


def test_the_best_of_each_kind_are_compared_in_order() -> None:
    assert [(t.way.kind, t.way.value) for t in words.shown(FOUND)] == [("now", None), ("shed", 1.0), ("cap", 22)]
    said = words.ways_sentence(FOUND, PROMISED).replace(NBSP, " ")
    assert said == (
        "**5 % are in time as it is now. Best of what was tried is to refuse predicted waits over 1 s:** "
        "91 % in time, 9 % refused."
    )
    assert "no way of saying no gets more" in words.ways_sentence(
        [tried("now", 99), tried("shed", 95, 5, 1.0)], PROMISED
    )
    nobody = replace(tried("now", 0), fates=fates())
    assert "nothing to compare" in words.ways_sentence([nobody], PROMISED)


def test_the_caps_end_without_one() -> None:
    assert [t.way.kind for t in words.caps(FOUND)] == ["cap"] * 3 + ["now"]
    said = words.caps_sentence(FOUND).replace(NBSP, " ")
    assert said.startswith("**A cap of 22 requests a replica is best: 70 % are in time and 27 % are refused;** without")
    capped = [tried("now", 40), tried("everybody", 90), tried("cap", 80, 20, 9)]
    assert [t.way.kind for t in words.caps(capped)] == ["cap", "everybody"]
    assert words.caps_sentence(capped).startswith("**No cap does better than none:**")
    assert "8 runs of 5 min" in words.source(FOUND).replace(NBSP, " ")
