"""Fitting: known processes are found again, real traces are judged as their published figures judge them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine.scenario import Scenario, Traffic
from engine.traffic import Fit, Trace, fit, fitted_length, generate, read_trace, scenario_changes
from engine.traffic.arrivals import arrival_times
from engine.traffic.fitting import ks_distance
from tests.traffic.test_clumps import FILES, published


def trace_of(times: np.ndarray, prompt: Any = None, output: Any = None) -> Trace:
    """A recorded trace of these arrivals."""
    rng = np.random.default_rng(1)
    n = times.size
    prompt = rng.lognormal(6.5, 0.8, n).astype(int) + 1 if prompt is None else prompt
    output = rng.lognormal(5.0, 0.6, n).astype(int) + 1 if output is None else output
    rows = "\n".join(f"{t:.9f},{p},{o}" for t, p, o in zip(times, prompt, output, strict=True))
    return read_trace(f"arrival_s,prompt_tokens,output_tokens\n{rows}\n".encode())


def refitted(span_s: float = 7200.0, **settings: Any) -> Fit:
    times = arrival_times(Traffic.model_validate(settings), span_s, 3)
    found = fit(trace_of(times))
    assert found is not None
    return found


def test_independent_arrivals_are_told() -> None:
    found = refitted(process="poisson", rate_rps=4.0)
    assert found.best.process == "poisson"
    assert found.best.settings["rate_rps"] == pytest.approx(4.0, rel=0.03)
    assert found.best.good
    assert not found.resample


def test_clockwork_is_told_from_independence() -> None:
    found = fit(trace_of(np.arange(0.0, 600.0, 0.5)))
    assert found is not None
    by_process = {candidate.process: candidate for candidate in found.candidates}
    assert not by_process["poisson"].good
    assert (found.best.process, found.best.good) == ("gamma", True)
    assert found.best.settings["cv"] == 0.01


def test_clumped_gaps_are_told() -> None:
    found = refitted(process="gamma", rate_rps=4.0, cv=2.5)
    assert found.best.process == "gamma"
    assert found.best.settings["cv"] == pytest.approx(2.5, rel=0.05)
    assert found.best.off < 1.3


@pytest.mark.parametrize(
    "law",
    [
        {"burst_ratio": 4.0, "burst_fraction": 0.1, "mean_burst_s": 20.0},
        {"burst_ratio": 2.0, "burst_fraction": 0.3, "mean_burst_s": 60.0},
        {"burst_ratio": 10.0, "burst_fraction": 0.05, "mean_burst_s": 5.0},
    ],
    ids=lambda law: f"{law['burst_ratio']:g} times",
)
def test_calm_and_bursts_are_told(law: dict[str, float]) -> None:
    found = refitted(36_000.0, process="mmpp", rate_rps=5.0, mmpp=law)
    assert found.best.process == "mmpp"
    told = found.best.settings["mmpp"]
    assert told["burst_ratio"] == pytest.approx(law["burst_ratio"], rel=0.2)
    assert told["burst_fraction"] == pytest.approx(law["burst_fraction"], rel=0.25)
    assert told["mean_burst_s"] == pytest.approx(law["mean_burst_s"], rel=0.35)


def test_a_fit_makes_traffic_like_the_trace() -> None:
    """Its settings are a scenario's: what is drawn from them has the rate, the clumps and the lengths again."""
    found = refitted(process="gamma", rate_rps=4.0, cv=2.5)
    s = Scenario().replace(scenario_changes(found))
    assert (s.traffic.process, s.run.horizon_s) == ("gamma", 7200.0)
    again = generate(s.traffic, s.run, 1)
    assert len(again) == pytest.approx(found.measured.requests, rel=0.1)
    for drawn, law in ((again.prompt_tokens, found.prompt), (again.output_tokens, found.output)):
        assert drawn.mean() == pytest.approx(law.mean, rel=0.05)
        assert drawn.max() <= law.longest


