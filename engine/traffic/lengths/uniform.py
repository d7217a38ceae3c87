"""Uniform: every whole number in a range is equally likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.scenario import Uniform


def quantile(settings: Uniform, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole numbers from `low` to `high`, both included, each with probability 1 / (high - low + 1)."""
    steps = uniforms * (settings.high - settings.low + 1)
    return np.add(np.floor(steps, out=steps), settings.low, out=steps)
