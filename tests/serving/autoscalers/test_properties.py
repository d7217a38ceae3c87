"""What holds for every rule, whatever it is shown."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scenario import Autoscaler
from engine.serving import AUTOSCALERS, Reading
from engine.serving.autoscalers.hpa_limits import Behaving, Policy, Rules
from engine.serving.autoscalers.ray_serve import Delay
from tests.serving.autoscalers.drive import build

POLICIES = sorted(AUTOSCALERS)
totals = st.one_of(st.just(0.0), st.floats(0, 1e4), st.floats(0, 1e-6), st.floats(1e6, 1e12))
fleets = st.tuples(st.integers(0, 20), st.integers(0, 20), totals, totals)
BEHAVIOR = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 30}], "stabilizationWindowSeconds": 30},
    "scaleDown": {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}], "selectPolicy": "Min"},
}


def test_every_policy_of_the_scenario_has_its_rule() -> None:
    assert set(AUTOSCALERS) == set(get_args(Autoscaler.model_fields["policy"].annotation))


@pytest.mark.parametrize("policy", POLICIES)
def test_rules_are_documented(policy: str) -> None:
    assert AUTOSCALERS[policy].__doc__


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "none"])
@settings(max_examples=60, deadline=None)
@given(
    low=st.integers(0, 6),
    width=st.integers(0, 12),
    counts=st.booleans(),
    behavior=st.sampled_from([None, {}, BEHAVIOR]),
    seen=st.lists(fleets, min_size=1, max_size=12),
)
def test_what_is_wanted_is_within_the_bounds(
    policy: str, low: int, width: int, counts: bool, behavior: Any, seen: list[tuple[int, int, float, float]]
) -> None:
    high = max(low + width, 1)
    bounds = {"min_replicas": low, "max_replicas": high, "count_starting": counts}
    it = build(policy, 3, **bounds, hpa={"behavior": behavior}, schedule={"steps": [[20, 0], [40, 99]]}, target=3.0)
    for k, (ready, starting, total, short) in enumerate(seen, start=1):
        wish = it.decide(Reading(k * 30.0, ready, starting, total, short))
        assert type(wish) is int
        assert low <= wish <= high


@pytest.mark.parametrize("policy", ["hpa", "keda", "aibrix", "knative", "ray_serve"])
@settings(max_examples=80, deadline=None)
@given(ready=st.integers(1, 30), starting=st.integers(0, 30), totals=st.tuples(totals, totals))
def test_more_load_never_wants_less(policy: str, ready: int, starting: int, totals: tuple[float, float]) -> None:
    quiet = {"hpa": {"downscale_stabilization_s": 0}, "aibrix": {"cooldown_down_s": 0}, "max_replicas": 60}
    now = {"ray_serve": {"upscale_delay_s": 0, "downscale_delay_s": 0}}
    less, more = (
        build(policy, **quiet, **now).decide(Reading(30.0, ready, starting, total, total)) for total in sorted(totals)
    )
    assert less <= more


@settings(max_examples=100, deadline=None)
@given(ready=st.integers(1, 12), starting=st.integers(0, 12), total=st.floats(0, 1000))
def test_hpa_is_steady_once_it_has_what_it_wants(ready: int, starting: int, total: float) -> None:
    """Nothing is ordered twice while it starts, and a fleet that has all it wanted wants nothing else."""
    never_down = {"hpa": {"downscale_stabilization_s": 3600}, "max_replicas": 4096}
    it = build("hpa", **never_down)
    wanted, before, t_s = ready + starting, 0, 0.0
    while wanted != before and t_s < 3600:
        before, t_s = wanted, t_s + 15.0
        wanted = it.decide(Reading(t_s, ready, max(before - ready, 0), total, total))
    assert wanted <= max(ready + starting, -(-total // 32))
    assert wanted >= total / 32 / 1.1 - 1e-6


@settings(max_examples=60, deadline=None)
@given(wishes=st.lists(st.integers(1, 200), min_size=1, max_size=40), pods=st.integers(1, 9))
def test_a_policy_of_pods_a_period_is_kept(wishes: list[int], pods: int) -> None:
    limits = Behaving(up=Rules(0.0, (Policy("Pods", pods, 60.0),)))
    current, course = 1, [1]
    for k, wish in enumerate(wishes):
        current = limits.follow(15.0 * k, current, max(wish, current), 1, 1000)
        course.append(current)
    assert all(late - early <= pods for early, late in zip(course, course[4:], strict=False))


@settings(max_examples=150, deadline=None)
@given(wishes=st.lists(st.integers(0, 4), min_size=1, max_size=60), up=st.integers(0, 6), down=st.integers(0, 9))
def test_a_delay_is_a_wish_without_a_break(wishes: list[int], up: int, down: int) -> None:
    """Granted exactly when all wishes of the delay before it, and since the last grant, went the same way."""
    delay, has, since_grant = Delay(up, down), 2, 0
    for t, wish in enumerate(wishes):
        got = delay.grant(float(t), wish, has)
        length = (up if wish > has else down) + 1
        run = wishes[max(t + 1 - length, since_grant) : t + 1]
        held = len(run) == length and all((w > has) == (wish > has) and w != has for w in run)
        expected = (wish if wish > has or has == 1 else max(wish, 1)) if wish != has and held else has
        assert got == expected
        if wish != has and held:
            since_grant = t + 1
        has = got
