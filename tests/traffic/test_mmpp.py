"""Calm and bursts by turns: the process against its known laws, and arrival by arrival against a plain loop."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import linalg, stats

from engine.scenario import ScenarioError, Traffic
from engine.traffic import arrivals, stream
from engine.traffic.arrivals import MODULATIONS, arrival_times
from engine.traffic.shapes import curve
from tests.traffic.build import traffic

TRUTH = Path(__file__).parent.parent / "truth" / "mmpp_counts.csv"


def mmpp(rate_rps: float = 4.0, shape: dict[str, Any] | None = None, **settings: float) -> Traffic:
    return traffic(process="mmpp", rate_rps=rate_rps, mmpp=settings, shape=shape or {"kind": "steady"})


def of_rates(lam1: float, lam2: float, r12: float, r21: float) -> Traffic:
    """From the textbook's parameters: the rates in both states, and of leaving them. State 1 is the burst."""
    share = r21 / (r12 + r21)
    mean = share * lam1 + (1 - share) * lam2
    return mmpp(mean, burst_ratio=lam1 / mean, burst_fraction=share, mean_burst_s=1 / r12)


def oracles() -> list[Any]:
    """One case for each process: its parameters, and the exact mean rate and index of dispersion by window."""
    found: dict[str, dict[str, float]] = {}
    with TRUTH.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["params_json"], {})[row["quantity"]] = float(row["value"])
    return [pytest.param(json.loads(params), exact, id=params) for params, exact in found.items()]


@pytest.mark.parametrize(("params", "exact"), oracles())
def test_counts_have_the_exact_mean_and_dispersion(params: dict[str, float], exact: dict[str, float]) -> None:
    """Variance over mean of counts in windows of 1, 10 and 100 s, and of 20 time constants of the states.

    Ten independent runs give the estimate and its error; squares are taken around the exact mean.
    """
    t = of_rates(*(params[name] for name in ("lam1", "lam2", "r12", "r21")))
    assert t.rate_rps == pytest.approx(exact["mean_rate"], rel=1e-14)
    constant_s = 1 / (params["r12"] + params["r21"])
    # IDC(t) = 1 + excess * (1 - (1 - exp(-t / c)) / (t / c)), c the time constant: of the excess 5 % are missing.
    limit = 1 + (exact["IDC_infinity"] - 1) * (1 - (1 - np.exp(-20.0)) / 20)
    windows = {1.0: exact["IDC_t1"], 10.0: exact["IDC_t10"], 100.0: exact["IDC_t100"], 20 * constant_s: limit}
    span = 300 * 20 * constant_s
    runs = [arrival_times(t, span, seed) for seed in range(10)]
    for window, dispersion in windows.items():
        edges = np.arange(0.0, span + window / 2, window)
        counts = np.array([np.diff(np.searchsorted(times, edges)) for times in runs])
        mean = exact["mean_rate"] * window
        found = ((counts - mean) ** 2).mean(axis=1) / mean
        error = found.std(ddof=1) / np.sqrt(found.size)
        assert error < 0.1 * dispersion
        assert found.mean() == pytest.approx(dispersion, abs=4 * error)
    rates = np.array([times.size for times in runs]) / span
    assert rates.mean() == pytest.approx(exact["mean_rate"], abs=4 * rates.std(ddof=1) / np.sqrt(rates.size))


@pytest.mark.parametrize("params", [(4.0, 0.0, 0.2, 0.05), (9.0, 1.0, 0.02, 0.02), (20.0, 4.0, 0.5, 0.125)])
def test_gaps_follow_the_interarrival_law(params: tuple[float, float, float, float]) -> None:
    """P(gap > x) = p exp((Q - L) x) 1, p the states just after an arrival (Fischer and Meier-Hellstern, 1993)."""
    lam1, lam2, r12, r21 = params
    rates = np.diag([lam1, lam2])
    generator = np.array([[-r12, r12], [r21, -r21]]) - rates
    after = np.array([r21 * lam1, r12 * lam2])
    after /= after.sum()
    t = of_rates(*params)
    points = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]) * 4 / lam1
    exact = np.array([after @ linalg.expm(generator * x) @ np.ones(2) for x in points])
    runs = [np.diff(arrival_times(t, 40_000.0, seed)) for seed in range(12)]
    found = np.array([[(gaps > x).mean() for x in points] for gaps in runs])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(found.mean(axis=0) - exact) <= 4.5 * error + 1e-6).all()


