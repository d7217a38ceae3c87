"""Poisson: independent users in large number; gaps are exponential."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.scenario import Traffic


def gaps(uniforms: NDArray[np.float64], traffic: Traffic) -> NDArray[np.float64]:
    """Exponential gaps, by the inverse of their distribution: `-ln(1 - u)`.

    `1 - u` is exact for the multiples of 2^-53 that a generator yields, so no precision is lost near u = 0.
    """
    complement = np.subtract(1.0, uniforms, out=uniforms)
    return np.negative(np.log(complement, out=complement), out=complement)
