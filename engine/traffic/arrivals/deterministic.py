"""Deterministic: a metronome; the first arrival comes one gap after the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.scenario import Traffic


def gaps(uniforms: NDArray[np.float64], traffic: Traffic) -> NDArray[np.float64]:
    """Gaps of exactly 1, so that the k-th arrival (from 1) of a steady rate is at exactly k / rate."""
    return np.ones_like(uniforms)
