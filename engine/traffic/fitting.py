"""From a recorded trace to a process and lengths that resemble it, and how well they do.

Everything by moments: mean rate, variation of gaps, dispersion and skewness of counts, mean and variation of lengths.
That keeps the load, which matters more to a queue than the most likely shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, expm1, isfinite, log1p, sqrt
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from engine.scenario import Lognormal, Traffic
from engine.traffic.arrivals import arrival_times
from engine.traffic.clumps import Clumps, clumps, counts
from engine.traffic.lengths import lognormal
from engine.traffic.traces import Trace

Floats = NDArray[np.float64]
Process = Literal["poisson", "gamma", "mmpp"]
Law = Callable[[Floats], Floats]
"""From values to a distribution's shares up to them."""

POOR_KS: Final = 0.1
"""A lognormal whose largest distance to the recorded shares is above this resembles the lengths poorly."""
_CLOSE: Final = 1.25
"""A dispersion is met when it is off by at most this factor, and what chance adds to a measurement of it."""
_FEWEST: Final = 10
"""Requests that a trace must have."""
_NEXT_TO_NONE: Final = 0.02
"""A dispersion below this is clockwork."""
_DRAWS: Final = 5
_MOST_DRAWN: Final = 100_000
_MOST_CV: Final = 20.0
_MOST_LENGTH_CV: Final = 10.0
_LONGEST_BURST_S: Final = 86_400.0
_MOST_RATIO: Final = 1000.0
_FRACTIONS: Final = (1e-4, 0.99)


@dataclass(frozen=True, slots=True)
class FittedLength:
    """A lognormal with a trace's mean and variation, cut at its longest; tokens."""

    mean: float
    cv: float
    longest: int
    ks: float
    """Largest distance between recorded and fitted shares (Kolmogorov and Smirnov)."""

    @property
    def poor(self) -> bool:
        """Whether the lengths are hardly lognormal."""
        return self.ks > POOR_KS

    def quantiles(self, shares: Floats) -> Floats:
        """Tokens up to which these shares, (n,) above 0 and below 1, of drawn lengths are; not rounded."""
        law = Lognormal(mean=self.mean, cv=self.cv)
        return np.clip(lognormal.quantile(law, shares), 1.0, self.longest)

    @property
    def settings(self) -> dict[str, Any]:
        """As a scenario writes it."""
        return {"dist": "lognormal", "mean": self.mean, "cv": self.cv, "min": 1, "max": self.longest}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One process with the settings that resemble the trace most, and how clumped it is in draws as long as that."""

    process: Process
    settings: dict[str, Any]
    """Dotted paths below ``traffic`` and their values."""
    clumps: Clumps
    off: float
    """Factor by which the window that it meets worst is off; 1 is perfect."""
    good: bool
    """Whether every window is met within a quarter and what chance adds."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What resembles a trace."""

    measured: Clumps
    candidates: tuple[Candidate, ...]
    """Simplest first."""
    best: Candidate
    """The simplest good one; where none is, the one that is least off."""
    prompt: FittedLength
    output: FittedLength

    @property
    def resample(self) -> bool:
        """Whether drawing blocks of the trace itself resembles it better than any of this."""
        return not self.best.good or self.prompt.poor or self.output.poor


def fit(trace: Trace) -> Fit | None:
    """The fit of a trace, or None for one that takes no time or has fewer than ten requests."""
    times, span_s = trace.arrival_s, float(trace.arrival_s[-1])
    if span_s <= 0.0 or times.size < _FEWEST:
        return None
    measured = clumps([times], span_s)
    laws = (_poisson(measured), _gamma(measured), _mmpp(measured, times))
    candidates = tuple(_candidate(*law, measured) for law in laws if law is not None)
    good = [candidate for candidate in candidates if candidate.good]
    best = good[0] if good else min(candidates, key=lambda candidate: candidate.off)
    return Fit(measured, candidates, best, fitted_length(trace.prompt_tokens), fitted_length(trace.output_tokens))


def scenario_changes(found: Fit, speed: float = 1.0) -> dict[str, Any]:
    """What makes a scenario that replays the trace `speed` times as fast one that draws the best fit, as long as it.

    Paths and values as `Scenario.replace` takes them. All kinds of requests become one.
    """
    law = found.best.settings
    settings = {f"traffic.{name}": value for name, value in law.items()} | {"traffic.rate_rps": law["rate_rps"] * speed}
    if "mmpp" in law:
        settings["traffic.mmpp"] = law["mmpp"] | {"mean_burst_s": law["mmpp"]["mean_burst_s"] / speed}
    lengths = {"prompt_tokens": found.prompt.settings, "output_tokens": found.output.settings}
    return settings | {
        "traffic.process": found.best.process,
        "traffic.trace.source": None,
        "traffic.trace.speed": 1.0,
        "traffic.trace.resample": "none",
        "traffic.classes": [{"name": "fitted", **lengths}],
        "run.horizon_s": max(1.0, float(round(found.measured.span_s / speed))),
    }


def fitted_length(tokens: NDArray[np.int32]) -> FittedLength:
    """The lognormal of recorded lengths (n,), tokens."""
    mean, spread = float(tokens.mean()), float(tokens.std())
    cv = min(spread / mean, _MOST_LENGTH_CV)
    longest = int(tokens.max())
    variance = log1p(cv**2)
    if variance == 0.0:
        return FittedLength(mean, 0.0, longest, 0.0)
    law = stats.lognorm(s=sqrt(variance), scale=mean * exp(-variance / 2))

    def up_to(length: Floats) -> Floats:
        """A drawn length is rounded half up, at least 1, then cut: so much is up to n that was below n + 1/2."""
        return np.where(length < 1, 0.0, np.where(length < longest, law.cdf(length + 0.5), 1.0))

    return FittedLength(mean, cv, longest, ks_distance(tokens, up_to, lambda length: up_to(length - 1.0)))


