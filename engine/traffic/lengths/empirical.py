"""Empirical: measured lengths with their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.scenario import Empirical


def quantile(settings: Empirical, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each of `values` with probability weight / sum of `weights` .

    Values are taken in rising order, however they are listed, so that a larger uniform never gives a shorter length.
    """
    values = np.asarray(settings.values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(np.asarray(settings.weights, dtype=np.float64)[order])
    # side="right": a weight of 0 is never chosen, not even by u = 0.
    chosen = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.asarray(values[order][chosen], dtype=np.float64)
