"""Shapes: curves whose integral and inverse are exact, and what they do to arrivals."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from engine.traffic import SHAPES
from engine.traffic.arrivals import arrival_times
from engine.traffic.shapes import PiecewiseLinear, curve
from tests.traffic.build import traffic

HORIZON = 900.0
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "steady": [{}],
    "spike": [
        {},
        {"at_s": 100.0, "factor": 5.0, "rise_s": 0.0, "hold_s": 60.0, "fall_s": 0.0},
        {"at_s": 0.0, "factor": 0.25, "rise_s": 200.0, "hold_s": 0.0, "fall_s": 300.0},
        {"at_s": 50.0, "factor": 0.0, "rise_s": 100.0, "hold_s": 200.0, "fall_s": 50.0},
        {"at_s": 800.0, "factor": 10.0, "rise_s": 50.0, "hold_s": 500.0, "fall_s": 50.0},
        {"at_s": 5000.0},
        {"at_s": 10.0, "rise_s": 1e-309, "fall_s": 0.0},
    ],
    "ramp": [{}, {"to_factor": 0.0}, {"to_factor": 1.0}, {"to_factor": 12.5}],
    "steps": [
        {},
        {"points": []},
        {"points": [[0.0, 3.0]]},
        {"points": [[0.0, 0.0], [100.25, 2.5], [100.75, 0.0], [400.25, 1.0], [850.0, 1000.0], [2000.0, 5.0]]},
    ],
    "diurnal": [
        {},
        {"period_s": 600.0, "trough_factor": 0.0, "peak_at_s": 0.0},
        {"period_s": 77.7, "trough_factor": 0.5, "peak_at_s": 1000.0},
        {"period_s": 1e-6, "trough_factor": 0.25, "peak_at_s": 0.0},
        {"period_s": 300.0, "trough_factor": 1.0},
    ],
}
"""Settings under which each shape is tried; a new shape adds its own here."""
CASES = [pytest.param({"kind": kind, **more}, id=f"{kind}{more or ''}") for kind in SHAPES for more in EXAMPLES[kind]]


def shape(settings: dict[str, Any]) -> Any:
    return traffic(shape=settings).shape


def corners(settings: dict[str, Any]) -> list[float]:
    """Moments inside the run at which the factor or its slope jumps, or that cut it into simple pieces."""
    s = shape(settings)
    moments = [t for t, _ in getattr(s, "points", ())]
    moments += np.cumsum([getattr(s, key, 0.0) for key in ("at_s", "rise_s", "hold_s", "fall_s")]).tolist()
    if s.kind == "diurnal" and s.period_s > 1.0:
        moments += np.arange(0.0, HORIZON, s.period_s / 2).tolist()
    return sorted({t for t in moments if 0 < t < HORIZON})


def has_pieces(settings: dict[str, Any]) -> bool:
    """Whether quadrature can follow the factor: not when it goes round a million times a second."""
    return settings.get("period_s") != 1e-6


@pytest.mark.parametrize("kind", SHAPES)
def test_it_is_documented(kind: str) -> None:
    assert SHAPES[kind].__doc__
    assert sys.modules[SHAPES[kind].__module__].__doc__


@pytest.mark.parametrize("settings", [case for case in CASES if has_pieces(case.values[0])])
def test_the_integral_is_that_of_the_factor(settings: dict[str, Any]) -> None:
    c = curve(shape(settings), HORIZON)
    for until in (0.0, 33.0, 120.0, 331.5, 500.0, HORIZON):
        inside = [t for t in corners(settings) if t < until]
        pieces = zip([0.0, *inside], [*inside, until], strict=True)
        area = sum(integrate.quad(lambda t: float(c.factor(np.array([t]))[0]), a, b)[0] for a, b in pieces)
        assert c.integral(until) == pytest.approx(area, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("settings", CASES)
def test_it_agrees_with_what_the_scenario_expects(settings: dict[str, Any]) -> None:
    """The scenario's own figure bounds the size of a run."""
    assert curve(shape(settings), HORIZON).integral(HORIZON) / HORIZON == pytest.approx(
        shape(settings).mean_factor(HORIZON), rel=1e-12
    )