def ks_distance(sample: NDArray[Any], cdf: Law, below: Law | None = None) -> float:
    """The largest distance between the shares of a sample (n,) up to each value and a distribution's.

    `below` gives a distribution's share below a value where it isn't that up to it: where it has steps.
    """
    values, many = np.unique(sample, return_counts=True)
    places = values.astype(np.float64)
    up_to = np.cumsum(many) / sample.size
    distance = np.abs(up_to - cdf(places)), np.abs(up_to - many / sample.size - (below or cdf)(places))
    return float(np.max(distance))


def _poisson(measured: Clumps) -> tuple[Process, dict[str, Any]]:
    return "poisson", {"rate_rps": measured.rate_rps}


def _gamma(measured: Clumps) -> tuple[Process, dict[str, Any]] | None:
    """Gaps as varied as recorded."""
    cv = measured.gap_cv
    return None if cv is None else ("gamma", {"rate_rps": measured.rate_rps, "cv": float(np.clip(cv, 0.01, _MOST_CV))})


def _mmpp(measured: Clumps, times: Floats) -> tuple[Process, dict[str, Any]] | None:
    """Calm and bursts by turns, from the dispersion in windows of 10 and 60 s and the skewness of counts.

    With f the share of time in bursts, b their height and m their mean length, the states are forgotten at the rate
    r = 1 / (m (1 - f)), and IDC(t) = 1 + K g(r t) with g(x) = 1 - (1 - exp(-x)) / x and K = 2 rate v / r, where
    v = f (b - 1)^2 / (1 - f) is the variance of the relative rate (Heffes and Lucantoni, IEEE JSAC 4, 1986). Two
    windows give r and K, so v; the relative rate has two values, and its skewness is (1 - 2 f) / sqrt(f (1 - f)).
    """
    short, long = measured.dispersion[10.0], measured.dispersion[60.0]
    if short is None or long is None or short <= 1.0 or long <= short:
        return None
    forget = _forgetting(short - 1.0, long - 1.0)
    rate = measured.rate_rps
    variance = (long - 1.0) / _settled(60.0 * forget) * forget / (2.0 * rate)
    skew = _rate_skewness(times, measured.span_s)
    fraction = float(np.clip(0.5 * (1.0 - skew / sqrt(4.0 + skew**2)), *_FRACTIONS))
    # Between bursts the rate can't be below 0: b f <= 1, so v <= (1 - f) / f.
    fraction = min(fraction, 1.0 / (1.0 + variance))
    ratio = min(1.0 + sqrt(variance * (1.0 - fraction) / fraction), 1.0 / fraction, _MOST_RATIO)
    burst_s = min(1.0 / (forget * (1.0 - fraction)), _LONGEST_BURST_S)
    law = {"burst_ratio": ratio, "burst_fraction": fraction, "mean_burst_s": burst_s}
    if fraction < _FRACTIONS[0] or not all(isfinite(value) for value in law.values()):
        return None
    return "mmpp", {"rate_rps": rate, "mmpp": law}


def _settled(x: float) -> float:
    """g(x) = 1 - (1 - exp(-x)) / x, from x / 2 near 0 to 1."""
    return x / 2.0 if x < 1e-6 else 1.0 + expm1(-x) / x


def _forgetting(short: float, long: float) -> float:
    """The rate r for which g(60 r) / g(10 r) is the ratio of what the dispersions exceed 1 by, within sensible ends."""
    low, high = 1e-5, 10.0

    def above(rate: float) -> float:
        return _settled(60.0 * rate) / _settled(10.0 * rate) - long / short

    if above(low) <= 0.0:
        return low
    return high if above(high) >= 0.0 else float(brentq(above, low, high))


def _rate_skewness(times: Floats, span_s: float) -> float:
    """Skewness of the rate behind the counts in windows of 10 s.

    Factorial cumulants of a count with a random rate are the cumulants of that rate: subtract what chance adds
    (Cox and Isham, Point Processes, 1980, section 2.4).
    """
    n = counts(times, 10.0, span_s).astype(np.float64)
    k1, k2, k3 = n.mean(), n.var(), float(((n - n.mean()) ** 3).mean())
    second, third = k2 - k1, k3 - 3.0 * k2 + 2.0 * k1
    return float(third / second**1.5) if second > 0 else 0.0


def _candidate(process: Process, settings: dict[str, Any], measured: Clumps) -> Candidate:
    traffic = Traffic.model_validate({"process": process, **settings})
    span_s = min(measured.span_s, max(_MOST_DRAWN / measured.rate_rps, 600.0))
    drawn = clumps([arrival_times(traffic, span_s, seed) for seed in range(1, _DRAWS + 1)], span_s)
    ratios = {
        width: _ratio(mine, theirs)
        for width, mine in measured.dispersion.items()
        if mine is not None and (theirs := drawn.dispersion[width]) is not None
    }
    good = all(ratio <= _allowed(measured.span_s / width) for width, ratio in ratios.items())
    return Candidate(process, settings, drawn, max(ratios.values(), default=1.0), good)


def _ratio(one: float, other: float) -> float:
    """How many times one dispersion is the other; what is next to none is alike."""
    low, high = sorted(max(value, _NEXT_TO_NONE) for value in (one, other))
    return high / low


def _allowed(windows: float) -> float:
    """Of so many independent windows, a dispersion is known within about 2 sqrt(2 / windows) of itself."""
    return _CLOSE * (1.0 + 2.0 * sqrt(2.0 / max(windows - 1.0, 1.0)))
