"""Percentiles and their means: the known mixture, by hand, and a run's own parts."""

from __future__ import annotations

import numpy as np
import pytest

from engine import simulate
from engine.outcome.promises.averaging import averaged, averages
from tests.outcome.promises.build import BUSY
from tests.outcome.promises.oracles import Row, of

N = 1_000_000


@pytest.mark.parametrize("row", of("Averaging_percentiles"), ids=lambda row: row.name)
def test_oracles(row: Row) -> None:
    """Nine of ten requests with mean 1, one with mean 10: the distributions' own quantiles as samples."""
    grid = [-np.log1p(-(np.arange(n) + 0.5) / n) for n in (9 * N // 10, N // 10)]
    values = np.concatenate([grid[0], 10.0 * grid[1]])
    part = np.repeat([0, 1], [grid[0].size, grid[1].size])
    found = averaged(values, part, 0.99)
    assert found is not None
    value = {
        "true_p99": found.true_s,
        "unweighted_mean_of_p99s": found.mean_s,
        "traffic_weighted_mean_of_p99s": found.weighted_s,
    }[row.quantity]
    assert value == pytest.approx(row.value, rel=2e-4)


def test_by_hand() -> None:
    found = averaged(np.array([1.0, 2.0, 3.0, 4.0, 10.0]), np.array([0, 0, 0, 0, 2]), 0.5)
    assert found is not None
    assert (found.true_s, found.mean_s, found.weighted_s, found.parts) == (3.0, 6.0, 3.6, 2)
    assert (found.lowest_s, found.highest_s) == (2.0, 10.0)
    assert averaged(np.empty(0), np.empty(0, np.int64), 0.5) is None


def test_a_runs_parts() -> None:
    result = simulate(BUSY)
    table = result.requests
    took = result.ttft_s
    found = averages(result, took, 0.9)
    seen = result.observed
    assert set(found) == {"slice", "replica", "run"}
    for each in found.values():
        assert each.true_s == np.quantile(took[seen], 0.9, method="inverted_cdf")
    by_run = [np.quantile(took[seen & (table.seed == s)], 0.9, method="inverted_cdf") for s in table.seed.unique()]
    assert found["run"].mean_s == pytest.approx(np.mean(by_run))
    assert (found["run"].parts, found["replica"].parts) == (3, 6)
    assert found["slice"].parts == 3 * 14
    minute = ((table.arrival_s - 20.0) // 10.0)[seen]
    cells = table[seen].assign(took=took[seen], slot=minute).groupby(["seed", "slot"]).took
    figures = cells.agg(lambda part: np.quantile(part, 0.9, method="inverted_cdf"))
    assert found["slice"].mean_s == pytest.approx(figures.mean())
    assert found["slice"].weighted_s == pytest.approx(np.average(figures, weights=cells.size()))
