"""Geometric: an answer that may end after each token with the same probability; the memoryless length."""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.scenario import Geometric


def quantile(settings: Geometric, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole numbers from 1 with P(length > k) = (1 - 1/mean)^k: 1 + floor(ln(1 - u) / ln(1 - 1/mean))."""
    if settings.mean <= 1.0:
        return np.ones(uniforms.shape, dtype=np.float64)
    return np.floor(np.log1p(-uniforms) / log1p(-1.0 / settings.mean)) + 1.0
