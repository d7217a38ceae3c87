"""Diurnal: a cosine around the rate, like the traffic of a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.traffic.shapes import steady
from engine.traffic.shapes.curve import Curve, FloatArray

if TYPE_CHECKING:
    from engine.scenario import Diurnal

_TURN: Final = 2.0 * np.pi
_NEWTON_STEPS: Final = 6  # five reach the last digit, whatever the amplitude and the area


class _Cosine:
    """`1 + a cos(2 pi (t - peak) / period)`, 0 <= a <= 1, whose integral over a period is the period."""

    identity = False

    def __init__(self, period_s: float, amplitude: float, peak_at_s: float) -> None:
        self._period, self._amplitude = period_s, amplitude
        self._peak = float(np.fmod(peak_at_s, period_s))  # the first one: small numbers keep more digits
        self._wave = amplitude * period_s / _TURN
        self._before = self._wave * float(np.sin(_TURN * self._peak / period_s))

    def factor(self, t: FloatArray) -> FloatArray:
        """Return the factor at each time."""
        return np.asarray(1.0 + self._amplitude * np.cos(self._angle(t - self._peak)), dtype=np.float64)

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the integral of the factor from 0 to each time of t >= 0, in seconds.

        The difference of sines at both ends is written as a product, which is as exact for small t as for large.
        """
        half = t / 2.0
        swing = 2.0 * self._wave * np.cos(self._angle(half - self._peak)) * np.sin(self._angle(half))
        return np.asarray(t + swing, dtype=np.float64)

    def inverse(self, area: FloatArray) -> FloatArray:
        """Return the time at which the integral reaches each area >= 0.

        With E the angle from the trough, `E - a sin(E)` grows in proportion to the area: Kepler's equation.
        """
        turns = (area - self._peak - self._before) / self._period
        trough = np.floor(turns) + 0.5
        from_trough = _kepler(_TURN * (turns - trough), self._amplitude)
        return np.maximum(self._peak + self._period * (trough + from_trough / _TURN), 0.0)

    def _angle(self, t: FloatArray) -> FloatArray:
        return np.asarray(_TURN * np.remainder(t / self._period, 1.0))


def _kepler(mean: FloatArray, eccentricity: float) -> FloatArray:
    """Return E with E - e sin(E) = mean, for angles within [-pi, pi] and 0 <= e <= 1.

    On [0, pi] the left side is convex, so Newton's method comes down to the root from any start above it. The start is
    the smallest of three upper bounds; the last is from E - sin(E) >= E^3 / 12, and tight where the slope vanishes. The
    number of steps is fixed, so that a value doesn't depend on the others that are computed with it.
    """
    m = np.abs(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = (m + eccentricity, m / (1.0 - eccentricity), np.cbrt(12.0 * m / eccentricity))
        e = np.fmin.reduce([np.minimum(bounds[0], np.pi), *bounds[1:]])
        for _ in range(_NEWTON_STEPS):
            e = e - (e - eccentricity * np.sin(e) - m) / (1.0 - eccentricity * np.cos(e))
    return np.asarray(np.copysign(np.where(m > 0.0, e, 0.0), mean), dtype=np.float64)


def curve(shape: Diurnal, horizon_s: float) -> Curve:
    """Factor `trough_factor` at the quietest moment and `2 - trough_factor` at `peak_at_s` and every period from there.

    So the average over a whole period is 1: `rate_rps` stays the average rate.
    """
    if shape.trough_factor == 1.0:
        return steady.IDENTITY
    return _Cosine(shape.period_s, 1.0 - shape.trough_factor, shape.peak_at_s)
