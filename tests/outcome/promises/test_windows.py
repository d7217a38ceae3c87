"""Windows, one after the other and moving along, by hand."""

from __future__ import annotations

import pytest

from engine import Result
from engine.outcome.promises.windows import Kind, Windows, fitting, slice_s, windows
from tests.outcome.promises.build import run_of

EVEN = [5.0 * i + 2.0 for i in range(60)]
"""One in five seconds: all in time."""
RUSH = [118.0] * 8
"""First words after 1 to 8 s: six of them late, and those who come at 122 s too."""


def of(result: Result, length_s: float, kind: Kind, target: float = 0.9) -> Windows:
    return windows(result, result.scored(result.scenario.slo[0]), target, length_s, kind)


def test_calendar_by_hand() -> None:
    """Of five minutes the second has 6 late of 20, the third 1 of 12."""
    found = of(run_of(EVEN + RUSH), 60.0, "calendar")
    assert (found.kept, found.count) == (4, 5)
    assert found.share == 0.8
    assert found.worst == pytest.approx(14 / 20)
    assert found.ci95 is None, "one run"
    assert of(run_of(EVEN + RUSH), 60.0, "calendar", target=0.95).kept == 3, "11 of 12 isn't 95 %"


def test_a_bad_stretch_cannot_hide_from_a_window_that_moves() -> None:
    """Starts every 2 s: from 60 to 118 s the rush is inside, at first with 12 more, later with fewer."""
    found = of(run_of(EVEN + RUSH), 60.0, "rolling")
    assert found.count == 121
    assert found.worst is not None
    assert found.worst <= of(run_of(EVEN + RUSH), 60.0, "calendar").worst  # type: ignore[operator]
    assert found.kept == 121 - 30, "those that begin at 60, 62, ..., 118 s"


def test_windows_count_from_the_warm_up_and_end_within_the_run() -> None:
    late = run_of(EVEN + RUSH, run__warmup_s=30.0)
    assert of(late, 60.0, "calendar").count == 4
    assert of(late, 270.0, "rolling").count == 1
    assert of(late, 271.0, "rolling").count == 0
    assert of(late, 271.0, "rolling").share is None


def test_empty_windows_are_left_out() -> None:
    found = of(run_of([2.0, 250.0]), 60.0, "calendar")
    assert (found.kept, found.count) == (2, 2)


def test_slices_and_windows_that_fit() -> None:
    assert slice_s(run_of(EVEN)) == 10.0
    assert slice_s(run_of(EVEN, run__horizon_s=900.0)) == 60.0
    assert slice_s(run_of(EVEN, run__horizon_s=5.0)) == 5.0
    assert fitting(840.0, 300.0) == 300.0
    assert fitting(840.0, 86400.0) == 300.0
    assert fitting(599.0, 300.0) == 60.0
    assert fitting(1.0, 300.0) == 0.5