def test_with_silence_between_bursts_gaps_are_independent_and_hyperexponential() -> None:
    """The interrupted Poisson process is a renewal process (Kuczura, Bell System Technical Journal 52, 1973)."""
    lam, off, on = 4.0, 0.2, 0.05
    total = lam + off + on
    root = np.sqrt(total**2 - 4 * lam * on)
    fast, slow = (total + root) / 2, (total - root) / 2
    weight = (lam - slow) / (fast - slow)
    gaps = np.diff(arrival_times(of_rates(lam, 0.0, off, on), 6_000.0, 5))
    assert gaps.size > 3000
    law = lambda x: 1 - weight * np.exp(-fast * x) - (1 - weight) * np.exp(-slow * x)  # noqa: E731
    assert stats.kstest(gaps, law).pvalue > 0.01
    assert abs(stats.spearmanr(gaps[:-1], gaps[1:]).statistic) < 4 / np.sqrt(gaps.size)


def test_it_starts_stationary() -> None:
    """In every early window the mean is the rate, and a burst holds at time 0 as often as at any other."""
    t = mmpp(6.0, burst_ratio=4.0, burst_fraction=0.2, mean_burst_s=3.0)
    runs = [arrival_times(t, 8.0, seed) for seed in range(3000)]
    counts = np.array([np.histogram(times, 8, (0.0, 8.0))[0] for times in runs])
    error = counts.std(axis=0) / np.sqrt(len(runs))
    assert (np.abs(counts.mean(axis=0) - 6.0) < 4 * error).all()
    factors = np.array([rate_curve(t, 8.0, seed).factor(np.array([0.0]))[0] for seed in range(3000)])
    assert factors.min() == pytest.approx((1 - 0.2 * 4.0) / (1 - 0.2))
    assert (factors == 4.0).mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 3000))


def rate_curve(t: Traffic, horizon_s: float, seed: int) -> Any:
    return MODULATIONS["mmpp"](curve(t.shape, horizon_s), t, horizon_s, seed)


def states(t: Traffic, seed: int) -> Iterator[tuple[float, float]]:
    """(seconds, factor) of each stay: the path of states, from its stream, in the order that the table promises."""
    rng, burst = stream(seed, "states"), t.mmpp
    calm_s = burst.mean_burst_s * (1 - burst.burst_fraction) / burst.burst_fraction
    calm = (1 - burst.burst_ratio * burst.burst_fraction) / (1 - burst.burst_fraction)
    burst_first = rng.random() < burst.burst_fraction
    while True:
        pair = [(-np.log1p(-rng.random()) * burst.mean_burst_s, burst.burst_ratio)]
        pair.append((-np.log1p(-rng.random()) * calm_s, calm))
        yield from pair if burst_first else reversed(pair)


def loop(t: Traffic, horizon_s: float, seed: int, ramp_to: float = 1.0) -> list[float]:
    """Arrivals one by one: hazard is used up stay by stay, under a rate that ramps from 1 to `ramp_to`."""
    rng, path = stream(seed, "arrivals"), states(t, seed)
    slope = (ramp_to - 1) / horizon_s
    found: list[float] = []
    now, end, factor = 0.0, 0.0, 0.0
    need = -np.log1p(-rng.random())
    while now < horizon_s:
        level = t.rate_rps * factor * (1 + slope * now)
        left = min(end, horizon_s) - now
        have = left * (level + t.rate_rps * factor * slope * left / 2)
        if have < need:
            need, now = need - have, min(end, horizon_s)
            stay, factor = next(path)
            end = now + stay
            continue
        steep = t.rate_rps * factor * slope
        now += 2 * need / (level + np.sqrt(level**2 + 2 * steep * need))
        found.append(now)
        need = -np.log1p(-rng.random())
    return found


@pytest.mark.parametrize("ramp_to", [1.0, 3.0, 0.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"burst_ratio": 5.0, "burst_fraction": 0.2, "mean_burst_s": 4.0},
        {"burst_ratio": 1.5, "burst_fraction": 0.6, "mean_burst_s": 0.2},
    ],
    ids=["default", "silent", "fast"],
)
def test_arrivals_are_those_of_a_plain_loop(settings: dict[str, float], seed: int, ramp_to: float) -> None:
    """Modulated in real time, under a shape in real time, without thinning: the same uniforms, one by one."""
    t = mmpp(5.0, {"kind": "ramp", "to_factor": ramp_to}, **settings)
    expected = loop(t, 120.0, seed, ramp_to)
    assert np.allclose(arrival_times(t, 120.0, seed), expected, rtol=1e-9, atol=1e-9)
    assert len(expected) > 50