@pytest.mark.parametrize("settings", CASES)
def test_the_inverse_undoes_the_integral(settings: dict[str, Any]) -> None:
    c = curve(shape(settings), HORIZON)
    digits = max(1e-12, 1e-15 * getattr(shape(settings), "period_s", 0.0))
    t = np.linspace(0, HORIZON, 1801)
    area = c.integral(t)
    assert (np.diff(area) >= 0).all()
    moving = c.factor(t) > 0
    assert np.allclose(c.inverse(area)[moving], t[moving], rtol=1e-9, atol=1e-9)
    assert np.allclose(c.integral(c.inverse(area)), area, rtol=1e-12, atol=digits)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e5) | st.just(0.0),
            st.floats(1e-3, 1e3) | st.just(0.0) | st.just(1.0),
            st.floats(1e-3, 1e3) | st.just(0.0) | st.just(1.0),
        ),
        max_size=6,
    ),
    st.floats(0.01, 10),
    st.floats(0, 1),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_straight_pieces_are_inverted(pieces: list[tuple[float, float, float]], after: float, share: float) -> None:
    c = PiecewiseLinear(pieces, after)
    total = float(c.integral(np.array(sum(length for length, _, _ in pieces) + 10.0)))
    areas = np.linspace(0.0, total, 257) * share
    times = c.inverse(areas)
    assert (np.diff(times) >= -1e-9 * times[1:]).all()
    assert np.allclose(c.integral(times), areas, rtol=1e-9, atol=1e-9)


def test_a_spike_by_hand() -> None:
    """1 until 100, up to 3 until 120, 3 until 160, down to 1 until 170: areas by triangles and rectangles."""
    spike = {"kind": "spike", "at_s": 100.0, "factor": 3.0, "rise_s": 20.0, "hold_s": 40.0, "fall_s": 10.0}
    c = curve(shape(spike), 1e9)
    t = np.array([0.0, 100.0, 105.0, 110.0, 120.0, 160.0, 165.0, 170.0, 1e6])
    assert c.factor(t).tolist() == [1, 1, 1.5, 2, 3, 3, 2, 1, 1]
    area = [0, 100, 106.25, 115, 140, 260, 272.5, 280, 280 + 1e6 - 170]
    assert c.integral(t).tolist() == area
    assert c.inverse(np.array(area, dtype=float)).tolist() == t.tolist()


def test_a_ramp_by_hand() -> None:
    """From 1 to 3 over 100 s: after t seconds the area is t + t^2 / 100, and from the horizon on 3 a second."""
    c = curve(shape({"kind": "ramp", "to_factor": 3.0}), 100.0)
    t = np.array([0.0, 10.0, 50.0, 100.0, 110.0])
    assert c.factor(t).tolist() == [1, 1.2, 2, 3, 3]
    assert c.integral(t).tolist() == [0, 11, 75, 200, 230]
    assert c.inverse(np.array([0.0, 11.0, 75.0, 200.0, 230.0])).tolist() == t.tolist()


def test_steps_by_hand() -> None:
    c = curve(shape({"kind": "steps", "points": [[10.0, 2.0], [20.0, 0.0], [50.0, 4.0]]}), 100.0)
    t = np.array([0.0, 10.0, 15.0, 20.0, 40.0, 50.0, 60.0])
    assert c.factor(t).tolist() == [1, 2, 2, 0, 0, 4, 4]
    assert c.integral(t).tolist() == [0, 10, 20, 30, 30, 30, 70]
    # Area 30 is reached when silence begins; the slightest bit more comes when it has ended.
    assert c.inverse(np.array([10.0, 20.0, 30.0, 30.5, 70.0])).tolist() == [10, 15, 20, 50.125, 60]


def test_a_day_by_hand() -> None:
    """Trough 0.5 and peak 1.5, half a period apart; the quarter points have factor 1, and a whole period the area 1."""
    c = curve(shape({"kind": "diurnal", "period_s": 80.0, "trough_factor": 0.5, "peak_at_s": 10.0}), 100.0)
    assert c.factor(np.array([10.0, 30.0, 50.0, 70.0, 90.0, 130.0])) == pytest.approx([1.5, 1, 0.5, 1, 1.5, 0.5])
    swing = 0.5 * 80 / (2 * np.pi)
    t = np.array([10.0, 30.0, 50.0, 70.0, 90.0])
    area = c.integral(t) - c.integral(np.array([10.0]))
    assert area == pytest.approx([0, 20 + swing, 40, 60 - swing, 80], rel=1e-14, abs=1e-14)
    assert c.integral(t + 80.0) - c.integral(t) == pytest.approx(np.full(5, 80.0), rel=1e-14)


@pytest.mark.parametrize("trough", [0.0, 1e-12, 0.01, 0.5, 0.999])
def test_a_day_is_inverted_by_the_root_that_bisection_finds(trough: float) -> None:
    """Also where the rate all but vanishes, around the trough."""
    c = curve(shape({"kind": "diurnal", "period_s": 1.0, "trough_factor": trough, "peak_at_s": 0.5}), 1.0)
    areas = np.concatenate((10.0 ** -np.arange(1.0, 12.0), np.linspace(0.0, 1.0, 101)))
    swing = (1 - trough) / (2 * np.pi)
    for area, found in zip(areas, c.inverse(areas), strict=True):
        root = optimize.brentq(lambda t, a=area: t - swing * np.sin(2 * np.pi * t) - a, 0.0, 1.0, xtol=1e-15)
        assert found == pytest.approx(root, rel=1e-6, abs=1e-9)
        assert found - swing * np.sin(2 * np.pi * found) == pytest.approx(area, abs=1e-15)


