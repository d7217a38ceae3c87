"""How far predictions are from measurements: percentiles of the absolute percentage error, with intervals.

Every deployment (source, model, accelerator, engine, devices) has equal weight in a figure, however many points it
has there. Intervals come from drawing deployments with replacement, with a fixed seed. All errors are in percent.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.machine.calibration.rows import METRICS, Point

Floats = NDArray[np.float64]
DRAWS = 1000
"""Of deployments, for an interval."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Points with the relative errors of their predictions, (points,): predicted / measured - 1."""

    points: Sequence[Point]
    errors: Floats

    def where(self, keep: Iterable[bool]) -> Scored:
        """Some of them."""
        rows = [row for row, kept in enumerate(keep) if kept]
        return Scored([self.points[row] for row in rows], self.errors[rows])


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The smallest value with at least that share of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))])


def equal_weights(groups: Sequence[Hashable]) -> tuple[Floats, NDArray[np.int64]]:
    """Weights that sum to 1 in each group, and each entry's group as a number; both (entries,)."""
    numbers: dict[Hashable, int] = {}
    index = np.array([numbers.setdefault(group, len(numbers)) for group in groups], np.int64)
    return 1.0 / np.bincount(index)[index], index


def leaf(scored: Scored) -> dict[str, Any] | None:
    """`median_ape`, `p90_ape`, `signed_median` in percent, `n` points, `deployments`, `ci95` of the median."""
    if not len(scored.points):
        return None
    weights, index = equal_weights([point.deployment_key for point in scored.points])
    apes = 100 * np.abs(scored.errors)
    return {
        "median_ape": _rounded(weighted_quantile(apes, weights, 0.5)),
        "p90_ape": _rounded(weighted_quantile(apes, weights, 0.9)),
        "signed_median": _rounded(weighted_quantile(100 * scored.errors, weights, 0.5)),
        "n": len(scored.points),
        "deployments": int(index.max()) + 1,
        "ci95": interval(apes, weights, index),
    }


def interval(apes: Floats, weights: Floats, index: NDArray[np.int64], share: float = 0.5) -> list[float]:
    """95 % interval of a quantile over draws of deployments with replacement."""
    deployments = int(index.max()) + 1
    rng = np.random.default_rng(20_240_917)
    order = np.argsort(apes, kind="stable")
    sorted_apes, sorted_weights, sorted_index = apes[order], weights[order], index[order]
    found = np.empty(DRAWS)
    for draw in range(DRAWS):
        times = np.bincount(rng.integers(deployments, size=deployments), minlength=deployments)
        reached = np.cumsum(sorted_weights * times[sorted_index])
        found[draw] = sorted_apes[np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))]
    low, high = np.quantile(found, [0.025, 0.975])
    return [_rounded(float(low)), _rounded(float(high))]


def table(scored: Scored) -> dict[str, Any]:
    """Leaves: `overall`, `by_metric`, `by_class`, `by_accelerator`, `by_source`."""
    return {
        "overall": leaf(scored),
        "by_metric": {name: leaf(scored.where(p.metric == name for p in scored.points)) for name in METRICS},
        "by_class": {
            name: leaf(scored.where(p.dense == (name == "dense") for p in scored.points)) for name in ("dense", "moe")
        },
        "by_accelerator": _by(scored, [point.accelerator.name for point in scored.points]),
        "by_source": _by(scored, [point.source for point in scored.points]),
    }


def _by(scored: Scored, names: Sequence[str]) -> dict[str, Any]:
    return {name: leaf(scored.where(one == name for one in names)) for name in sorted(set(names))}


def _rounded(value: float) -> float:
    return round(value, 2)