def test_no_burst_higher_than_the_mean_is_the_poisson_process_itself() -> None:
    flat = arrival_times(mmpp(5.0, burst_ratio=1.0), 300.0, 3)
    assert np.array_equal(flat, arrival_times(traffic(rate_rps=5.0), 300.0, 3))


def test_neither_rate_nor_shape_nor_height_moves_the_bursts() -> None:
    t = np.linspace(0.0, 900.0, 9001)
    ramp = {"kind": "ramp", "to_factor": 2.0}
    base = rate_curve(mmpp(4.0, burst_ratio=4.0), 900.0, 8).factor(t) > 1
    assert 0 < base.mean() < 0.5
    for other in (mmpp(40.0, burst_ratio=4.0), mmpp(4.0, burst_ratio=1.5)):
        assert np.array_equal(rate_curve(other, 900.0, 8).factor(t) > 1, base)
    bent = rate_curve(mmpp(4.0, ramp, burst_ratio=4.0), 900.0, 8).factor(t) / (1 + t / 900)
    assert np.array_equal(bent > 1, base)


def test_the_nth_burst_is_as_long_wherever_the_path_starts() -> None:
    """A share that differs a little starts a few seeds in the other state; then the stays come in turn, not anew."""
    few, many = (mmpp(4.0, burst_ratio=1.2, burst_fraction=f, mean_burst_s=10.0) for f in (0.3, 0.7))
    seed = next(s for s in range(99) if 0.3 < stream(s, "states").random() < 0.7)
    bursts = []
    for t in (few, many):
        path = states(t, seed)
        stays = [next(path) for _ in range(20)]
        bursts.append([stay for stay, factor in stays if factor == 1.2])
        ends = np.cumsum([stay for stay, _ in stays])
        got = rate_curve(t, float(ends[-2]), seed).factor((ends[:-1] + np.append(0.0, ends[:-2])) / 2)
        assert np.array_equal(got == 1.2, [factor == 1.2 for _, factor in stays[:-1]])
    assert bursts[0] == bursts[1]


def test_integral_and_inverse_belong_together() -> None:
    steps = {"kind": "steps", "points": [[50.0, 0.0], [80.0, 3.0]]}
    for t in (mmpp(4.0), mmpp(4.0, steps, burst_ratio=10.0, burst_fraction=0.1, mean_burst_s=2.0)):
        c = rate_curve(t, 200.0, 2)
        total = float(c.integral(np.array(200.0)))
        areas = np.linspace(0.0, total, 1001)
        times = c.inverse(areas)
        assert times[0] == 0
        assert (np.diff(times) > 0).all()
        assert np.allclose(c.integral(times), areas, rtol=1e-12, atol=1e-12)
        assert (c.factor(times[1:-1] - 1e-9) > 0).all()
        assert c.inverse(np.array([1e9])).tolist() == [np.inf]


def test_a_run_in_silence_has_no_arrivals() -> None:
    t = mmpp(4.0, burst_ratio=10.0, burst_fraction=0.1, mean_burst_s=1e4)
    sizes = [arrival_times(t, 10.0, seed).size for seed in range(50)]
    assert 0 < sum(size > 0 for size in sizes) < 25
    assert min(size for size in sizes if size) > 300


def test_a_seed_that_is_one_endless_burst_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """On average the run is small; the seed that happens to start in the burst has a thousand times as many."""
    monkeypatch.setattr(arrivals, "MOST_REQUESTS", 100_000)
    t = mmpp(1.0, burst_ratio=1000.0, burst_fraction=1e-3, mean_burst_s=86_400.0)
    seed = next(s for s in range(10_000) if stream(s, "states").random() < 1e-3)
    with pytest.raises(ScenarioError) as error:
        arrival_times(t, 900.0, seed)
    assert str(error.value) == (
        f"traffic.rate_rps: 1 brings about 900,000 requests with seed {seed}, which is mostly in a burst: more than "
        "100,000; lower traffic.rate_rps, traffic.mmpp.burst_ratio or run.horizon_s"
    )
    assert arrival_times(t, 900.0, seed + 1).size == 0
