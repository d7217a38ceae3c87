"""Burn-rate alerts over a run: when they sound, how late, and when they can't tell."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Result
from engine.outcome.promises.alerts import Alert, Events, alerts, seen_s, sounds_at
from engine.outcome.promises.burn_rate import RULES, Rule, detected_after, error_share
from tests.outcome.promises.build import NOBODY, run_of
from tests.outcome.promises.oracles import Row, of

DETECTION = [row for row in of("Burn_rate") if row.quantity.startswith("detection")]


@pytest.mark.parametrize("row", DETECTION, ids=lambda row: row.name)
def test_an_outage_is_noticed_when_the_closed_form_says(row: Row) -> None:
    """Every request bad from some time on, ten a second, the table's rules in minutes: found by looking at the events.

    The short window, a twelfth of the long one, is bad before the long one is.
    """
    p = row.parameters
    rule = Rule(p["burn"], p["long_window_h"] * 60.0, p["long_window_h"] * 5.0)
    began, rate = 2.0, 4000.0
    seen = np.arange(0.0, 12.0, 1 / rate)
    run = Events(seen, seen >= began, seen)
    at = sounds_at(run, rule, error_share(rule.burn, p["slo"]), rate, 0.0, 12.0)
    assert at is not None
    assert row.value - 2 / rate <= at - began <= row.value + 12.0 / 1000 + 2 / rate


def alerts_of(result: Result, **terms: object) -> tuple[Alert, ...]:
    objective = result.scenario.slo[0].model_copy(update=terms)
    return alerts(result, objective, result.scored(objective))


STEADY = [0.5 * i + 0.25 for i in range(600)]


def outage(begins: float, ends: float) -> Result:
    """Two requests a second on a machine that takes a quarter of a second for each and refuses whoever finds two there:
    from ``begins`` to ``ends`` 300 requests a second come on top.
    """
    rush = np.arange(begins, ends, 1 / 300).tolist()
    return run_of(
        STEADY + rush, batching__max_num_seqs=1, admission__max_outstanding=2, performance__overhead_s=0.25,
        slo__0__window_s=86400.0, slo__0__target=0.95,
    )  # fmt: skip


def test_a_rush_of_refusals_sounds_the_urgent_alerts() -> None:
    """Windows of 120 and 10 s for the first, 720 and 60 s for the second: 72 % and 30 % of what they hold."""
    first, second, third = alerts_of(outage(100.0, 160.0))
    assert [a.error_share for a in (first, second, third)] == pytest.approx([0.72, 0.3, 0.05])
    assert [a.consumed for a in (first, second, third)] == pytest.approx([0.02, 0.05, 0.1])
    for found in (first, second):
        assert found.usable
        assert (found.fired, found.runs) == (1, 1)
        assert found.at_s is not None
        assert found.late_s is not None
        assert 100.0 < found.at_s < 160.0
        assert found.late_s == pytest.approx(found.at_s - 100.0, abs=1.0)
        assert found.otherwise_s is None
    assert first.at_s > 100.0


def test_nothing_bad_sounds_nothing() -> None:
    for found in alerts_of(run_of(STEADY, performance__overhead_s=0.25, slo__0__window_s=86400.0)):
        assert (found.fired, found.at_s, found.late_s, found.otherwise_s) == (0, None, None, None)


def test_windows_with_too_few_requests_do_not_tell() -> None:
    """A promise over ten minutes: 0.07, 0.4 and 5 s, at two requests a second."""
    found = alerts_of(run_of(STEADY, performance__overhead_s=0.4, slo__0__window_s=600.0, slo__0__threshold_s=0.1))
    assert [a.usable for a in found] == [False, False, True]
    assert found[2].in_short == pytest.approx(10.0)
    assert [a.fired for a in found] == [0, 0, 1]
    assert found[0].otherwise_s is None, "one alert asks for more than everybody"
    assert not found[0].possible


def test_what_would_sound_later_is_told() -> None:
    """A tenth is refused all the time: twice the budget; of the slow alert's 3 days it takes half, of a run nothing."""
    late = [t for t in STEADY if round(t * 2 - 0.5) % 10]
    pairs = [t for t in STEADY if not round(t * 2 - 0.5) % 10]
    result = run_of(
        late + pairs + pairs, performance__overhead_s=0.4, admission__max_outstanding=1, slo__0__target=0.95,
        slo__0__window_s=30 * 86400.0,
    )  # fmt: skip
    found = alerts_of(result)
    scored = result.scored(result.scenario.slo[0])
    share = float((scored.valid & ~scored.good).sum() / scored.valid.sum())
    assert share == pytest.approx(60 / 660, abs=1e-3)
    assert [a.fired for a in found] == [0, 0, 0]
    assert [a.otherwise_s for a in found] == [None, None, detected_after(1.0, 0.95, RULES[2].long_s, share)]


def test_without_a_budget_there_are_no_alerts() -> None:
    assert alerts_of(run_of(STEADY), target=1.0) == ()
    assert alerts_of(run_of(NOBODY)) == ()


def test_what_is_known_when() -> None:
    """Three at once, one at a time, the third refused: first words after 1 and 2 s."""
    result = run_of([10.0, 10.0, 10.0], admission__max_outstanding=2)
    objective = result.scenario.slo[0]
    assert sorted(seen_s(result, objective)) == [10.0, 11.0, 12.0]
    assert sorted(seen_s(result, objective.model_copy(update={"metric": "queue"}))) == [10.0, 10.0, 11.0]
    short = run_of([10.0, 10.0], run__horizon_s=11.5)
    assert np.isnan(seen_s(short, objective)).sum() == 1, "still under way: nobody can measure it"