def test_a_day_keeps_the_average_rate() -> None:
    day = {"kind": "diurnal", "period_s": 3600.0, "trough_factor": 0.2, "peak_at_s": 1000.0}
    counts = [arrival_times(traffic(rate_rps=2.0, shape=day), 7200.0, seed).size for seed in range(20)]
    assert np.mean(counts) == pytest.approx(2 * 7200, abs=4 * np.sqrt(2 * 7200 / 20))


def test_a_jump_takes_the_value_after_it() -> None:
    c = curve(shape({"kind": "spike", "at_s": 10.0, "factor": 4.0, "rise_s": 0.0, "hold_s": 5.0, "fall_s": 0.0}), 100.0)
    assert c.factor(np.array([10 - 1e-9, 10.0, 15 - 1e-9, 15.0])).tolist() == [1, 4, 4, 1]
    assert c.inverse(np.array([10.0, 14.0, 30.0, 31.0])).tolist() == [10, 11, 15, 16]


def test_a_rate_of_zero_for_ever_brings_nobody() -> None:
    c = PiecewiseLinear([(10.0, 1.0, 0.0)], after=0.0)
    assert c.inverse(np.array([4.999999, 5.0, 5.0001]))[[1, 2]].tolist() == [10.0, np.inf]


def test_silence_has_no_arrivals() -> None:
    quiet = {"kind": "spike", "at_s": 100.0, "factor": 0.0, "rise_s": 0.0, "hold_s": 200.0, "fall_s": 0.0}
    times = arrival_times(traffic(rate_rps=20.0, shape=quiet), 400.0, 1)
    assert not ((times > 100) & (times < 300)).any()
    assert (times <= 100).sum() == pytest.approx(2000, abs=4 * 2000**0.5)
    assert (times >= 300).sum() == pytest.approx(2000, abs=4 * 2000**0.5)


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "spike", "at_s": 100.0, "factor": 4.0, "rise_s": 40.0, "hold_s": 50.0, "fall_s": 80.0},
        {"kind": "ramp", "to_factor": 3.0},
        {"kind": "steps", "points": [[50.0, 0.5], [55.0, 4.0], [200.0, 1.5]]},
        {"kind": "diurnal", "period_s": 160.0, "trough_factor": 0.1, "peak_at_s": 30.0},
    ],
    ids=lambda settings: settings["kind"],
)
def test_arrivals_follow_the_curve(settings: dict[str, Any]) -> None:
    """With a Poisson process counts in windows are independent, Poisson, with the areas as means: chi-square."""
    t = traffic(rate_rps=2.0, shape=settings)
    edges = np.linspace(0, 400, 41)
    counts = np.sum([np.histogram(arrival_times(t, 400.0, seed), edges)[0] for seed in range(200)], axis=0)
    c = curve(t.shape, 400.0)
    expected = 200 * 2.0 * np.diff(c.integral(edges))
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 40) > 0.01


def test_a_spike_leaves_earlier_arrivals_alone_and_shifts_later_ones_smoothly() -> None:
    base = {"kind": "spike", "at_s": 100.0, "factor": 3.0, "rise_s": 20.0, "hold_s": 40.0, "fall_s": 10.0}
    steady, low, high = (
        arrival_times(traffic(rate_rps=5.0, **more), 400.0, 6)
        for more in ({}, {"shape": base}, {"shape": {**base, "factor": 3.001}})
    )
    before = int((steady < 100).sum())
    assert before > 100
    assert np.array_equal(low[:before], steady[:before])
    n = min(len(low), len(high))
    assert 0 <= (low[:n] - high[:n]).max() < 0.06  # one thousandth more for about 55 seconds
    assert (low[:n] >= high[:n]).all()


def test_a_deterministic_process_under_a_spike_is_exact() -> None:
    jump = {"kind": "spike", "at_s": 2.0, "factor": 2.0, "rise_s": 0.0, "hold_s": 1.0, "fall_s": 0.0}
    times = arrival_times(traffic(process="deterministic", rate_rps=2.0, shape=jump), 4.5, 1)
    assert times.tolist() == [0.5, 1, 1.5, 2, 2.25, 2.5, 2.75, 3, 3.5, 4]
