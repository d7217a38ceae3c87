"""Clumps: closed forms for known processes, and the figures that others published for real traces."""

from __future__ import annotations

import csv
import json
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.scenario import Traffic
from engine.traffic import clumps, counts, dispersion, gap_cv, read_trace, real_traffic, slice_of
from engine.traffic.arrivals import arrival_times

MMPP = Path(__file__).parent.parent / "truth" / "mmpp_counts.csv"
FILES = {
    "azure-code": ("AzureLLMInferenceTrace_code.csv", "azure2023_code"),
    "azure-chat": ("AzureLLMInferenceTrace_conv.csv", "azure2023_conv"),
    "kimi": ("mooncake_conversation_trace.jsonl", "mooncake_fast25_conversation"),
}


def published(data_dir: Path) -> dict[str, dict[str, str]]:
    """The statistics beside the traces, by trace."""
    with (data_dir / "traces" / "stats.csv").open() as file:
        return {row["trace"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", FILES)
def test_real_traces_have_the_published_figures(name: str, data_dir: Path) -> None:
    file, row = FILES[name][0], published(data_dir)[FILES[name][1]]
    times = read_trace((data_dir / "traces" / file).read_bytes()).arrival_s
    span = float(times[-1])
    for width in (1, 10, 60):
        known = dispersion([counts(times, width, span)])
        assert known == pytest.approx(float(row[f"IDC_{width}s"]), rel=1e-4)
    assert gap_cv([times]) == pytest.approx(float(row["IAT_CV"]), rel=1e-4)
    found = clumps([times], span)
    assert found.worst == pytest.approx(float(row["peak_minute_over_mean_minute"]), rel=1e-4)
    assert found.rate_rps == pytest.approx(float(row["mean_rate_rps"]), rel=1e-4)


@pytest.mark.parametrize("name", FILES)
def test_the_table_has_what_the_code_finds_in_the_traces(name: str, data_dir: Path) -> None:
    times = read_trace((data_dir / "traces" / FILES[name][0]).read_bytes()).arrival_s
    found = clumps([times], float(times[-1]))
    (row,) = [real for real in real_traffic() if real.name == name]
    assert row.requests == found.requests
    assert row.rate_rps == pytest.approx(found.rate_rps, rel=1e-4)
    assert row.worst == pytest.approx(found.worst, rel=1e-4)
    assert row.dispersion == {
        width: None if value is None else pytest.approx(value, rel=1e-4) for width, value in found.dispersion.items()
    }
    assert row.gap_cv == (None if found.gap_cv is None else pytest.approx(found.gap_cv, rel=1e-4))
    assert row.source


def drawn(span_s: float, **settings: Any) -> list[np.ndarray]:
    traffic = Traffic.model_validate(settings)
    return [arrival_times(traffic, span_s, seed) for seed in range(10)]


def near(runs: list[np.ndarray], width_s: float, span_s: float, exact: float) -> None:
    """The estimate over all runs is the exact value within four of its own standard errors, and those are small."""
    each = [dispersion([counts(times, width_s, span_s)]) for times in runs]
    error = 4 * np.std(each, ddof=1) / np.sqrt(len(each))
    assert error < 0.15 * exact
    assert dispersion([counts(times, width_s, span_s) for times in runs]) == pytest.approx(exact, abs=error)


@pytest.mark.parametrize("width_s", [1.0, 10.0, 60.0])
def test_independent_arrivals_have_a_dispersion_of_one(width_s: float) -> None:
    near(drawn(20_000.0, process="poisson", rate_rps=2.0), width_s, 20_000.0, 1.0)


@pytest.mark.parametrize("width_s", [0.5, 1.0, 10.0])
def test_gaps_of_two_stages_have_their_closed_form(width_s: float) -> None:
    """Variance of an Erlang-2 process' counts from an arbitrary moment on: t/2 + (1 - exp(-4 t)) / 8 at rate 1
    (Cox, Renewal Theory, 1962, section 4.5)."""
    runs = drawn(20_000.0, process="gamma", rate_rps=1.0, cv=2**-0.5)
    near(runs, width_s, 20_000.0, 0.5 + (1 - exp(-4 * width_s)) / (8 * width_s))


def test_long_windows_of_gamma_gaps_have_the_gaps_squared_variation() -> None:
    """The limit for any renewal process (Cox and Lewis, 1966, section 4.2), and the variation itself."""
    runs = drawn(100_000.0, process="gamma", rate_rps=5.0, cv=2.0)
    near(runs, 60.0, 100_000.0, 4.0)
    assert gap_cv(runs) == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("width_s", [1, 10])
def test_calm_and_bursts_have_the_exact_dispersion(width_s: int) -> None:
    with MMPP.open() as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] == f"IDC_t{width_s}"]
    law = json.loads(rows[0]["params_json"])
    share = law["r21"] / (law["r12"] + law["r21"])
    mean = share * law["lam1"] + (1 - share) * law["lam2"]
    settings = {"burst_ratio": law["lam1"] / mean, "burst_fraction": share, "mean_burst_s": 1 / law["r12"]}
    near(drawn(40_000.0, process="mmpp", rate_rps=mean, mmpp=settings), width_s, 40_000.0, float(rows[0]["value"]))


