"""Arrival processes: what every member of the registry promises, and each one's law."""

from __future__ import annotations

import sys
from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats

from engine.scenario import Traffic
from engine.traffic import PROCESSES, generate, stream
from engine.traffic.arrivals import MODULATIONS, arrival_times, unit_arrivals
from tests.traffic.build import GRID, UNIFORMS, request_class, run, traffic

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "deterministic": [{}],
    "poisson": [{}],
    "gamma": [{"cv": 0.3}, {"cv": 1.0}, {"cv": 2.5}],
    "mmpp": [{}, {"mmpp": {"burst_ratio": 5.0, "burst_fraction": 0.2, "mean_burst_s": 2.0}}],
}
"""Settings under which each process is tried; a new process adds its own here."""
CASES = [
    pytest.param({"process": name, **more}, id=f"{name}{more or ''}") for name in PROCESSES for more in SETTINGS[name]
]
RENEWALS = [case for case in CASES if case.values[0]["process"] not in MODULATIONS]
UNIT_CV = {"deterministic": 0.0, "poisson": 1.0, "mmpp": 1.0}


def cv(settings: dict[str, Any]) -> float:
    """Of the gaps at rate 1."""
    return UNIT_CV.get(settings["process"], settings.get("cv", 1.0))


def gaps(settings: dict[str, Any], uniforms: np.ndarray) -> np.ndarray:
    return PROCESSES[settings["process"]](uniforms.copy(), traffic(**settings))


@pytest.mark.parametrize("name", PROCESSES)
def test_it_is_documented(name: str) -> None:
    gaps_of = PROCESSES[name]
    assert gaps_of.__doc__
    assert sys.modules[gaps_of.__module__].__doc__


def test_the_scenario_knows_every_process() -> None:
    assert set(PROCESSES) <= set(get_args(Traffic.model_fields["process"].annotation))


@pytest.mark.parametrize("settings", CASES)
def test_chunks_give_the_bits_of_one_draw(settings: dict[str, Any]) -> None:
    t = traffic(**settings)
    whole = unit_arrivals(stream(1, "arrivals"), 1000, t)
    rng, chunks, last = stream(1, "arrivals"), [], 0.0
    for count in (1, 2, 3, 5, 89, 400, 500):
        chunks.append(unit_arrivals(rng, count, t, last))
        last = float(chunks[-1][-1])
    assert np.array_equal(np.concatenate(chunks), whole)
    assert np.array_equal(unit_arrivals(stream(1, "arrivals"), 100, t), whole[:100])


@pytest.mark.parametrize("settings", CASES)
def test_a_longer_run_begins_like_a_shorter_one(settings: dict[str, Any]) -> None:
    t = traffic(rate_rps=3.0, **settings)
    short, long = arrival_times(t, 50.0, 4), arrival_times(t, 5000.0, 4)
    assert 0 < len(short) < len(long)
    assert np.array_equal(long[: len(short)], short)
    assert long[len(short)] >= 50.0


@pytest.mark.parametrize("settings", CASES)
def test_gaps_grow_with_their_uniform_and_have_mean_one(settings: dict[str, Any]) -> None:
    assert (np.diff(gaps(settings, GRID)) >= 0).all()
    assert gaps(settings, GRID)[0] >= 0
    sample = gaps(settings, UNIFORMS)
    assert sample.mean() == pytest.approx(1, abs=4 * cv(settings) / np.sqrt(sample.size) + 1e-15)
    assert sample.std() == pytest.approx(cv(settings), rel=0.1, abs=1e-15)


@pytest.mark.parametrize("settings", RENEWALS)
def test_the_rate_is_right(settings: dict[str, Any]) -> None:
    """Count of a renewal process: mean rate * horizon, variance cv^2 times that, for long horizons."""
    t = traffic(rate_rps=4.0, **settings)
    counts = np.array([len(arrival_times(t, 1000.0, seed)) for seed in range(50)])
    expected = 4000 - 0.5 * (1 - cv(settings) ** 2)  # a renewal process that starts with a gap: Cox, Renewal Theory
    assert counts.mean() == pytest.approx(expected, abs=4 * cv(settings) * np.sqrt(4000 / 50) + 1)


@pytest.mark.parametrize("settings", RENEWALS)
def test_the_rate_stretches_the_same_arrivals(settings: dict[str, Any]) -> None:
    slow, fast = (arrival_times(traffic(rate_rps=rate, **settings), 1024.0 / rate, 9) for rate in (2.0, 16.0))
    assert np.array_equal(slow, fast * 8)
    odd = arrival_times(traffic(rate_rps=3.7, **settings), 1024.0 / 3.7, 9)
    assert np.allclose(odd * 3.7, fast * 16, rtol=1e-14, atol=0)


