"""Steady: the rate as it is, all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.traffic.shapes.curve import Curve, FloatArray

if TYPE_CHECKING:
    from engine.scenario import Steady


class _Identity:
    """The factor 1, which costs nothing."""

    identity = True

    def factor(self, t: FloatArray) -> FloatArray:
        """Return ones."""
        return np.ones_like(t)

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the times themselves."""
        return t

    def inverse(self, area: FloatArray) -> FloatArray:
        """Return the areas themselves."""
        return area


IDENTITY = _Identity()


def curve(shape: Steady, horizon_s: float) -> Curve:
    """Return the factor 1."""
    return IDENTITY
