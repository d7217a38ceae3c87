"""The fewest spare replicas: with them the promise is kept, with one fewer it isn't."""

from __future__ import annotations

import pytest

from engine import Scenario, simulate
from engine.scenario import preset
from engine.study import Spare, spare
from engine.study.candidates import with_spare
from tests.outcome.scaled import SCENARIO

QUICK = SCENARIO.replace(
    {"run.horizon_s": 300, "run.seeds": 3, "traffic.process": "poisson", "fleet.routing.policy": "round_robin",
     "slo": [{"metric": "queue", "threshold_s": 3.0, "target": 0.9}]}
)  # fmt: skip


def attainment(s: Scenario, count: int) -> float:
    found = simulate(s.replace(with_spare(s, count))).attainments[0].attainment
    assert found is not None
    return found


def checked(s: Scenario) -> Spare:
    """The answer, after a look at what the engine says about it."""
    found = spare(s)
    assert found is not None
    assert found.attainment == attainment(s, found.spare) >= s.slo[0].target
    if found.spare:
        assert found.attainment_with_fewer == attainment(s, found.spare - 1)
        assert found.attainment_with_fewer < s.slo[0].target
    return found


def test_with_them_the_promise_is_kept_and_with_one_fewer_it_is_not() -> None:
    found = checked(QUICK)
    assert found.spare >= 2
    assert found.replicas == 1 + found.spare
    assert found.attainment_without < 0.9
    assert found.price == pytest.approx(3.6 * found.spare)
    assert found.cost is not None
    assert found.cost_without is not None
    assert found.more_per_hour == pytest.approx(found.cost - found.cost_without)
    assert 0 < found.more_per_hour <= found.price + 1e-9, "an autoscaler orders fewer for them"


def test_a_fixed_fleet_has_an_answer_too() -> None:
    found = checked(QUICK.replace({"autoscaler.policy": "none"}))
    assert set(found.changes) == {"fleet.replicas"}
    assert found.more_per_hour == pytest.approx(found.price)


def test_a_kept_promise_needs_none() -> None:
    found = checked(QUICK.replace({"traffic.shape": {"kind": "steady"}, "fleet.replicas": 3}))
    assert (found.spare, found.price, found.attainment_with_fewer) == (0, 0.0, None)


def test_what_no_number_of_replicas_keeps() -> None:
    impossible = QUICK.replace({"slo": [{"metric": "e2e", "threshold_s": 0.5, "target": 0.9}], "run.seeds": 1})
    assert spare(impossible, most=8) is None
    assert spare(QUICK.replace({"slo": []})) is None


def test_spare_replicas_stay_and_leave_the_autoscaler_its_room() -> None:
    s = SCENARIO.replace({"fleet.replicas": 4, "autoscaler.min_replicas": 2, "autoscaler.max_replicas": 5})
    assert with_spare(s, 3) == {"fleet.replicas": 7, "autoscaler.min_replicas": 7, "autoscaler.max_replicas": 7}
    assert with_spare(s, 0) == {"fleet.replicas": 4}


def test_spare_capacity_bridges_the_nine_minutes() -> None:
    s = preset("nine-minutes").scenario
    found = spare(s)
    assert found is not None
    assert found.runs == s.run.seeds, "judged by the runs that the page shows"
    assert found.attainment_with_fewer is not None
    assert found.attainment >= s.slo[0].target > found.attainment_with_fewer
    assert found.attainment_without < 0.6
    assert 1 <= found.spare <= 4