@pytest.mark.parametrize("settings", CASES)
def test_arrivals_are_in_order_inside_the_run(settings: dict[str, Any]) -> None:
    times = arrival_times(traffic(rate_rps=50.0, **settings), 20.0, 3)
    assert times[0] >= 0
    assert times[-1] < 20
    assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("settings", CASES)
def test_every_process_makes_requests(settings: dict[str, Any]) -> None:
    requests = generate(traffic(rate_rps=5.0, classes=[request_class()], **settings), run(60.0), 1)
    assert len(requests) > 100
    assert not requests.notes


@pytest.mark.parametrize("settings", CASES)
def test_nothing_comes_when_hardly_anything_is_expected(settings: dict[str, Any]) -> None:
    requests = generate(traffic(rate_rps=1e-6, **settings), run(1.0), 1)
    assert len(requests) == 0
    assert requests.prompt_tokens.dtype == np.int32


def test_poisson_gaps_are_exponential() -> None:
    times = arrival_times(traffic(rate_rps=5.0), 2000.0, 1)
    assert stats.kstest(np.diff(times), stats.expon(scale=0.2).cdf).pvalue > 0.01
    assert np.allclose(gaps({"process": "poisson"}, GRID[1:]), stats.expon.ppf(GRID[1:]), rtol=1e-14)


def test_poisson_gaps_are_independent() -> None:
    gap = np.diff(arrival_times(traffic(rate_rps=5.0), 2000.0, 2))
    assert abs(stats.spearmanr(gap[:-1], gap[1:]).statistic) < 4 / np.sqrt(gap.size)


def gamma_law(spread: float) -> Any:
    return stats.gamma(a=1 / spread**2, scale=spread**2)


@pytest.mark.parametrize("spread", [0.01, 0.1, 0.5, 2.0, 10.0])
def test_gamma_gaps_are_gamma(spread: float) -> None:
    sample = gaps({"process": "gamma", "cv": spread}, stream(1, "arrivals").random(8000))
    assert stats.kstest(sample, gamma_law(spread).cdf).pvalue > 0.01


@pytest.mark.parametrize(("spread", "error"), [(0.01, 1e-10), (0.5, 1e-10), (1.01, 1e-10), (3.0, 1e-10), (20.0, 1e-8)])
def test_gamma_gaps_are_interpolated_within_the_stated_error(spread: float, error: float) -> None:
    rare = 2.0 ** -np.arange(2, 54)
    uniforms = np.concatenate((UNIFORMS, rare, 1 - rare))
    exact = gamma_law(spread).ppf(uniforms)
    assert np.allclose(gaps({"process": "gamma", "cv": spread}, uniforms), exact, rtol=error, atol=1e-290)


def test_gamma_with_cv_one_is_poisson() -> None:
    both = [arrival_times(traffic(rate_rps=2.0, process=process), 500.0, 5) for process in ("gamma", "poisson")]
    assert np.array_equal(*both)


def test_gamma_bends_one_pattern_as_cv_changes() -> None:
    """The same uniforms serve every cv: nearby settings give nearby arrivals, gap by gap."""
    less, more = (gaps({"process": "gamma", "cv": spread}, UNIFORMS) for spread in (1.4, 1.5))
    assert stats.spearmanr(less, more).statistic == pytest.approx(1)
    assert np.abs(less - more).mean() < 0.1


@pytest.mark.parametrize("spread", [0.01, 20.0])
def test_gamma_at_the_ends_of_its_range(spread: float) -> None:
    sample = gaps({"process": "gamma", "cv": spread}, np.concatenate((GRID, UNIFORMS)))
    assert np.isfinite(sample).all()
    assert (sample >= 0).all()
    assert len(arrival_times(traffic(process="gamma", cv=spread, rate_rps=10.0), 100.0, 1)) > 0


def test_gamma_clumps_counts_by_its_variance() -> None:
    """Variance over mean of counts in long windows tends to cv^2 (Cox and Lewis, 1966, section 4.2); Poisson's is 1."""
    for settings, expected in (({"process": "poisson"}, 1.0), ({"process": "gamma", "cv": 2.0}, 4.0)):
        times = arrival_times(traffic(rate_rps=10.0, **settings), 40_000.0, 3)
        counts = np.histogram(times, bins=800, range=(0, 40_000))[0]
        assert counts.var() / counts.mean() == pytest.approx(expected, rel=4 * np.sqrt(2 / 800))


def test_deterministic_arrivals_are_exactly_at_multiples_of_the_gap() -> None:
    """The first comes at 1 / rate; one at the horizon would be outside."""
    times = arrival_times(traffic(process="deterministic", rate_rps=4.0), 2.0, 1)
    assert times.tolist() == [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
    assert arrival_times(traffic(process="deterministic", rate_rps=4.0), 2.0 + 2**-20, 1)[-1] == 2.0
