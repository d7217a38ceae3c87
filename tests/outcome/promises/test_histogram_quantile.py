"""Quantiles read from histograms: the known answers, the last bucket, and thresholds that no edge stands at."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine.outcome.promises.histogram_quantile import (
    BUCKETS,
    cumulative,
    edges,
    histogram_quantile,
    readings,
    snap,
)
from tests.outcome.promises.oracles import TRUTH

DISTRIBUTIONS = {
    "lognormal median .4s sigma .6": stats.lognorm(0.6, scale=0.4),
    "lognormal median .8s sigma 1.0": stats.lognorm(1.0, scale=0.8),
    "exponential mean 2s": stats.expon(scale=2.0),
    "lognormal median 12s sigma .8": stats.lognorm(0.8, scale=12.0),
    "uniform 26-29 ms": stats.uniform(0.026, 0.003),
    "lognormal median .032 sigma .25": stats.lognorm(0.25, scale=0.032),
    "constant-ish 0.26 s (norm sd 1ms)": stats.norm(0.26, 0.001),
    "exponential mean 6 s in default buckets (p99 beyond last finite)": stats.expon(scale=6.0),
}
with (TRUTH / "histogram_quantile_vectors.csv").open(newline="") as _file:
    VECTORS = list(csv.DictReader(_file))


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: f"{row['distribution']} {row['q']}")
def test_known_answers(row: dict[str, str]) -> None:
    """A histogram with exactly the distribution's shares in its buckets."""
    distribution: Any = DISTRIBUTIONS[row["distribution"]]
    upper, q = edges()[row["buckets"]], float(row["q"])
    found = histogram_quantile(q, upper, np.append(distribution.cdf(upper), 1.0))
    true = float(distribution.ppf(q))
    assert true == pytest.approx(float(row["true_quantile"]), abs=1e-6)
    assert found == pytest.approx(float(row["histogram_quantile"]), abs=1e-6)
    assert found / true - 1 == pytest.approx(float(row["relative_error"]), abs=1e-4)


def test_every_vector_has_its_distribution() -> None:
    assert {row["distribution"] for row in VECTORS} == set(DISTRIBUTIONS)


def test_the_edges_are_the_published_ones() -> None:
    with (TRUTH / "histogram_edges.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for name, upper in edges().items():
        assert upper.tolist() == [float(row["le_s"]) for row in rows if row["buckets"] == name]
        assert (np.diff(upper) > 0).all()
    assert set(edges()) == {row["buckets"] for row in rows} >= set(BUCKETS.values())


@pytest.mark.parametrize("row", [row for row in VECTORS if row["buckets"] == "vllm_ttft"][:20:5])
def test_samples_read_as_their_distribution(row: dict[str, str]) -> None:
    """From values, as the screen does it; the sample is the distribution's own quantiles."""
    distribution: Any = DISTRIBUTIONS[row["distribution"]]
    values = distribution.ppf((np.arange(200_000) + 0.5) / 200_000)
    found = {read.q: read for read in readings(values, edges()["vllm_ttft"])}[float(row["q"])]
    assert found.true_s == pytest.approx(float(row["true_quantile"]), rel=1e-3)
    assert found.read_s == pytest.approx(float(row["histogram_quantile"]), rel=1e-3)
    assert found.bucket_s[0] <= found.read_s <= found.bucket_s[1]


def test_counts_by_hand() -> None:
    """A value on an edge belongs below it (`le`)."""
    upper = np.array([1.0, 2.0])
    counts = cumulative(np.array([0.5, 1.0, 1.5, 2.0, 9.0]), upper)
    assert counts.tolist() == [2.0, 4.0, 5.0]
    assert histogram_quantile(0.2, upper, counts) == 0.5
    assert histogram_quantile(0.4, upper, counts) == 1.0
    assert histogram_quantile(0.6, upper, counts) == 1.5
    assert histogram_quantile(0.99, upper, counts) == 2.0, "the last finite edge, wherever it really is"
    assert histogram_quantile(0.0, upper, counts) == 0.0
    assert np.isnan(histogram_quantile(0.5, upper, np.zeros(3)))
    assert readings(np.empty(0), upper) == ()


def test_readings_by_hand() -> None:
    reads = {read.q: read for read in readings(np.array([0.5, 1.0, 1.5, 2.0, 9.0]), np.array([1.0, 2.0]))}
    assert (reads[0.5].true_s, reads[0.5].read_s, reads[0.5].bucket_s) == (1.5, 1.25, (1.0, 2.0))
    assert reads[0.5].error == pytest.approx(-1 / 6)
    assert (reads[0.99].true_s, reads[0.99].read_s, reads[0.99].bucket_s) == (9.0, 2.0, (2.0, np.inf))
    assert readings(np.zeros(3), np.array([1.0]))[0].error is None


@pytest.mark.parametrize(
    ("asked", "below", "above", "edge"),
    [
        (2.0, 1.0, 2.5, 2.5),
        (1.5, 1.0, 2.5, 1.0),
        (2.5, 2.5, 2.5, 2.5),
        (0.0005, None, 0.001, 0.001),
        (9999.0, 2560.0, None, 2560.0),
        (0.0, None, 0.001, 0.001),
    ],
)
def test_a_threshold_snaps_to_the_nearer_edge_by_ratio(
    asked: float, below: float | None, above: float | None, edge: float
) -> None:
    found = snap(asked, edges()["vllm_ttft"])
    assert (found.below_s, found.above_s, found.edge_s) == (below, above, edge)
    assert found.exact == (asked == edge)


def test_equally_near_edges_take_the_stricter() -> None:
    assert snap(2.0, np.array([1.0, 4.0])).edge_s == 1.0
