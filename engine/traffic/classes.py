"""Which class each request belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def choose(weights: Sequence[float], uniforms: NDArray[np.float64]) -> NDArray[np.int16]:
    """Return a class index for each uniform in [0, 1), class i with probability weight i / sum of weights.

    A request keeps its uniform when weights change, so only as many requests change class as the weights demand.
    """
    cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
    # side="right": a class of weight 0 is never chosen, not even by u = 0.
    chosen = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.asarray(chosen, dtype=np.int16)
