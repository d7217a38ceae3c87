"""The facts behind the first screen, on runs that can be worked out by hand.

One replica, one request at a time, one second each: whoever finds k requests before him waits k seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome.busiest import slice_width
from engine.outcome.course import bins_of
from engine.outcome.story import Story, story
from tests import one_a_second

MINUTES = 12
QUIET = [60.0 * minute + 10.0 * i + 5.0 for minute in range(MINUTES) for i in range(3)]
"""Three requests a minute, ten seconds apart: nobody waits, everybody has the first word after 1 s."""
RUSH = [300.0] * 30
"""All at once: the first word after 1, 2, ... 30 s; 28 of them later than 2.5 s."""


def told(arrivals: list[float], **changes: Any) -> Story:
    return story(one_a_second.run(arrivals, **changes))


def test_nobody_waits() -> None:
    quiet = told(QUIET)
    assert quiet.verdict == "holds"
    assert quiet.promise is not None
    assert quiet.promise.attainment.attainment == 1.0
    assert quiet.promise.runs_kept == quiet.promise.runs == 1
    assert quiet.tail.p95 == 1.0
    assert (quiet.tail.answered, quiet.tail.unanswered) == (36, 0)
    assert quiet.offered_rps == 36 / 720
    assert quiet.latencies.broken_s == 0.0
    assert quiet.turned_away == 0.0
    assert quiet.reasons == {}
    assert quiet.refusals.shares == {}


def test_a_rush_breaks_the_promise() -> None:
    rushed = told(QUIET + RUSH)
    assert rushed.verdict == "broken"
    assert rushed.promise is not None
    # Whoever comes at 305, 315 and 325 finds 25, 16 and 7 before him: 26, 17 and 8 s.
    assert rushed.promise.attainment.valid == 66
    assert rushed.promise.attainment.good == 66 - 28 - 3
    assert rushed.latencies.worst_s == 29.0  # the 30th of 31, of whom 26 s stands twice
    assert rushed.latencies.worst_at_s == 305.0
    assert rushed.latencies.broken_s == 30.0


def test_the_busiest_minutes_are_a_tenth_of_them() -> None:
    worst = told(QUIET + RUSH).promise.busiest  # type: ignore[union-attr]
    assert worst is not None
    # Two of twelve: the one with the rush (33 arrivals) and, among equals, the first (3).
    assert (worst.slice_s, worst.slices) == (60.0, 2)
    assert worst.valid == 36
    assert worst.broken == pytest.approx(31 / 36, abs=1e-12)
    assert worst.rate_rps == 36 / 120


def test_kept_on_average_and_broken_in_the_busiest_minutes() -> None:
    busy = told(QUIET + RUSH, slo__0__target=0.5)
    assert busy.verdict == "busiest"
    assert busy.promise is not None
    assert busy.promise.attainment.met


def test_more_than_can_be_served() -> None:
    swamped = told([i / 2 for i in range(1440)])
    assert swamped.verdict == "overloaded"
    assert swamped.offered_rps == 2.0
    assert swamped.fleet_rps == pytest.approx(1.0, rel=0.02)
    assert swamped.arrivals.above_s == 720.0
    # The first 720 are served, in order: whoever comes after 360 s isn't.
    assert swamped.latencies.silent_from_s == 360.0
    assert swamped.tail.answered + swamped.tail.unanswered == 1440


def test_refusals_by_reason_and_when() -> None:
    capped = told(QUIET + RUSH, admission__max_outstanding=5)
    assert capped.turned_away == 25 / 66
    assert capped.reasons == {"queue_full": 25}
    assert capped.verdict == "turned_away"
    assert capped.refusals.worst == 25 / 31
    assert capped.refusals.worst_at_s == 305.0
    assert capped.refusals.shares["queue_full"][30] == 25 / 31


def test_everybody_refused() -> None:
    closed = told(QUIET, admission__max_outstanding=0)
    assert closed.verdict == "refused"
    assert closed.tail.p95 is None
    assert np.isnan(closed.latencies.worst_s)


def test_nobody_answered() -> None:
    assert told([719.9, 719.95]).verdict == "unserved"


def test_nothing_arrives() -> None:
    nobody = Scenario.from_dict({"traffic": {"rate_rps": 1e-6}, "run": {"seeds": 2}})
    empty = story(simulate(nobody))
    assert empty.verdict == "idle"
    assert empty.turned_away is None
    assert empty.arrivals.above_s == 0.0


def test_nothing_promised() -> None:
    free = told(QUIET, slo=[])
    assert free.verdict == "unpromised"
    assert free.promise is None
    assert free.latencies.broken_s is None
    assert free.tail.metric == "ttft"


def test_the_warm_up_is_left_out() -> None:
    late = told(QUIET + RUSH, run__warmup_s=400.0)
    assert late.verdict == "holds"
    assert late.arrivals.above_s == 0.0
    assert late.arrivals.window_s == 320.0


def test_a_beginning_has_the_bins_of_the_whole() -> None:
    whole = Scenario.from_dict({"traffic": {"rate_rps": 1.0}, "run": {"seeds": 2}})
    part = story(simulate(whole, requests_per_lane=100), whole)
    assert part.arrivals.bins.width_s == bins_of(900.0).width_s == 10.0
    assert part.arrivals.bins.start_s.size == 90
    assert np.isnan(part.arrivals.rate_rps[-1])


@pytest.mark.parametrize(
    ("window_s", "expected"), [(600.0, 60.0), (599.0, 10.0), (99.0, 1.0), (9.0, None), (float("inf"), None)]
)
def test_slices_get_shorter_with_the_run(window_s: float, expected: float | None) -> None:
    assert slice_width(window_s) == expected


def test_bands_come_from_the_spread_over_runs() -> None:
    several = Scenario.from_dict({"traffic": {"rate_rps": 4.0}, "run": {"seeds": 6, "horizon_s": 300.0}})
    course = story(simulate(several)).latencies
    known = ~np.isnan(course.figures["p95"])
    assert (course.low["p95"][known] <= course.figures["p95"][known]).all()
    assert (course.high["p95"][known] >= course.figures["p95"][known]).all()
    alone = story(simulate(several.replace({"run.seeds": 1}))).latencies
    assert np.isnan(alone.high["p95"]).all()
