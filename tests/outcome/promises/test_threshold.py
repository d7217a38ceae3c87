"""Attainment at every threshold from one run: what scoring it at each says, and the strictest that is kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine import Result, simulate
from engine.outcome import attain
from engine.outcome.promises.entries import entries
from engine.outcome.promises.rescore import changed
from engine.outcome.promises.threshold import Tally, curve, promisable, strictest, strictest_of, tallies, together
from engine.scenario import Objective
from tests.outcome.promises.build import BUSY, NOBODY, run_of

CASES = list(
    itertools.product(
        ("ttft", "e2e", "tpot"), ("server", "gateway", "client"), (("rejected", "timed_out", "unfinished"), ())
    )
)


@pytest.fixture(scope="module")
def busy() -> Result:
    return simulate(BUSY)


def of(result: Result, metric: str, place: str, failures: tuple[str, ...]) -> Objective:
    return changed(result.scenario.slo[0], metric=metric, measured_at=place, failures=failures)


def attained(result: Result, objective: Objective, threshold_s: float) -> tuple[int, int]:
    """(good, valid) by scoring the run at that threshold."""
    then = changed(objective, threshold_s=threshold_s)
    found = attain(then, result.scored(then), result.counted, result.run.attempts.seed_start)
    return found.good, found.valid


@pytest.mark.parametrize(("metric", "place", "failures"), CASES)
def test_every_point_is_what_scoring_says(busy: Result, metric: str, place: str, failures: tuple[str, ...]) -> None:
    objective = of(busy, metric, place, failures)
    whole = together(tallies(entries(busy, objective)))
    at = np.concatenate([[0.0, 0.125, 3.0, 500.0], whole.known[::97], whole.ages, whole.ages + 1e-9])
    good, valid = whole.at(at)
    for threshold, g, v in zip(at.tolist(), good.tolist(), valid.tolist(), strict=True):
        assert attained(busy, objective, threshold) == (g, v), threshold


@pytest.mark.parametrize(("metric", "place", "failures"), CASES)
@pytest.mark.parametrize("target", [0.3, 0.6])
def test_the_strictest_is_kept_and_anything_stricter_is_not(
    busy: Result, metric: str, place: str, failures: tuple[str, ...], target: float
) -> None:
    objective = of(busy, metric, place, failures)
    found = strictest_of(together(tallies(entries(busy, objective))), target)
    assert found is not None
    good, valid = attained(busy, objective, found)
    assert good / valid >= target
    good, valid = attained(busy, objective, float(np.nextafter(found, 0.0)))
    assert good / valid < target


def test_an_engine_run_with_that_promise_says_so_too(busy: Result) -> None:
    found = strictest(tallies(entries(busy, BUSY.slo[0])), 0.6)
    assert found.threshold_s is not None
    for threshold, met in ((found.threshold_s, True), (found.threshold_s - 1e-6, False)):
        judged = simulate(BUSY.replace({"slo.0.threshold_s": threshold})).attainments[0]
        assert judged.met is met
        if met:
            assert (judged.per_seed >= 0.6).sum() == found.runs_kept
    assert found.runs == 3
    assert found.ci95_s is not None
    assert found.ci95_s[0] < found.threshold_s < found.ci95_s[1]


def test_higher_targets_are_kept_at_longer_times_only(busy: Result) -> None:
    parts = tallies(entries(busy, BUSY.slo[0]))
    found = [strictest(parts, target).threshold_s for target in (0.2, 0.4, 0.5, 0.6, 0.7)]
    assert None not in found
    assert found == sorted(found)  # type: ignore[type-var]
    assert strictest(parts, 0.99).threshold_s is None, "more are refused than may be"


def test_by_hand() -> None:
    """First words after 1, 2, 3 and 4 s, four are refused: half of all within 4 s, 3 in 8 within 3 s."""
    result = run_of([10.0] * 8, admission__max_outstanding=4)
    parts = tallies(entries(result, result.scenario.slo[0]))
    assert [(t.known.tolist(), t.lost, t.ages.tolist()) for t in parts] == [([1.0, 2.0, 3.0, 4.0], 4, [])]
    assert [strictest_of(parts[0], target) for target in (0.125, 0.375, 0.5, 0.51)] == [1.0, 3.0, 4.0, None]
    assert strictest(parts, 0.5).ci95_s is None


def test_a_run_that_is_too_young_says_nothing() -> None:
    """A long queue: at 3 s a share of 1 would be kept, were it not for all those of whom nothing is known."""
    tally = Tally(np.array([1.0, 2.0, 3.0]), 0, np.linspace(0.0, 2.9, 30))
    assert strictest_of(tally, 0.95) is None
    assert strictest_of(Tally(np.empty(0), 0, np.empty(0)), 0.5) is None


def test_the_curve_is_the_shares_with_their_spread(busy: Result) -> None:
    parts = tallies(entries(busy, BUSY.slo[0]))
    found = curve(parts, 3.0)
    assert found is not None
    assert 3.0 in found.threshold_s
    assert (np.diff(found.share) >= 0).all()
    assert ((found.low <= found.share) & (found.share <= found.high)).all()
    at = int(np.flatnonzero(found.threshold_s == 3.0)[0])
    judged = busy.attainments[0]
    assert found.share[at] == judged.attainment
    assert [found.low[at], found.high[at]] == pytest.approx(judged.ci95)
    assert curve(tallies(entries(run_of(NOBODY), BUSY.slo[0]))) is None


@pytest.mark.parametrize(
    ("kept", "said"), [(2.11, 2.2), (2.2, 2.2), (0.0411, 0.042), (9.91, 10.0), (31.4, 32.0), (0.0, 0.0)]
)
def test_what_can_be_said_is_rounded_up(kept: float, said: float) -> None:
    assert promisable(kept) == said
