"""How many requests a percentile needs: the exact ranks, and that intervals cover as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from engine.outcome.promises.quantile_interval import fewest, none_above, ranks, sure
from tests.outcome.promises.oracles import Row, of


@pytest.mark.parametrize("row", of("Quantile_CI"), ids=lambda row: row.name)
def test_oracles(row: Row) -> None:
    n, q = row.parameters["n"], row.parameters["q"]
    if row.quantity.startswith("P(no sample"):
        assert none_above(n, q) == pytest.approx(row.value, rel=1e-9, abs=1e-300)
        return
    found = ranks(n, q, row.parameters["conf"])
    assert (found.low if row.quantity.startswith("rank_low") else found.high) == row.value


@pytest.mark.parametrize(("q", "least"), [(0.5, 6), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_the_fewest_requests(q: float, least: int) -> None:
    """With one fewer, 2.5 % or more of all samples have nothing above the true quantile."""
    assert fewest(q) == least
    assert none_above(least, q) <= 0.025 < none_above(least - 1, q)
    assert ranks(least, q).high <= least
    assert ranks(least - 1, q).high > least - 1


def test_intervals_cover_as_often_as_they_say() -> None:
    """Of 4,000 samples of 300 exponential times, at least 95 % of the intervals hold the true p90."""
    draws = np.sort(np.random.default_rng(4).exponential(size=(4000, 300)), axis=1)
    found = [sure(row, 0.9) for row in draws]
    true = -np.log(0.1)
    covered = np.mean([(s.low_s or 0.0) <= true <= (s.high_s or np.inf) for s in found])
    assert 0.945 <= covered <= 0.975


def test_a_small_sample_bounds_nothing_above() -> None:
    found = sure(np.arange(1.0, 101.0), 0.99)
    assert (found.value_s, found.low_s, found.high_s, found.needs) == (99.0, 97.0, None, 368)
    assert sure(np.array([5.0]), 0.5).low_s is None
