"""Replicas that come and go, worked out by hand; the fleet is that of ``tests.outcome.scaled``."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Result, simulate
from engine.serving import REASONS, Lives
from tests.outcome.scaled import SCENARIO, accounted, run


def lives_of(result: Result) -> Lives:
    assert accounted(result)
    assert result.run.lives is not None
    return result.run.lives


def wishes(lives: Lives, seed: int = 0) -> list[tuple[float, int]]:
    """(moment, replicas) of each change of mind."""
    mine = lives.tick_seed == seed
    pairs = list(zip(lives.tick_s[mine].tolist(), lives.wanted[mine].tolist(), strict=True))
    return [pair for i, pair in enumerate(pairs) if i == 0 or pair[1] != pairs[i - 1][1]]


def test_orders_come_at_the_ticks_at_which_the_metric_says_so_and_are_of_use_one_start_later() -> None:
    # At 105 the last 15 s had 4 + 10 or 11 arrivals, 0.93 to 1 a second: 2 replicas at 0.7. At 120 there were 2 a
    # second: 3 replicas.
    lives = lives_of(run())
    assert wishes(lives) == [(15.0, 1), (105.0, 2), (120.0, 3)]
    assert lives.ordered_s.tolist() == [0.0, 105.0, 120.0]
    assert lives.ready_s.tolist() == [0.0, 145.0, 160.0]
    assert np.isinf(lives.drained_from_s).all()
    assert np.isinf(lives.gone_s).all()


def test_nobody_is_served_by_a_replica_before_it_is_ready() -> None:
    result = run()
    lives, a = lives_of(result), result.run.attempts
    for replica, ready in zip(lives.replica, lives.ready_s, strict=True):
        began = a.scheduled_s[a.replica == replica]
        assert began.size
        assert began.min() >= ready


def test_without_counting_starting_replicas_a_shortage_is_answered_again_at_every_tick() -> None:
    lives = lives_of(run({"autoscaler.count_starting": False}))
    # At 120 the one that is ready asks for 2 more, though one is on its way; at 135 again, with three on theirs.
    assert wishes(lives)[:4] == [(15.0, 1), (105.0, 2), (120.0, 4), (135.0, 6)]
    assert lives.wanted.max() > run().run.lives.wanted.max()  # type: ignore[union-attr]
    called_off = np.isinf(lives.ready_s)
    assert called_off.sum() == 1, "what was ordered at 150 is called off when the first are there"
    assert (lives.gone_s[called_off] < lives.ordered_s[called_off] + 40).all()


def test_a_replica_that_is_removed_finishes_what_it_has_and_then_leaves() -> None:
    # With a target of 2 requests in the system, 16 replicas are ordered; they are all but one removed by 540.
    result = run({"autoscaler.metric": "outstanding", "autoscaler.target": 2})
    lives, a = lives_of(result), result.run.attempts
    removed = np.isfinite(lives.drained_from_s)
    assert removed.sum() >= 15
    assert (lives.gone_s[removed] >= lives.drained_from_s[removed]).all()
    assert (lives.gone_s > lives.drained_from_s).any(), "one was at work"
    for replica, ready, drain, gone in zip(
        lives.replica[removed],
        lives.ready_s[removed],
        lives.drained_from_s[removed],
        lives.gone_s[removed],
        strict=True,
    ):
        here = (a.replica == replica) & (a.arrival_s >= ready) & (a.arrival_s < gone)
        assert (a.arrival_s[here] <= drain).all(), "nothing new after it was told to go"
        assert gone == pytest.approx(max(drain, a.finish_s[here].max(initial=0.0)))


def test_scaled_to_zero_everybody_is_refused_until_the_first_replica_is_back() -> None:
    asleep = {"kind": "steps", "points": [[100, 0.0], [400, 1.0]]}
    changes = {"traffic.shape": asleep, "autoscaler.policy": "keda", "autoscaler.metric_window_s": None}
    result = run(changes | {"autoscaler.min_replicas": 0, "autoscaler.keda.cooldown_s": 60})
    lives, a = lives_of(result), result.run.attempts
    # Polls every 30 s see the last minute: activity at 150 for the last time, so 210 isn't later than 60 s after it.
    assert wishes(lives) == [(15.0, 1), (240.0, 0), (420.0, 1)]
    refused = a.reason == REASONS.index("no_replica")
    assert refused.sum() == result.summary()["rejected_by_reason"]["no_replica"]  # type: ignore[index]
    assert (a.arrival_s[refused] > 240).all()
    assert a.arrival_s[refused].max() < 460 <= a.arrival_s[~refused & (a.arrival_s > 240)].min()


def test_starts_that_vary_are_the_same_for_the_same_seed_and_have_the_mean() -> None:
    varied = SCENARIO.replace({"autoscaler.startup.cv": 0.5, "run.seeds": 2})
    one, again = (simulate(varied).run.lives for _ in range(2))
    assert one is not None
    assert again is not None
    np.testing.assert_array_equal(one.ready_s, again.ready_s)
    took = (one.ready_s - one.ordered_s)[one.ordered_s > 0]
    assert np.unique(took).size == took.size, "no two alike, in no seed"
    later = simulate(varied.replace({"run.seed": 2, "run.seeds": 1})).run.lives
    assert later is not None
    np.testing.assert_array_equal(later.ready_s, one.ready_s[one.seed == 1])
    many = simulate(
        varied.replace({"run.seeds": 200, "run.horizon_s": 125, "fleet.routing.policy": "round_robin"})
    ).run.lives
    assert many is not None
    starts = (many.ready_s - many.ordered_s)[many.ordered_s > 0]
    assert starts.mean() == pytest.approx(40, rel=0.1)
    assert starts.std() / starts.mean() == pytest.approx(0.5, rel=0.15)


# A window that isn't a multiple of a step, whose ends would otherwise be all that is ever seen.
FLOOD = {"traffic.shape": {"kind": "steps", "points": [[100, 40.0]]}, "fleet.routing.policy": "round_robin",
         "autoscaler.metric_window_s": 31.4, "run.horizon_s": 400}  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "target", "most"),
    [
        ("utilization", 0.95, 1),  # busy all the time is 1.0: within a tenth of the target
        ("running", 1.0, 1),  # one at a time: never more than the target
        ("running", 0.5, 16),  # and always twice it
        ("outstanding", 2.0, 16),  # which sees the queue
    ],
)
def test_a_metric_that_saturates_asks_for_nothing_or_for_all(metric: str, target: float, most: int) -> None:
    lives = lives_of(run(FLOOD | {"autoscaler.metric": metric, "autoscaler.target": target}))
    assert lives.wanted.max() == most


def test_a_metric_of_shares_can_only_ask_for_so_many_times_what_is_there() -> None:
    lives = lives_of(run(FLOOD | {"fleet.replicas": 4, "autoscaler.metric": "utilization", "autoscaler.target": 0.8}))
    first = next(count for _, count in wishes(lives) if count > 4)
    assert first == 5, "20 a second for 4 replicas that do 1 each, and it asks for 4 / 0.8"


@pytest.mark.parametrize("policy", ["hpa", "keda", "knative", "ray_serve", "aibrix"])
def test_nothing_is_lost_and_the_bounds_hold(policy: str) -> None:
    changes = {"autoscaler.policy": policy, "autoscaler.max_replicas": 5, "run.horizon_s": 300}
    lives = lives_of(run(changes | {"autoscaler.metric": "outstanding", "autoscaler.target": 2}))
    assert lives.wanted.max() == 5
    assert lives.wanted.min() >= 1
    seen = np.array([((lives.ready_s <= t) & (lives.drained_from_s > t)).sum() for t in range(300)])
    assert seen.max() <= 5
