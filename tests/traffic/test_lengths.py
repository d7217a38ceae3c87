"""Lengths: inverses of distributions, rounding and clipping."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from engine.scenario import TrafficClass
from engine.traffic import DISTRIBUTIONS
from engine.traffic.lengths import lengths, only_length
from engine.traffic.requests import MAX_TOKENS
from tests.traffic.build import GRID, UNIFORMS

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "constant": [{"value": 300}],
    "lognormal": [
        {"mean": 1155.0, "cv": 1.0},
        {"mean": 12.5, "cv": 0.0},
        {"mean": 40.0, "cv": 4.0, "min": 10, "max": 90},
    ],
    "uniform": [{"low": 1, "high": 6}, {"low": 5, "high": 5}, {"low": 1, "high": 4096, "max": 4000}],
    "geometric": [{"mean": 1.0}, {"mean": 20.0}, {"mean": 1000.0, "min": 3}],
    "empirical": [{"values": [7, 3, 500], "weights": [1.0, 2.0, 0.5]}, {"values": [9], "weights": [1.0]}],
}
"""Settings under which each distribution is tried; a new one adds its own here."""
CASES = [pytest.param({"dist": dist, **more}, id=f"{dist}{more}") for dist in DISTRIBUTIONS for more in EXAMPLES[dist]]


def length(**settings: Any) -> Any:
    return TrafficClass.model_validate({"prompt_tokens": settings}).prompt_tokens


def quantile(uniforms: np.ndarray = UNIFORMS, **settings: Any) -> np.ndarray:
    """Lengths before rounding and clipping."""
    return DISTRIBUTIONS[settings["dist"]](length(**settings), uniforms)


@pytest.mark.parametrize("dist", DISTRIBUTIONS)
def test_it_is_documented(dist: str) -> None:
    assert DISTRIBUTIONS[dist].__doc__
    assert sys.modules[DISTRIBUTIONS[dist].__module__].__doc__


@pytest.mark.parametrize("settings", CASES)
def test_lengths_are_whole_within_bounds_and_grow_with_their_uniform(settings: dict[str, Any]) -> None:
    spec = length(**settings)
    drawn = lengths(spec, GRID)
    assert drawn.dtype == np.int32
    assert drawn.min() >= spec.min
    assert spec.max is None or drawn.max() <= spec.max
    assert (np.diff(drawn) >= 0).all()


@pytest.mark.parametrize("settings", CASES)
def test_a_length_depends_on_its_own_uniform_alone(settings: dict[str, Any]) -> None:
    spec, before = length(**settings), UNIFORMS.copy()
    whole = lengths(spec, UNIFORMS)
    assert np.array_equal(UNIFORMS, before)
    parts = [lengths(spec, UNIFORMS[a:b]) for a, b in ((0, 1), (1, 8), (8, 1000), (1000, UNIFORMS.size))]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("settings", CASES)
def test_only_length_tells_whether_there_is_anything_to_draw(settings: dict[str, Any]) -> None:
    spec = length(**settings)
    found = set(lengths(spec, UNIFORMS).tolist())
    assert found == {only_length(spec)} if only_length(spec) is not None else len(found) > 1


@pytest.mark.parametrize(("mean", "cv"), [(1155.0, 1.0), (211.0, 0.9), (50.0, 0.01), (3.0, 10.0)])
def test_lognormal_is_lognormal(mean: float, cv: float) -> None:
    """scipy's `s` is sigma and its scale is exp(mu); its own mean and deviation give back what was asked for."""
    sigma = np.sqrt(np.log(1 + cv**2))
    law = stats.lognorm(s=sigma, scale=mean / np.exp(sigma**2 / 2))
    assert law.mean() == pytest.approx(mean)
    assert law.std() == pytest.approx(mean * cv)
    assert np.allclose(quantile(dist="lognormal", mean=mean, cv=cv), law.ppf(UNIFORMS), rtol=1e-12)


def test_lognormal_has_the_mean_and_variation_that_it_names() -> None:
    drawn = lengths(length(dist="lognormal", mean=1155.0, cv=1.0), UNIFORMS)
    assert drawn.mean() == pytest.approx(1155, rel=4 / np.sqrt(UNIFORMS.size))
    assert drawn.std() / drawn.mean() == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(("low", "high"), [(1, 2), (10, 17), (1, 1_000_000)])
def test_uniform_is_uniform(low: int, high: int) -> None:
    drawn = quantile(dist="uniform", low=low, high=high)
    assert np.array_equal(drawn, np.maximum(stats.randint(low, high + 1).ppf(UNIFORMS), low))
    ends = quantile(GRID, dist="uniform", low=low, high=high)
    assert (ends[0], ends[-1]) == (low, high)


@pytest.mark.parametrize("mean", [1.0, 1.5, 20.0, 4096.0])
def test_geometric_is_geometric(mean: float) -> None:
    drawn = quantile(dist="geometric", mean=mean)
    law = np.ones(UNIFORMS.size) if mean == 1 else stats.geom(1 / mean).ppf(UNIFORMS)
    assert np.array_equal(drawn, law)
    assert drawn.mean() == pytest.approx(mean, rel=4 / np.sqrt(UNIFORMS.size))


def test_empirical_draws_by_weight_whatever_the_order() -> None:
    values, weights = [7, 3, 500, 20], [1.0, 2.0, 0.5, 0.0]
    drawn = quantile(dist="empirical", values=values, weights=weights)
    counts = np.array([(drawn == value).sum() for value in values])
    assert counts[3] == 0
    expected = UNIFORMS.size * np.array(weights[:3]) / 3.5
    assert stats.chi2.sf(((counts[:3] - expected) ** 2 / expected).sum(), 2) > 0.01
    shuffled = quantile(dist="empirical", values=[500, 20, 3, 7], weights=[0.5, 0.0, 2.0, 1.0])
    assert np.array_equal(drawn, shuffled)


def test_empirical_never_draws_a_weight_of_zero() -> None:
    ends = np.array([0.0, 1 - 2.0**-53])
    assert quantile(ends, dist="empirical", values=[1, 2, 3], weights=[0.0, 1e-9, 0.0]).tolist() == [2, 2]


def test_lengths_are_rounded_half_up_and_then_clipped() -> None:
    def alike(mean: float, **bounds: int) -> int:
        return int(lengths(length(dist="lognormal", mean=mean, cv=0.0, **bounds), np.array([0.3]))[0])

    assert [alike(mean) for mean in (1.49, 1.5, 2.5, 3.5, 4.5)] == [1, 2, 3, 4, 5]
    assert alike(2.5, max=2) == 2
    assert alike(2.5, min=4) == 4


def test_a_longer_setting_makes_every_request_at_least_as_long() -> None:
    short, long = (lengths(length(dist="lognormal", mean=mean, cv=1.0), UNIFORMS) for mean in (200.0, 220.0))
    assert (long >= short).all()


def test_lengths_beyond_every_bound_are_cut_to_the_bound() -> None:
    drawn = lengths(length(dist="lognormal", mean=1e7, cv=10.0), np.array([0.0, 1 - 2.0**-53]))
    assert drawn.tolist() == [1, MAX_TOKENS]


def test_the_longest_length_is_the_scenarios() -> None:
    assert length(dist="constant", value=MAX_TOKENS).value == MAX_TOKENS
    with pytest.raises(ValidationError):
        length(dist="constant", value=MAX_TOKENS + 1)
