"""Constant: every request has the same length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.scenario import Constant


def quantile(settings: Constant, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """`value`, whatever the uniform."""
    return np.full(uniforms.shape, settings.value, dtype=np.float64)
