"""The same traffic under each autoscaler's rule."""

from __future__ import annotations

import pytest

from engine import simulate
from engine.study import RULES, rule_outcome
from engine.study.rules import changes_for, plan
from tests.outcome.scaled import SCENARIO

S = SCENARIO.replace(
    {"run.horizon_s": 400, "run.seeds": 2, "fleet.routing.policy": "round_robin", "autoscaler.metric": "outstanding",
     "autoscaler.target": 2, "traffic.shape": {"kind": "steps", "points": [[120, 8.0]]},
     "slo": [{"metric": "queue", "threshold_s": 3.0, "target": 0.9}]}
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_an_outcome_is_what_the_scenario_with_its_changes_gives(rule: str) -> None:
    found = rule_outcome(S, rule)  # type: ignore[arg-type]
    assert found is not None
    changed = S.replace(found.changes)
    assert changed.autoscaler.policy == ("none" if rule == "fixed" else rule)
    result = simulate(changed)
    assert found.attainment == result.attainments[0].attainment
    assert found.per_hour == result.cost.per_hour
    assert (found.runs, found.rule) == (2, rule)
    if rule in ("schedule", "fixed"):
        assert (found.runs_short, found.lag_s) == (0, None), "whoever knows or has enough is never short"
        assert found.attainment >= 0.9  # type: ignore[operator]
    else:
        assert found.runs_short == 2
        assert found.lag_s is not None
        assert found.lag_s > 30, "whoever waits for the load waits for a start"


def test_the_rule_in_use_keeps_its_own_settings() -> None:
    mine = S.replace({"autoscaler.interval_s": 45})
    assert changes_for(mine, "hpa") == {}
    assert changes_for(mine, "keda")["autoscaler.interval_s"] is None


def test_a_plan_has_the_replicas_there_when_they_are_needed_and_keeps_them_as_long() -> None:
    waves = {"kind": "steps", "points": [[120, 8.0], [240, 1.0]]}
    steps = plan(S.replace({"traffic.shape": waves, "autoscaler.max_replicas": 9}))
    # 4 a second from 120 to 240, on replicas that do 1 each at 80 %: 5; otherwise 0.5: 1. Asked for 40 s ahead.
    assert steps[0] == (40.0, 5), "two minutes ahead is the start of the run already"
    assert steps[-1] == (280.0, 1), "given up a start before: at 240"
    assert plan(S.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})) == []


def test_no_fixed_fleet_keeps_what_cannot_be_kept() -> None:
    assert rule_outcome(S.replace({"slo": []}), "fixed") is None
