"""Each controller through a short run that can be worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.serving import Reading
from tests.serving.autoscalers.drive import build, drive, step

START_S = 540.0


class TestTicks:
    @pytest.mark.parametrize(
        ("policy", "interval_s", "window_s", "short_s"),
        [
            ("hpa", 15, 60, None),
            ("keda", 15, 60, None),
            ("knative", 2, 60, 6),
            ("ray_serve", 0.1, 30, None),
            ("aibrix", 15, 60, None),
        ],
    )
    def test_each_rule_has_its_own(self, policy: str, interval_s: float, window_s: float, short_s: float) -> None:
        it = build(policy)
        assert (it.interval_s, it.window_s, it.short_window_s) == (interval_s, window_s, short_s)
        assert it.next_tick_s() == interval_s

    def test_the_scenario_may_say_otherwise(self) -> None:
        it = build("knative", interval_s=7.0, metric_window_s=90.0)
        assert (it.interval_s, it.window_s, it.short_window_s) == (7.0, 90.0, 9.0)
        assert build("knative", metric_window_s=4.0).short_window_s == 1.0
        assert build("keda", keda={"polling_s": 10.0}).interval_s == 10.0

    def test_ticks_are_multiples_without_gaps(self) -> None:
        it, t_s = build("ray_serve"), None
        for k in range(1, 20_000):
            t_s = it.next_tick_s(t_s)
            assert t_s == k * 0.1

    def test_between_two_ticks(self) -> None:
        assert build("hpa").next_tick_s(44.9) == 45.0
        assert build("hpa").next_tick_s(45.0) == 60.0


class TestHpa:
    def test_a_step_up_and_down(self) -> None:
        """64 is right for two. 256 wants eight: twice two at once, twice four at the next tick, starting ones counted
        as idle. After the step down at 1000 the last wish for eight, of 990, holds until it is older than 300 s."""
        load = step(100.0, 64.0, 256.0)
        found = drive(build("hpa", 2), 2, lambda t_s: load(t_s) if t_s < 1000 else 64.0, 1500.0, START_S)
        assert found == [(105, 4), (120, 8), (1305, 2)]

    def test_with_behavior_an_age_of_the_window_is_outside(self) -> None:
        found = drive(build("hpa", 8, hpa={"behavior": {}}), 8, step(100.0, 256.0, 64.0), 600.0)
        assert found == [(390, 2)]  # the last wish for eight is of 90

    def test_behavior_limits_the_rate(self) -> None:
        up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
        found = drive(build("hpa", hpa={"behavior": {"scaleUp": up}}), 1, lambda _: 128.0, 300.0)
        assert found == [(15, 2), (75, 3), (135, 4)]

    def test_starting_replicas_that_are_not_counted_are_ordered_again(self) -> None:
        found = drive(build("hpa", 2, count_starting=False), 2, lambda _: 256.0, 200.0, START_S)
        assert found == [(15, 4), (30, 6), (45, 8), (60, 10), (75, 12), (90, 14), (105, 16)]

    def test_within_tolerance_nothing_happens(self) -> None:
        assert drive(build("hpa", 10), 10, lambda _: 32 * 10 * 1.1, 900.0) == []
        assert drive(build("hpa", 10), 10, lambda _: 32 * 10 * 1.1001, 900.0) == [(15, 12)]

    def test_starting_replicas_count_as_idle_when_growing_and_not_when_shrinking(self) -> None:
        assert build("hpa").decide(Reading(15.0, 2, 6, 32 * 8 * 1.05, 0.0)) == 8
        assert build("hpa", hpa={"downscale_stabilization_s": 0}).decide(Reading(15.0, 2, 6, 32.0, 0.0)) == 1

    @pytest.mark.parametrize("settings", [{}, {"hpa": {"behavior": {}}}])
    def test_outside_the_bounds_it_comes_back_at_once(self, settings: dict[str, Any]) -> None:
        assert drive(build("hpa", 9, max_replicas=4, **settings), 9, lambda _: 9e9, 20.0) == [(15, 4)]
        assert drive(build("hpa", 1, min_replicas=3, **settings), 1, lambda _: 0.0, 20.0) == [(15, 3)]

    def test_without_a_ready_replica_nothing_changes(self) -> None:
        assert build("hpa").decide(Reading(15.0, 0, 3, 1e6, 1e6)) == 3

    def test_the_last_replica_stays(self) -> None:
        found = drive(build("hpa", 2, min_replicas=0, hpa={"downscale_stabilization_s": 0}), 2, lambda _: 0.0, 100.0)
        assert found == [(15, 1)]

    def test_noise_of_an_average_orders_nothing(self) -> None:
        assert drive(build("hpa", 2, target=16.0), 2, lambda _: 64.0000000001, 20.0) == [(15, 4)]
        assert drive(build("aibrix", 3, target=16.0), 3, lambda _: 64.0000000001, 20.0) == [(15, 4)]
        small = build("hpa", 3, metric="kv_usage", target=0.3)
        assert drive(small, 3, lambda _: 0.7 * 3, 60.0) == [(15, 6), (30, 7)]


class TestKnative:
    def test_panic_sees_what_the_stable_window_does_not(self) -> None:
        """Target 10 of a replica. At 2 the short window alone asks for three; that holds for a stable window."""
        settings = {"target": 10.0, "knative": {"target_utilization_percent": 100}}
        found = drive(build("knative", **settings), 1, lambda _: 5.0, 100.0, short=step(3.0, 30.0, 5.0))
        assert found == [(2, 3), (64, 1)]

    def test_below_the_threshold_only_the_stable_window_counts(self) -> None:
        settings = {"target": 10.0, "knative": {"target_utilization_percent": 100}}
        found = drive(build("knative", **settings), 1, lambda _: 15.0, 10.0, short=lambda _: 10.0)
        assert found == [(2, 2)]

    def test_several_replicas_start_in_panic(self) -> None:
        assert drive(build("knative", 8), 8, lambda _: 0.0, 100.0) == [(62, 4), (64, 2), (66, 1)]

    def test_to_zero_after_the_grace_and_back(self) -> None:
        load = step(300.0, 0.0, 3.0)
        found = drive(build("knative", min_replicas=0), 1, load, 400.0, START_S)
        assert found == [(32, 0), (300, 1)]

    def test_what_is_starting_is_not_given_up(self) -> None:
        load = step(310.0, 3.0, 0.0)
        it = build("knative", min_replicas=0)
        assert drive(it, 0, load, 900.0, START_S)[0] == (2, 1)
        assert it.decide(Reading(902.0, 0, 1, 0.0, 0.0)) == 1

    def test_a_delay_holds_the_highest(self) -> None:
        it = build("knative", target=10.0, knative={"scale_down_delay_s": 100, "panic_threshold_percent": 1000})
        assert drive(it, 1, step(11.0, 20.0, 7.0), 300.0) == [(2, 3), (110, 1)]


class TestKeda:
    def test_to_zero_and_back(self) -> None:
        """Polls at multiples of 30. Nothing for more than 300 s at 330; the load of 340 is seen at 360; the HPA then
        shares 320 out, starting replicas included: four, eight, ten."""
        found = drive(build("keda", min_replicas=0), 1, step(340.0, 0.0, 320.0), 800.0, START_S)
        assert found == [(330, 0), (360, 1), (375, 4), (390, 8), (405, 10)]

    def test_activation_is_above_the_threshold(self) -> None:
        settings = {"min_replicas": 0, "keda": {"activation": 5, "cooldown_s": 0}}
        assert drive(build("keda", **settings), 1, lambda _: 5.0, 100.0) == [(30, 0)]
        assert drive(build("keda", **settings), 1, lambda _: 5.1, 100.0) == []

    def test_a_minimum_is_the_first_step(self) -> None:
        assert build("keda", min_replicas=2).decide(Reading(15.0, 0, 0, 0.0, 0.0)) == 2

    def test_uncounted_replicas_do_not_wake_it_again(self) -> None:
        it = build("keda", min_replicas=0, count_starting=False)
        assert [it.decide(Reading(t_s, 0, starting, 1.0, 1.0)) for t_s, starting in ((30, 0), (60, 1))] == [1, 2]


class TestRayServe:
    def test_a_wish_must_hold(self) -> None:
        """8 ongoing, 2 a replica. A wish of the tick at 0.1 is granted at 30.1; the way down takes 600 s and stops at
        one, from where it takes 600 s more."""
        load = step(100.05, 8.0, 0.0)
        found = drive(build("ray_serve", target=2.0, min_replicas=0), 1, load, 1400.0)
        assert [(round(t_s, 3), wish) for t_s, wish in found] == [(30.1, 4), (700.1, 1), (1300.2, 0)]

    def test_a_blip_starts_the_time_anew(self) -> None:
        found = drive(build("ray_serve", target=2.0), 1, lambda t_s: 2.0 if 20 < t_s < 20.15 else 8.0, 100.0)
        assert [(round(t_s, 3), wish) for t_s, wish in found] == [(50.2, 4)]

    def test_from_zero_at_once_and_only_once(self) -> None:
        for counts in (True, False):
            it = build("ray_serve", min_replicas=0, count_starting=counts, ray_serve={"upscaling_factor": 1.5})
            found = drive(it, 0, lambda _: 100.0, 400.0, START_S)
            assert found == [(0.1, 2)]


class TestAibrix:
    def test_up_without_a_pause_and_down_with_one(self) -> None:
        found = drive(build("aibrix", 1), 1, step(100.0, 32 * 8, 0.0), 1000.0)
        assert found == [(15, 2), (30, 4), (45, 8), (105, 4), (405, 2), (705, 1)]

    def test_starting_replicas_are_not_ordered_twice(self) -> None:
        found = drive(build("aibrix", 2), 2, lambda _: 32 * 8, 300.0, START_S)
        assert found == [(15, 4), (30, 8)]


PLAN = {"steps": [[600, 4], [1200, 2]], "lead_s": 540}


class TestSchedule:
    def test_asked_ahead_and_just_in_time(self) -> None:
        it = build("schedule", 1, schedule=PLAN)
        assert drive(it, 1, lambda _: 0.0, 1e9, START_S) == [(60, 4), (660, 2)]
        assert it.next_tick_s(660.0) == math.inf

    def test_before_the_first_step_the_fleet_is_as_it_was(self) -> None:
        it = build("schedule", 3, schedule=PLAN, interval_s=50.0)
        assert it.decide(Reading(50.0, 3, 0, 0.0, 0.0)) == 3
        assert drive(it, 3, lambda _: 0.0, 2000.0) == [(100, 4), (700, 2)]

    def test_what_was_due_before_the_start_is_due_at_the_start(self) -> None:
        plan = {"steps": [[100, 2], [500, 4], [700, 6]], "lead_s": 540}
        assert drive(build("schedule", schedule=plan), 1, lambda _: 0.0, 1e9) == [(0, 4), (160, 6)]

    def test_a_plan_names_totals_and_keeps_to_the_bounds(self) -> None:
        it = build("schedule", schedule={"steps": [[0, 99]]}, max_replicas=12, count_starting=False)
        assert it.decide(Reading(5.0, 1, 6, 0.0, 0.0)) == 12
        few = build("schedule", schedule={"steps": [[0, 5]]}, count_starting=False)
        assert few.decide(Reading(5.0, 1, 4, 0.0, 0.0)) == 5


def test_none_is_never_asked() -> None:
    it = build("none", 3, max_replicas=2)
    assert it.next_tick_s() == math.inf
    assert it.decide(Reading(1.0, 3, 0, 1e9, 1e9)) == 3
