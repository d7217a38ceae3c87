"""The group over time: averages of the timeline, and when trouble begins."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from engine import Result, Scenario, simulate
from engine.outcome import GroupCourse, group_course
from engine.scenario import preset


@cache
def wordy() -> tuple[Result, GroupCourse]:
    result = simulate(preset("wordy").scenario.replace({"run.seeds": 2}))
    return result, group_course(result)


def test_refusals_begin_because_traffic_gets_wordier_though_no_setting_changed() -> None:
    _, course = wordy()
    assert course.full_from_s is not None
    assert course.lost_from_s is not None
    assert course.full_from_s > 300
    assert course.lost_from_s > 400
    early, late = course.start_s < 300, course.start_s >= 1500
    assert np.nanmax(course.lost[early]) == 0
    assert np.nanmean(course.lost[late]) > 0.1
    assert np.nanmean(course.held_tokens[late]) > 2.5 * np.nanmean(course.held_tokens[early])
    assert np.nanmean(course.allowed[late]) < 0.4 * np.nanmean(course.allowed[early])
    full = late & (course.kv_limited > 0.9)
    assert np.nanmean(course.running[full]) == pytest.approx(np.nanmean(course.allowed[full]), rel=0.25)


def test_bins_are_averages_over_the_runs() -> None:
    result, course = wordy()
    frame = result.timeline
    for name, column in (("running", course.running), ("queue", course.waiting)):
        by_hand = [frame[frame.t_s == t][name].mean() / result.run.replicas for t in course.start_s]
        assert np.allclose(column, by_hand)
    a, at = result.run.attempts, 60
    inside = (a.arrival_s >= course.start_s[at]) & (a.arrival_s < course.start_s[at] + course.width_s)
    states = result.requests.state[inside]
    assert course.lost[at] == states.isin(["rejected", "timed_out"]).mean()
    assert course.preempted[at] == a.preemptions[inside].mean()
    around = np.abs(a.arrival_s - course.start_s[at] - 5.0) < 45.0  # 9 of 180 bins
    own = a.prompt_tokens[around] + a.output_tokens[around] / 2
    assert course.held_tokens[at] == pytest.approx(np.average(own, weights=a.output_tokens[around]))
    assert (course.runs, course.width_s) == (2, 10.0)


def test_without_growth_and_with_room_nothing_begins() -> None:
    course = group_course(simulate(Scenario.from_dict({"run": {"seeds": 1, "horizon_s": 60.0, "warmup_s": 5.0}})))
    assert (course.full_from_s, course.lost_from_s, course.preempted_from_s) == (None, None, None)


def test_nobody_comes() -> None:
    silent = {"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}, "run.seeds": 1}
    course = group_course(simulate(preset("monday").scenario.replace(silent)))
    assert np.isnan(course.lost).all()
    assert np.isnan(course.allowed).all()
    assert course.full_from_s is None
