"""Errors that a scenario's verdict and captions speak of."""

from __future__ import annotations

import pytest

from engine.machine import confidence, replica_evidence, step_time_error
from engine.scenario import Scenario

AFTER = [{"class": "after one own point", "median_ape": 5.0, "p90_ape": 20.0}]


def test_they_are_those_of_the_scenario_s_class() -> None:
    s = Scenario.from_dict({})
    found, error = replica_evidence(s), step_time_error(s)
    assert found is not None
    assert error is not None
    assert (error.median, error.p90) == (found.median_ape / 100, found.p90_ape / 100)
    assert 0 < error.median < error.p90 < 1
    assert not error.own_point


def test_nobody_knows_those_of_a_measured_profile() -> None:
    assert step_time_error(Scenario.from_dict({"performance": {"kind": "linear", "overhead_s": 0.1}})) is None


def test_a_measurement_of_one_s_own_makes_them_smaller_never_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Scenario.from_dict({"performance": {"scale": {"tpot": 1.2, "prefill": 1.2}}})
    plain = step_time_error(Scenario.from_dict({}))
    assert plain is not None
    for median in (5.0, 80.0):
        monkeypatch.setattr(confidence, "held_out_table", lambda m=median: [AFTER[0] | {"median_ape": m}])
        error = step_time_error(own)
        assert error is not None
        assert error.median == min(plain.median, median / 100)
