"""Percentiles and intervals, against exact fractions, NumPy and intervals worked out with SciPy."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.outcome.spread import QUANTILES, grouped_quantiles, half_width, number, quantile, spread

SHARES = {"p50": "0.5", "p90": "0.9", "p95": "0.95", "p99": "0.99", "p999": "0.999"}
LEVELS = np.array(list(QUANTILES.values()))


def test_keys_stand_for_their_shares() -> None:
    assert {key: Fraction(share) for key, share in SHARES.items()} == {
        key: Fraction(str(q)) for key, q in QUANTILES.items()
    }


class TestQuantile:
    @pytest.mark.parametrize("key", SHARES)
    def test_rank_is_the_smallest_that_covers_the_share(self, key: str) -> None:
        """By exact arithmetic, where shares times sizes are whole numbers too."""
        share = Fraction(SHARES[key])
        for size in [*range(1, 1201), *range(2000, 2_000_001, 111_000)]:
            rank = -(-size * share.numerator // share.denominator)
            assert quantile(np.arange(1.0, size + 1), QUANTILES[key]) == rank, size

    @settings(derandomize=True, deadline=None)
    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.sampled_from(sorted(QUANTILES)))
    def test_equals_numpy(self, values: list[float], key: str) -> None:
        want = np.percentile(values, 100 * QUANTILES[key], method="inverted_cdf")
        assert quantile(np.sort(values), QUANTILES[key]) == want

    def test_extremes(self) -> None:
        one = np.array([7.0])
        assert [quantile(one, q) for q in (0.0, 0.5, 0.999, 1.0)] == [7.0] * 4
        two = np.array([1.0, 2.0])
        assert [quantile(two, q) for q in (0.0, 0.5, 0.500001, 1.0)] == [1.0, 1.0, 2.0, 2.0]
        assert np.isnan(quantile(np.empty(0), 0.5))


def test_grouped_quantiles_are_those_of_each_group() -> None:
    rng = np.random.default_rng(3)
    group = rng.integers(9, size=400)
    group[group == 4] = 5  # one group stays empty
    values = np.round(rng.exponential(size=400), 1)
    found = grouped_quantiles(values, group, 9, LEVELS)
    for g in range(9):
        want = [quantile(np.sort(values[group == g]), q) for q in LEVELS]
        np.testing.assert_array_equal(found[:, g], want)
    assert np.isnan(found[:, 4]).all()
    assert np.isnan(grouped_quantiles(np.empty(0), np.empty(0, np.int64), 2, LEVELS)).all()


class TestHalfWidth:
    def test_two_values_by_hand(self) -> None:
        """Mean 2, standard deviation sqrt(2), so 12.7062 * sqrt(2) / sqrt(2)."""
        assert half_width(np.array([1.0, 3.0])) == pytest.approx(12.706204736, rel=1e-9)

    @settings(derandomize=True, deadline=None)
    @given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40).filter(lambda v: np.ptp(v) > 1e-3))
    def test_equals_scipy_interval(self, values: list[float]) -> None:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
        assert half_width(np.array(values)) == pytest.approx((high - low) / 2, rel=1e-9)

    def test_unknown_values_are_left_out(self) -> None:
        assert half_width(np.array([1.0, np.nan, 3.0, np.nan])) == half_width(np.array([1.0, 3.0]))

    @pytest.mark.parametrize("values", [[], [4.0], [np.nan, np.nan], [np.nan, 4.0]])
    def test_below_two_values_there_is_none(self, values: list[float]) -> None:
        assert half_width(np.array(values)) is None


class TestSpread:
    def test_figures_are_pooled_and_not_averaged(self) -> None:
        """Nine small values in one seed, a large one in the other: the pooled p90 is small, the mean of both isn't."""
        values = np.array([*range(1, 10), 100.0])
        found = spread(values, np.array([0, 9, 10]))
        want = {"mean": 14.5, "p50": 5.0, "p90": 9.0, "p95": 100.0, "p99": 100.0, "p999": 100.0, "max": 100.0}
        assert found.figures == want
        assert found.counts.tolist() == [9.0, 1.0]
        assert found.per_seed["p50"].tolist() == [5.0, 100.0]
        assert found.per_seed["mean"].tolist() == [5.0, 100.0]
        assert found.per_seed["max"].tolist() == [9.0, 100.0]
        assert values.tolist() == [*range(1, 10), 100.0], "what it was given stays as it was"

    def test_interval_is_around_the_pooled_figure_and_not_below_zero(self) -> None:
        rng = np.random.default_rng(1)
        values, start = rng.exponential(size=600), np.array([0, 100, 300, 300, 600])
        found = spread(values, start)
        parts = [values[a:b] for a, b in pairwise(start) if b > a]
        entry = found.as_summary()
        ci = entry["ci95"]
        assert isinstance(ci, dict)
        assert list(ci) == ["mean", "p50", "p90", "p95", "p99", "p999"]
        for key, (low, high) in ci.items():
            each = [p.mean() if key == "mean" else np.quantile(p, QUANTILES[key], method="inverted_cdf") for p in parts]
            half = stats.t.ppf(0.975, 2) * stats.sem(each)
            value = values.mean() if key == "mean" else np.quantile(values, QUANTILES[key], method="inverted_cdf")
            assert entry[key] == pytest.approx(value, rel=1e-12)
            assert (low, high) == (pytest.approx(max(0.0, value - half)), pytest.approx(value + half))
        wide = spread(np.array([0.0, 1.0]), np.array([0, 1, 2])).intervals()
        assert wide is not None
        assert wide["mean"] is not None
        assert wide["mean"][0] == 0.0

    def test_one_seed_has_no_interval(self) -> None:
        assert spread(np.array([1.0, 2.0]), np.array([0, 2])).as_summary()["ci95"] is None

    def test_nothing_observed_is_null(self) -> None:
        entry = spread(np.empty(0), np.array([0, 0, 0])).as_summary()
        assert entry.pop("ci95") == dict.fromkeys(["mean", *QUANTILES])
        assert entry == dict.fromkeys(["mean", *QUANTILES, "max"])

    def test_only_one_seed_with_observations_has_no_interval(self) -> None:
        entry = spread(np.array([1.0, 2.0]), np.array([0, 2, 2])).as_summary()
        assert entry["ci95"] == dict.fromkeys(["mean", *QUANTILES])
        assert entry["p50"] == 1.0


@pytest.mark.parametrize(("value", "shown"), [(None, None), (np.nan, None), (np.inf, None), (np.float64(2), 2.0)])
def test_json_numbers(value: float | None, shown: float | None) -> None:
    assert number(value) == shown