def test_clockwork_has_none() -> None:
    times = [np.arange(1.0, 1000.0)]
    assert dispersion([counts(times[0], 10.0, 1000.0)]) == pytest.approx(0.01, abs=0.01)
    assert gap_cv(times) == pytest.approx(0.0, abs=1e-12)


def test_only_whole_windows_count() -> None:
    assert counts(np.array([0.0, 9.9, 10.0, 24.0, 29.0]), 10.0, 29.5).tolist() == [2, 1]
    assert counts(np.array([0.0, 0.05, 0.1, 0.29]), 0.1, 0.3).tolist() == [2, 1, 1]
    assert counts(np.empty(0), 10.0, 5.0).tolist() == []


def test_the_worst_minute_against_the_average_one() -> None:
    times = np.concatenate([np.arange(0, 60, 6.0), np.arange(60, 120, 2.0), np.arange(120, 180, 6.0)])
    found = clumps([times], 180.0)
    assert found.worst == pytest.approx(30 / (50 / 3))
    assert found.worst_rps == pytest.approx(0.5)
    assert (found.slice_s, found.requests) == (60.0, 50)
    assert [slice_of(span) for span in (180.0, 179.0, 29.0, 0.0)] == [60.0, 10.0, 1.0, 1.0]


def test_runs_are_taken_together_without_their_chance_differences() -> None:
    few, many = np.arange(0, 600, 2.0), np.arange(0, 600, 1.0)
    assert clumps([few, many], 600.0).dispersion[10.0] == pytest.approx(0.0)
    assert clumps([few, many], 600.0).rate_rps == pytest.approx(0.75)


def test_a_clock_that_ticks_slowly_says_nothing_about_shorter_windows() -> None:
    times = np.repeat(np.arange(0.0, 3000.0, 3.0), 5)
    found = clumps([times], 3000.0)
    assert found.tick_s == 3.0
    assert (found.dispersion[1.0], found.gap_cv) == (None, None)
    assert found.dispersion[10.0] is not None
    clumped = arrival_times(Traffic(process="gamma", cv=13.0, rate_rps=3.0), 2000.0, 1)
    assert clumps([clumped], 2000.0).tick_s == 0.0, "equal times alone are no slow clock"


def test_nothing_arrives() -> None:
    found = clumps([np.empty(0)], 600.0)
    assert (found.requests, found.rate_rps, found.worst, found.worst_rps, found.gap_cv) == (0.0, 0.0, None, None, None)
    assert set(found.dispersion.values()) == {None}
