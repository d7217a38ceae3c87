"""Curves of a rate's factor over time that can be integrated and inverted without error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_SHORTEST_S: Final = 1e-100  # a piece that is shorter is a jump: its slope might be beyond the largest float


class Curve(Protocol):
    """A factor over t >= 0 seconds, never negative."""

    identity: bool
    """Whether the factor is 1 at all times, so that integral and inverse return what they are given."""

    def factor(self, t: FloatArray) -> FloatArray:
        """Return the factor at each time (at a jump, the value after it)."""
        ...

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the integral of the factor from 0 to each time of t >= 0, in seconds."""
        ...

    def inverse(self, area: FloatArray) -> FloatArray:
        """Return the first time at which the integral reaches each area; inf where it never does."""
        ...


class PiecewiseLinear:
    """A factor made of straight pieces, with jumps allowed between them, constant after the last.

    `pieces` is a sequence of (length in seconds, factor at the start, factor at the end), from t = 0; pieces of length
    0 are jumps. After them the factor stays at `after`. Inside a piece of slope s the integral is
    `A + a x + s x^2 / 2`, whose inverse is taken in the form `x = 2 r / (a + sqrt(a^2 + 2 s r))`, which loses no digits
    where the slope is small and needs no case for slope 0.
    """

    identity = False

    def __init__(self, pieces: Sequence[tuple[float, float, float]], after: float) -> None:
        length, start, end = np.array(pieces, dtype=np.float64).reshape(-1, 3).T
        lasting = length > _SHORTEST_S
        length, start, end = length[lasting], start[lasting], end[lasting]
        self._t = np.concatenate(([0.0], np.cumsum(length)))
        self._area = np.concatenate(([0.0], np.cumsum(length * (start + end) / 2.0)))
        self._length = np.append(length, np.inf)
        self._start = np.append(start, after)
        self._slope = np.append((end - start) / length, 0.0)

    def factor(self, t: FloatArray) -> FloatArray:
        """Return the factor at each time of t >= 0 (at a jump, the value after it)."""
        i = np.searchsorted(self._t, t, side="right") - 1
        return np.asarray(self._start[i] + self._slope[i] * (t - self._t[i]), dtype=np.float64)

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the integral of the factor from 0 to each time of t >= 0, in seconds."""
        i = np.searchsorted(self._t, t, side="right") - 1
        x = t - self._t[i]
        return np.asarray(self._area[i] + x * (self._start[i] + 0.5 * self._slope[i] * x), dtype=np.float64)

    def inverse(self, area: FloatArray) -> FloatArray:
        """Return the first time at which the integral reaches each area >= 0; inf where it never does."""
        i = np.maximum(np.searchsorted(self._area, area, side="left") - 1, 0)
        rest = area - self._area[i]
        start, slope = self._start[i], self._slope[i]
        # Where a piece falls to 0, rounding may leave a root of a tiny negative number at its end.
        root = np.sqrt(np.maximum(start * start + 2.0 * slope * rest, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(rest > 0.0, 2.0 * rest / (start + root), 0.0)
        return np.asarray(self._t[i] + np.minimum(x, self._length[i]), dtype=np.float64)
