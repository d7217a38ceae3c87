"""The same run under each choice: each number is what a simulation with that promise says."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Result, simulate
from engine.outcome.promises import Terms, terms
from engine.outcome.promises.rescore import Choice
from engine.outcome.story import story
from tests.outcome.promises.build import BUSY, NOBODY, run_of

FIELD = {"place": "measured_at", "failures": "failures", "metric": "metric", "threshold": "threshold_s"}


@pytest.fixture(scope="module")
def busy() -> Result:
    return simulate(BUSY)


@pytest.fixture(scope="module")
def told(busy: Result) -> Terms:
    found = terms(busy)
    assert found is not None
    return found


def test_each_choice_is_the_summary_of_a_run_that_makes_it(told: Terms, busy: Result) -> None:
    judged = [choice for choice in told.choices if choice.part in FIELD]
    base = BUSY.slo[0].model_dump()
    slo = [base | {"name": str(i), FIELD[c.part]: c.value} for i, c in enumerate(judged)]
    summary: Any = simulate(BUSY.replace({"slo": slo})).summary()
    assert [c.share for c in judged] == [entry["attainment"] for entry in summary["slo"]]
    assert [list(c.ci95 or ()) for c in judged] == [entry["ci95"] for entry in summary["slo"]]
    assert told.choices[0].share == busy.attainments[0].attainment


def test_every_part_is_chosen_once_as_it_is(told: Terms) -> None:
    for part in (*FIELD, "now"):
        assert sum(c.chosen for c in told.choices if c.part == part) == 1, part


def by(told: Terms, part: str) -> dict[Any, Choice]:
    return {c.value: c for c in told.choices if c.part == part}


def test_the_number_moves_as_it_should(told: Terms) -> None:
    place, failures, metric = (by(told, part) for part in ("place", "failures", "metric"))
    assert place["server"].share > place["gateway"].share > place["client"].share  # type: ignore[operator]
    shares = [c.share for c in failures.values()]
    assert shares == sorted(shares)  # type: ignore[type-var]
    assert metric["queue"].share >= metric["ttft"].share >= metric["e2e"].share  # type: ignore[operator]
    thresholds = by(told, "threshold")
    assert set(thresholds) == {1.5, 2.5, 3.0, 5.0}, "half, itself, and the histogram's edges around it"


def test_windows_of_both_kinds_and_slices(told: Terms) -> None:
    assert [c.value for c in told.choices if c.part == "window"] == [
        ("rolling", 60.0), ("calendar", 60.0), ("slice", 10.0),
    ]  # fmt: skip
    assert told.windows is not None
    assert told.windows.share == by(told, "window")["rolling", 60.0].share


def test_the_rest_of_the_terms(told: Terms, busy: Result) -> None:
    assert told.strictest in told.by_target
    assert [s.target for s in told.by_target] == [0.6, 0.9, 0.95, 0.99, 0.999]
    assert told.downtime_s == pytest.approx(0.4 * 60.0)
    assert told.edge.edge_s == 2.5
    assert len(told.alerts) == 3
    assert told.answered == busy.observed.sum()
    assert told.length_s == 140.0
    assert {s.q for s in told.sure} == {0.5, 0.95, 0.99, 0.999}
    assert story(busy).terms is not None


def test_without_a_promise_or_requests() -> None:
    assert terms(run_of([1.0], slo=[])) is None
    nothing = terms(run_of(NOBODY))
    assert nothing is not None
    assert (nothing.curve, nothing.budget, nothing.omission, nothing.answered) == (None, None, None, 0)
    assert (nothing.alerts, nothing.readings, nothing.averages, nothing.sure) == ((), (), {}, ())
    assert nothing.strictest.threshold_s is None
    assert all(c.share is None for c in nothing.choices)


@pytest.mark.parametrize("metric", ["tpot", "max_itl"])
def test_gaps_between_words(metric: str) -> None:
    found = terms(simulate(BUSY.replace({"slo.0.metric": metric, "slo.0.threshold_s": 0.2})))
    assert found is not None
    assert found.choices[0].share is not None
    assert found.edge.edge_s == 0.2
    assert not [c for c in found.choices if c.part == "metric"]
