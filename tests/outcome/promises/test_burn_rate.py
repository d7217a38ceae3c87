"""Burn rates and budgets: the workbook's figures, and a run's budget by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Result
from engine.outcome.promises.budget import Budget, budget, downtime_s
from engine.outcome.promises.burn_rate import (
    PERIOD_S,
    RULES,
    burn_rate,
    consumed,
    detected_after,
    error_share,
    exhausted_after,
)
from tests.outcome.promises.build import run_of
from tests.outcome.promises.oracles import Row, of


@pytest.mark.parametrize("row", of("Burn_rate"), ids=lambda row: row.name)
def test_oracles(row: Row) -> None:
    p, burn = row.parameters, row.parameters["burn"]
    found = {
        "budget_consumed_fraction": lambda: consumed(burn, p["long_window_h"], p["period_h"]),
        "error_rate_threshold": lambda: error_share(burn, p["slo"]),
        "detection_time_min_at_100pct_errors": lambda: detected_after(burn, p["slo"], 60.0 * p["long_window_h"], 1.0),
        "time_to_exhaust_budget_h": lambda: exhausted_after(burn, p["period_h"]),
    }[row.quantity]()
    assert found == pytest.approx(row.value, rel=1e-12)


@pytest.mark.parametrize("row", of("Error_budget"), ids=lambda row: row.name)
def test_downtime(row: Row) -> None:
    assert downtime_s(row.parameters["slo"], row.parameters["days"] * 86400.0) / 60 == pytest.approx(row.value)


def test_rules_scale_with_the_window() -> None:
    """Shares of the budget stay; the table is that of 30 days."""
    assert [consumed(rule.burn, rule.long_s, PERIOD_S) for rule in RULES] == pytest.approx([0.02, 0.05, 0.1])
    day = [rule.scaled(86400.0) for rule in RULES]
    assert [(rule.long_s, rule.short_s) for rule in day] == [(120.0, 10.0), (720.0, 60.0), (8640.0, 720.0)]
    assert [consumed(rule.burn, rule.long_s, 86400.0) for rule in day] == pytest.approx([0.02, 0.05, 0.1])
    assert RULES[0].scaled(PERIOD_S) == RULES[0]


def test_a_pace_below_the_rule_is_never_detected() -> None:
    assert detected_after(6.0, 0.95, 100.0, 0.29) is None
    assert detected_after(6.0, 0.95, 100.0, 0.6) == pytest.approx(50.0)
    assert detected_after(1.0, 1.0, 100.0, 0.0) is None
    assert burn_rate(0.1, 0.95) == pytest.approx(2.0)
    assert burn_rate(0.1, 1.0) is None


def budget_of(result: Result) -> Budget:
    objective = result.scenario.slo[0]
    found = budget(result, objective, result.scored(objective))
    assert found is not None
    return found


QUIET = [10.0 * i + 5.0 for i in range(30)]
"""One in ten seconds: all in time."""
RUSH = [60.0] * 5
"""First words after 1, 2, 3, 4 and 5 s: three are late."""


class TestBudget:
    def test_by_hand(self) -> None:
        """35 requests in 300 s; a window of 60 s has 7, of which 0.7 may be bad; 3 are (he who comes at 65 s isn't)."""
        found = budget_of(run_of(QUIET + RUSH, slo__0__window="calendar"))
        assert found.used == pytest.approx(3 / 0.7)
        assert found.pace == pytest.approx(3 / 35 / 0.1)
        assert found.left[found.time_s < 59] == pytest.approx(1.0)
        assert found.left[(found.time_s > 61) & (found.time_s < 119)] == pytest.approx(1.0 - 3 / 0.7)
        assert found.left[found.time_s > 121] == pytest.approx(1.0), "a new window, a new budget"
        assert found.resets_s.tolist() == [60.0, 120.0, 180.0, 240.0]
        assert (found.left == found.worst).all(), "one run"

    def test_a_rolling_window_looks_back(self) -> None:
        found = budget_of(run_of(QUIET + RUSH))
        assert found.left[(found.time_s > 61) & (found.time_s < 119)] == pytest.approx(1.0 - 3 / 0.7)
        assert found.left[found.time_s > 121] == pytest.approx(1.0)
        assert not found.resets_s.size

    def test_a_window_longer_than_the_run(self) -> None:
        """The run goes on as it is: a window of 3,000 s has 350 requests, of which 35 may be bad."""
        for kind in ("rolling", "calendar"):
            found = budget_of(run_of(QUIET + RUSH, slo__0__window_s=3000.0, slo__0__window=kind))
            assert found.left[-1] == pytest.approx(1.0 - 3 / 35)
            assert found.used == pytest.approx(3 / 35)

    def test_the_steepest_slice(self) -> None:
        """Slices of 10 s: in that from 60 s on 3 of 6 were bad."""
        found = budget_of(run_of(QUIET + RUSH))
        assert (found.slice_s, found.steepest_at_s) == (10.0, 65.0)
        assert found.steepest == pytest.approx(0.5 / 0.1)

    def test_without_a_budget_or_requests(self) -> None:
        for result in (run_of(QUIET, slo__0__target=1.0), run_of([299.5])):
            assert budget(result, result.scenario.slo[0], result.scored(result.scenario.slo[0])) is None

    def test_the_worst_run_of_several(self) -> None:
        rng = np.random.default_rng(1)
        one = run_of(rng.uniform(0, 300, 200), run__seeds=2, traffic__trace__resample="blocks")
        found = budget_of(one)
        assert found.worst.min() <= found.left.min()
        assert found.used > 0
