"""Autoscaler lag, worked out by hand, and taken apart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from engine import Result
from engine.outcome import demand
from engine.outcome.relief import Part, Relief, parts, relief
from tests.outcome.scaled import SCENARIO, run

STAGES = ["provision", "image_pull", "weights_load", "warmup"]
SLOW = {"autoscaler.interval_s": 60}


def told(changes: dict[str, Any] | None = None) -> Relief:
    found = relief(run(changes))
    assert found is not None
    return found


def before_drain(made_of: tuple[Part, ...]) -> float:
    return sum(part.seconds for part in made_of if part.stage != "drain")


def test_an_episode_by_hand() -> None:
    # Demand is what came in 30 s: 15, and from 100 on 1.5 a second more. It passes 30 at 110 + 1. The tick at 120 sees
    # 2 a second and orders 2 more (2 / 0.7); 40 s later three can do 3 a second.
    (episode,) = run(SLOW).episodes or ()
    assert (episode.demand_crossed_s, episode.decided_s, episode.ready_s) == (111.0, 120.0, 160.0)
    assert (episode.lag_s, episode.detection_s, episode.provisioning_s) == (49.0, 9.0, 40.0)
    assert episode.spare_replicas == 1
    # Above 1 a second by 1.5/30 more each second from 111 to 130, by 1 until 160.
    above = [min(1.5 * (t - 110) + 0.5, 30) / 30 for t in range(111, 160)]
    assert episode.unmet_requests == pytest.approx(sum(above), abs=1.0)


def test_the_queue_has_drained_when_it_is_as_long_as_before() -> None:
    (episode,) = run(SLOW).episodes or ()
    # 2 a second come from 100 to 160 and 1 leaves: 60 are left, of which 3 are being served and 10 waited at 111. Three
    # replicas serve 3 a second, so 1 fewer each second.
    assert episode.drained_s == pytest.approx(160 + 60 - 3 - 10, abs=4)


def test_who_came_before_it_drained_and_waited_is_harmed() -> None:
    result = run(SLOW)
    (episode,) = result.episodes or ()
    a = result.run.attempts
    assert episode.drained_s is not None
    inside = (a.arrival_s >= 111) & (a.arrival_s <= episode.drained_s)
    # All who came until help was there: then the router sends everybody to the new ones.
    assert episode.harmed == (inside & (a.scheduled_s - a.arrival_s > 0.5)).sum() == 2 * (160 - 111)


def test_the_lag_is_detection_and_the_stages_of_a_start() -> None:
    found = told(SLOW).parts
    assert [part.stage for part in found] == ["detection", *STAGES, "drain"]
    assert [part.seconds for part in found[:-1]] == pytest.approx([9, 10, 15, 10, 5])
    assert [part.start_s for part in found[:-1]] == pytest.approx([0, 9, 19, 34, 44])


def test_a_decision_ahead_of_demand_has_a_negative_detection() -> None:
    (episode,), found = run().episodes or (), told().parts
    assert (episode.decided_s, episode.detection_s, episode.lag_s) == (105.0, -6.0, 34.0)
    assert found[0] == Part("detection", 0.0, -6.0)
    assert found[1].start_s == -6.0
    assert before_drain(found) == pytest.approx(34.0)


def test_several_orders_are_a_part_of_their_own() -> None:
    # 4 a second need 4 replicas and more; with at most one more a tick the last needed is ordered late.
    slow_growth = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}
    found = told({"traffic.shape": {"kind": "steps", "points": [[100, 8.0]]}, "autoscaler.hpa.behavior": slow_growth})
    assert found.episode is not None
    stages = [part.stage for part in found.parts]
    assert "orders" in stages
    assert before_drain(found.parts) == pytest.approx(found.episode.lag_s)


def test_demand_that_falls_before_help_is_there_cuts_the_start_short() -> None:
    short = {"kind": "steps", "points": [[100, 4.0], [125, 0.2]]}
    found = told(SLOW | {"traffic.shape": short, "autoscaler.startup.provision_s": 300})
    assert found.episode is not None
    assert found.episode.ready_s is not None
    assert found.episode.ready_s < 200
    assert [part.stage for part in found.parts if part.stage != "drain"] == ["detection", "provision"]
    assert before_drain(found.parts) == pytest.approx(found.episode.lag_s)


def test_without_a_decision_there_is_nothing_to_take_apart() -> None:
    never = {"autoscaler.metric": "utilization", "autoscaler.target": 0.95}
    found = told(never)
    assert found.episode is not None
    assert (found.episode.decided_s, found.episode.ready_s, found.episode.lag_s) == (None, None, None)
    assert [part.stage for part in found.parts] == ["alone"]
    assert found.lags_s == (None,)
    assert [trap.kind for trap in found.traps] == ["never_up"]


def test_quiet_traffic_has_no_episode() -> None:
    found = told({"traffic.shape": {"kind": "steady"}})
    assert (found.episode, found.parts, found.lags_s, found.harmed) == (None, (), (), 0.0)


def test_nothing_arrives() -> None:
    found = told({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})
    assert found.offered == 0
    assert found.episode is None


def test_two_episodes_share_no_request() -> None:
    twice = {"kind": "steps", "points": [[100, 4.0], [160, 0.8], [220, 8.0]]}
    result = run(SLOW | {"traffic.shape": twice, "autoscaler.max_replicas": 1})
    a, episodes = result.run.attempts, result.episodes or ()
    assert len(episodes) == 2
    assert episodes[0].drained_s is None or episodes[0].drained_s > episodes[1].demand_crossed_s
    late = ~(a.scheduled_s - a.arrival_s <= 0.5) & (a.arrival_s >= episodes[0].demand_crossed_s)
    assert sum(e.harmed for e in episodes) <= late.sum()


SPIKE = {"kind": "spike", "at_s": 100, "factor": 14, "rise_s": 20, "hold_s": 120, "fall_s": 30}
RANDOM = {"traffic.process": "poisson", "traffic.shape": SPIKE, "fleet.routing.policy": "round_robin", "run.seeds": 4,
          "run.horizon_s": 400}  # fmt: skip


@pytest.mark.parametrize("policy", ["hpa", "keda", "knative", "ray_serve", "aibrix"])
@pytest.mark.parametrize("cv", [0.0, 0.7])
def test_in_every_episode_the_parts_sum_to_the_lag(policy: str, cv: float) -> None:
    result: Result = run(RANDOM | {"autoscaler.policy": policy, "autoscaler.startup.cv": cv})
    lives = result.run.lives
    assert lives is not None
    episodes = result.episodes or ()
    assert episodes
    for e in episodes:
        end = float(result.run.horizon_s[e.seed])
        made_of = parts(e, lives, result.scenario.autoscaler.startup, end)
        until = end if e.ready_s is None else e.ready_s
        assert before_drain(made_of) == pytest.approx(until - e.demand_crossed_s)
        chain = [part for part in made_of if part.seconds > 0]
        for one, other in pairwise(chain):
            if one.start_s >= 0:
                assert other.start_s == pytest.approx(one.start_s + one.seconds)
        if e.lag_s is not None and e.decided_s is not None:
            assert e.lag_s == pytest.approx(e.detection_s + e.provisioning_s)  # type: ignore[operator]


def test_the_run_that_is_shown_has_the_median_lag() -> None:
    found = told(RANDOM)
    known = sorted(np.inf if lag is None else lag for lag in found.lags_s)
    assert found.typical == known[(len(known) - 1) // 2]
    assert found.seed in range(SCENARIO.run.seed, SCENARIO.run.seed + 4)
    assert found.demand.time_s.size <= 600
    assert found.queue.size <= 600


def test_over_ordering_and_calling_off_are_told() -> None:
    kinds = {trap.kind: trap.value for trap in told({"autoscaler.count_starting": False}).traps}
    assert kinds["called_off"] == 1
    hasty = {"autoscaler.count_starting": False, "autoscaler.max_replicas": 8, "traffic.shape": {"kind": "steps",
             "points": [[100, 12.0]]}}  # fmt: skip
    assert "over_orders" in {trap.kind for trap in told(hasty).traps}


def test_leaving_and_coming_back_within_a_start_is_told() -> None:
    waves = {"kind": "steps", "points": [[100, 4.0], [200, 0.5], [260, 4.0], [360, 0.5], [420, 4.0]]}
    quick = {"traffic.shape": waves, "autoscaler.hpa.downscale_stabilization_s": 15}
    assert "flaps" in {trap.kind for trap in told(quick).traps}
    assert "flaps" not in {trap.kind for trap in told({"traffic.shape": waves}).traps}, "it waits for longer than that"


def test_demand_without_retries_is_that_of_those_who_never_ask_again() -> None:
    refusing = {"admission": {"max_outstanding": 1}, "autoscaler": {"policy": "none"}}
    once = run(refusing)
    again = run(refusing | {"traffic.client.max_retries": 3, "traffic.client.backoff_s": 1.0})
    assert again.run.attempts.attempt.max() > 0
    plain = demand(once.run, once.replicas, 0, 1.0).demand_rps
    assert np.allclose(demand(again.run, again.replicas, 0, 1.0, retries=False).demand_rps, plain)
    assert demand(again.run, again.replicas, 0, 1.0).demand_rps.max() > 1.5 * plain.max()
