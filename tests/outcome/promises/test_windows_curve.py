"""Windows against the threshold: what judging the run's windows at each threshold says."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Result, simulate
from engine.outcome.promises.entries import entries
from engine.outcome.promises.rescore import changed
from engine.outcome.promises.windows import Kind, window_starts, windows
from engine.outcome.promises.windows_curve import WindowsCurve, windows_curve
from tests.outcome.promises.build import BUSY, NOBODY, run_of

AT = np.array([0.125, 0.5, 1.0, 2.0, 3.0, 4.5, 8.0])


@pytest.fixture(scope="module")
def busy() -> Result:
    return simulate(BUSY)


def of(result: Result, kind: Kind, target: float, place: str = "gateway", at: np.ndarray = AT) -> WindowsCurve | None:
    objective = changed(result.scenario.slo[0], measured_at=place)
    return windows_curve(entries(result, objective), window_starts(result, 60.0, kind), 60.0, target, at)


@pytest.mark.parametrize("place", ["server", "gateway", "client"])
@pytest.mark.parametrize("kind", ["rolling", "calendar"])
def test_every_point_is_what_the_windows_say(busy: Result, kind: Kind, place: str) -> None:
    found = of(busy, kind, 0.5, place)
    assert found is not None
    assert found.threshold_s.tolist() == AT.tolist()
    for threshold, share in zip(AT.tolist(), found.share.tolist(), strict=True):
        objective = changed(busy.scenario.slo[0], measured_at=place, threshold_s=threshold)
        assert windows(busy, busy.scored(objective), 0.5, 60.0, kind).share == share
    assert (np.diff(found.share) >= 0).all()


def test_at_the_last_threshold_every_window_keeps_it_and_below_not(busy: Result) -> None:
    found = of(busy, "rolling", 0.3)
    assert found is not None
    assert found.all_kept_s is not None
    for threshold, want in ((found.all_kept_s, True), (float(np.nextafter(found.all_kept_s, 0.0)), False)):
        objective = changed(busy.scenario.slo[0], threshold_s=threshold)
        w = windows(busy, busy.scored(objective), 0.3, 60.0, "rolling")
        assert (w.kept == w.count) is want


def test_where_too_many_are_lost_no_threshold_helps(busy: Result) -> None:
    found = of(busy, "calendar", 0.999)
    assert found is not None
    assert found.all_kept_s is None


def test_nobody_to_judge() -> None:
    assert of(run_of(NOBODY), "calendar", 0.9) is None


def test_by_hand() -> None:
    """Five minutes; in the second five come at once: first words after 1 to 5 s. Four of five are within 4 s."""
    result = run_of([5.0, 65.0, 65.0, 65.0, 65.0, 65.0, 125.0])
    found = of(result, "calendar", 0.8, at=np.array([0.5, 1.0, 3.0, 4.0]))
    assert found is not None
    assert found.share.tolist() == [0.0, 2 / 3, 2 / 3, 1.0]
    assert found.all_kept_s == 4.0
