"""Replicas over time, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

from engine.outcome.replicas import Spans
from tests.outcome.scaled import run


def spans() -> Spans:
    return Spans(np.array([0, 0, 1]), np.array([0.0, 5.0, 2.0]), np.array([10.0, 20.0, 4.0]))


def test_seconds_inside_a_window() -> None:
    end = np.array([12.0, 3.0])
    np.testing.assert_array_equal(spans().seconds(0.0, end), [17.0, 1.0])
    np.testing.assert_array_equal(spans().seconds(6.0, end), [10.0, 0.0])


def test_counts_at_moments_begin_with_the_start_and_end_before_the_end() -> None:
    assert spans().count(0, np.array([0.0, 4.9, 5.0, 9.9, 10.0, 20.0])).tolist() == [1, 1, 2, 2, 1, 0]
    assert spans().count(1, np.array([1.9, 2.0, 4.0])).tolist() == [0, 1, 0]
    assert spans().most(2) == 2


def test_stretches_are_cut_at_the_end_of_their_run() -> None:
    found = spans().cut(np.array([5.0, 3.0]))
    assert found.seed.tolist() == [0, 1]
    assert found.end_s.tolist() == [5.0, 3.0]


def test_replicas_cost_from_their_order_on() -> None:
    result = run()
    # One all the time, one from 105 and one from 120 on, though of use 40 s later.
    paid = (600 + 495 + 480) / 3600
    found = result.summary()["autoscaler"]
    assert isinstance(found, dict)
    assert found["replica_hours"] == pytest.approx(paid)
    assert found["mean_ready"] == pytest.approx((600 + 455 + 440) / 600)
    assert found["most_ready"] == 3
    assert result.cost.per_hour == pytest.approx(3.6 * paid * 6)
    assert result.replicas.starting.seconds(0.0, result.run.horizon_s).tolist() == [80.0]


def test_a_start_that_is_called_off_is_paid_for_and_never_ready() -> None:
    result = run({"autoscaler.count_starting": False})
    lives, r, end = result.run.lives, result.replicas, result.run.horizon_s
    assert lives is not None
    off = np.isinf(lives.ready_s)
    assert off.any()
    seconds = {name: float(getattr(r, name).seconds(0.0, end)[0]) for name in ("paid", "starting", "working", "ready")}
    assert seconds["paid"] == pytest.approx(seconds["starting"] + seconds["working"])
    assert seconds["ready"] <= seconds["working"]
    assert seconds["starting"] == pytest.approx(
        40.0 * (~off).sum() - 40.0 + (lives.gone_s - lives.ordered_s)[off].sum()
    )


def test_a_fixed_fleet_is_there_all_the_time() -> None:
    result = run({"autoscaler.policy": "none", "fleet.replicas": 3})
    assert result.run.lives is None
    assert result.summary()["autoscaler"] is None
    assert result.episodes is None
    assert result.replicas.paid.seconds(0.0, result.run.horizon_s).tolist() == [1800.0]
    assert result.cost.per_hour == pytest.approx(3 * 3.6)


def test_the_timeline_agrees() -> None:
    frame = run().timeline
    assert (frame["replicas_ready"] * frame["width_s"]).sum() == pytest.approx(600 + 455 + 440)
    assert (frame["replicas_starting"] * frame["width_s"]).sum() == pytest.approx(80)
    assert frame["replicas_wanted"].max() == 3
    np.testing.assert_allclose(frame["capacity_rps"], frame["replicas_ready"], rtol=1e-9)