def test_a_fit_of_a_trace_that_is_replayed_faster() -> None:
    law = {"burst_ratio": 4.0, "burst_fraction": 0.1, "mean_burst_s": 20.0}
    found = refitted(36_000.0, process="mmpp", rate_rps=5.0, mmpp=law)
    slow, fast = (Scenario().replace(scenario_changes(found, speed)) for speed in (1.0, 4.0))
    assert fast.traffic.rate_rps == 4 * slow.traffic.rate_rps
    assert fast.traffic.mmpp.mean_burst_s == slow.traffic.mmpp.mean_burst_s / 4
    assert fast.traffic.mmpp.burst_ratio == slow.traffic.mmpp.burst_ratio
    assert fast.run.horizon_s == pytest.approx(slow.run.horizon_s / 4, abs=1)


def test_lengths_keep_the_load() -> None:
    tokens = np.random.default_rng(2).lognormal(6.0, 1.0, 20_000).astype(np.int32) + 1
    found = fitted_length(tokens)
    assert found.mean == pytest.approx(tokens.mean())
    assert found.cv == pytest.approx(tokens.std() / tokens.mean())
    assert (found.ks < 0.05, found.poor) == (True, False)
    two = fitted_length(np.repeat([10, 1000], 500).astype(np.int32))
    assert two.poor
    alike = fitted_length(np.full(100, 7, np.int32))
    assert (alike.mean, alike.cv, alike.ks) == (7.0, 0.0, 0.0)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("column", ["in", "out"])
def test_the_distance_is_the_published_one(name: str, column: str, data_dir: Path) -> None:
    """For the lognormal of largest likelihood, which is what was published."""
    row = published(data_dir)[FILES[name][1]]
    trace = read_trace((data_dir / "traces" / FILES[name][0]).read_bytes())
    tokens = trace.prompt_tokens if column == "in" else trace.output_tokens
    mu, sigma = np.log(tokens).mean(), np.log(tokens).std()
    assert mu == pytest.approx(float(row[f"{column}_logn_mu"]), rel=1e-4)
    assert sigma == pytest.approx(float(row[f"{column}_logn_sigma"]), rel=1e-3)
    law = stats.lognorm(s=sigma, scale=np.exp(mu))
    assert ks_distance(tokens, law.cdf) == pytest.approx(float(row[f"{column}_logn_KS"]), abs=2e-4)


@pytest.mark.parametrize("name", FILES)
def test_real_traces_are_better_resampled(name: str, data_dir: Path) -> None:
    """Neither process nor lengths of the Azure traces have a simple law; all have lengths far from a lognormal."""
    found = fit(read_trace((data_dir / "traces" / FILES[name][0]).read_bytes()))
    assert found is not None
    assert found.resample
    by_process = {candidate.process: candidate for candidate in found.candidates}
    assert not by_process["poisson"].good
    assert found.best.process == "mmpp"
    assert found.best.off < by_process["poisson"].off / 2
    if name == "kimi":
        assert "gamma" not in by_process, "gaps of a slow clock tell nothing"
    else:
        assert not by_process["gamma"].good, "neither does independence, nor clumped gaps"


def test_too_little_to_fit() -> None:
    assert fit(trace_of(np.arange(5.0))) is None
    assert fit(trace_of(np.zeros(50))) is None


def test_a_short_trace_is_judged_by_the_windows_that_it_has() -> None:
    found = fit(trace_of(arrival_times(Traffic(rate_rps=5.0), 40.0, 1)))
    assert found is not None
    assert found.measured.dispersion[60.0] is None
    assert {candidate.process for candidate in found.candidates} == {"poisson", "gamma"}


def test_the_ends_of_the_table_are_kept() -> None:
    """Silence, then one short rush: what comes out is still a scenario's."""
    times = np.concatenate([[0.0], 5000 + np.sort(np.random.default_rng(3).random(3000)) * 5, [10_000.0]])
    found = fit(trace_of(times))
    assert found is not None
    for candidate in found.candidates:
        Traffic.model_validate({"process": candidate.process, **candidate.settings})


def test_the_published_table_is_read() -> None:
    with (Path(__file__).parents[2] / "engine" / "traffic" / "real.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(FILES)
