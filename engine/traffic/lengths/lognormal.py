"""Lognormal: many short, few very long; what real prompts and answers mostly look like."""

from __future__ import annotations

from math import log, log1p, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

if TYPE_CHECKING:
    from engine.scenario import Lognormal


def quantile(settings: Lognormal, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """`exp(mu + sigma z)`, z the normal quantile, with sigma^2 = ln(1 + cv^2) and mu = ln(mean) - sigma^2 / 2.

    `mean` and `cv` are the distribution's own mean and coefficient of variation, not those of its logarithm.
    """
    variance = log1p(settings.cv**2)
    if variance == 0.0:
        return np.full(uniforms.shape, settings.mean, dtype=np.float64)
    exponent: NDArray[np.float64] = ndtri(uniforms)
    exponent *= sqrt(variance)
    exponent += log(settings.mean) - variance / 2.0
    return np.exp(exponent, out=exponent)
