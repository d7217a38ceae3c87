"""Mmpp: calm and bursts by turns; a two-state Markov-modulated Poisson process.

Reference: Fischer and Meier-Hellstern, "The Markov-modulated Poisson process (MMPP) cookbook", Performance Evaluation
18 (1993).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.traffic import streams
from engine.traffic.arrivals import poisson
from engine.traffic.shapes import Curve

if TYPE_CHECKING:
    from engine.scenario import Mmpp, Traffic

FloatArray = NDArray[np.float64]


def gaps(uniforms: FloatArray, traffic: Traffic) -> FloatArray:
    """Exponential gaps, on the clock that `modulated` makes run fast in bursts and slowly in between."""
    return poisson.gaps(uniforms, traffic)


def modulated(curve: Curve, traffic: Traffic, horizon_s: float, seed: int) -> Curve:
    """Return the curve times the factor of the state that holds: `burst_ratio` in bursts, and in calm what is left.

    The share f of time in bursts gives calm the factor (1 - f burst_ratio) / (1 - f): the mean over time is 1. Given
    the path of states, arrivals are a Poisson process whose rate is known at every moment, so changing time by its
    integral is exact, without thinning. The path has a stream of its own and runs in seconds: neither the rate nor the
    shape moves it, and a change of `burst_ratio` leaves it as it is. With `burst_ratio` 1 this is the Poisson process
    itself, number by number.
    """
    settings = traffic.mmpp
    if settings.burst_ratio == 1.0:
        return curve
    burst_first, switches = _path(settings, horizon_s, seed)
    share = settings.burst_fraction
    calm_factor = max(0.0, (1.0 - settings.burst_ratio * share) / (1.0 - share))
    factors = np.full(switches.size - 1, calm_factor)
    factors[0 if burst_first else 1 :: 2] = settings.burst_ratio
    return _Modulated(curve, switches, factors)


def _path(settings: Mmpp, horizon_s: float, seed: int) -> tuple[bool, FloatArray]:
    """Return whether it starts in a burst, and the times, from 0 to the first past the horizon, at which states begin.

    The stream's first uniform chooses the state at time 0 by the share of time in bursts; what is left of that stay is
    as long as any, exponential stays being memoryless. Then come two uniforms for each burst and the calm next to it,
    whichever is first: the k-th burst is the same one wherever the path starts.
    """
    rng = streams.stream(seed, streams.STATES)
    burst_first = bool(rng.random() < settings.burst_fraction)
    cycle_s = settings.mean_burst_s / settings.burst_fraction
    means_s = np.array([settings.mean_burst_s, cycle_s - settings.mean_burst_s])
    expected = horizon_s / cycle_s
    count = int(expected + 4.0 * expected**0.5) + 2
    chunks, last = [np.zeros(1)], 0.0
    while last <= horizon_s:
        stays = -np.log1p(-rng.random((count, 2))) * means_s
        ends = (stays if burst_first else stays[:, ::-1]).ravel()
        ends[0] += last
        chunks.append(np.cumsum(ends, out=ends))
        last = float(ends[-1])
        count = count // 8 + 2
    switches = np.concatenate(chunks)
    return burst_first, switches[: int(np.searchsorted(switches, horizon_s, side="right")) + 1]


class _Modulated:
    """A curve times a factor that holds from each of `switches`, rising from 0, to the next; defined up to the last."""

    identity = False

    def __init__(self, inner: Curve, switches: FloatArray, factors: FloatArray) -> None:
        self._inner, self._switches, self._factors = inner, switches, factors
        self._under = inner.integral(switches)
        self._area = np.concatenate(([0.0], np.cumsum(factors * np.diff(self._under))))

    def factor(self, t: FloatArray) -> FloatArray:
        """Return the factor at each time (at a switch, the value after it)."""
        return np.asarray(self._factors[self._piece_at(t)] * self._inner.factor(t))

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the integral of the factor from 0 to each time of t >= 0, in seconds."""
        i = self._piece_at(t)
        return np.asarray(self._area[i] + self._factors[i] * (self._inner.integral(t) - self._under[i]))

    def inverse(self, area: FloatArray) -> FloatArray:
        """Return the first time at which the integral reaches each area >= 0; inf beyond the last switch."""
        # From the left, so that area > self._area[i]: a silent piece is never chosen.
        i = np.clip(np.searchsorted(self._area, area, side="left") - 1, 0, self._factors.size - 1)
        rest = area - self._area[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            under = self._under[i] + np.where(rest > 0.0, rest / self._factors[i], 0.0)
        times = self._inner.inverse(np.minimum(under, self._under[i + 1]))
        return np.where(area > self._area[-1], np.inf, times)

    def _piece_at(self, t: FloatArray) -> NDArray[np.intp]:
        pieces = np.searchsorted(self._switches, t, side="right") - 1
        return np.asarray(np.minimum(pieces, self._factors.size - 1), dtype=np.intp)
