"""Actions of several calls: an action ends with the slowest of its calls, so a call's rare is an action's usual.

For calls that are independent of each other the slowest of n is within t with the probability that each is, so its
quantile q is a call's quantile q^(1/n). Calls that are issued together meet the same queue, and aren't independent;
those figures come from the run itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .result import Result
from .spread import Floats, half_width, quantile

MOST_CALLS = 100
_POINTS = 400
"""Of a curve on a screen."""
LEVELS = (0.5, 0.95, 0.99)


def call_share(share: float, calls: int) -> float:
    """Which quantile of a call is quantile ``share`` of the slowest of ``calls`` independent ones: q^(1/n)."""
    return float(share ** (1.0 / calls))


def at_least_one_beyond(share: float, calls: int) -> float:
    """Probability that the slowest of ``calls`` independent calls is beyond a call's quantile ``share``: 1 - q^n."""
    return float(1.0 - share**calls)


def independent_quantile(ordered: Floats, calls: int, share: float) -> float:
    """Quantile ``share`` of the slowest of ``calls`` drawn independently from a sample (n,) in ascending order."""
    return quantile(ordered, call_share(share, calls))


def independent_mean(ordered: Floats, calls: int) -> float:
    """Mean of the slowest of ``calls`` drawn independently, with replacement, from a sample (n,) in ascending order.

    The i-th of n is the slowest with probability (i/n)^calls - ((i-1)/n)^calls. ``nan`` when it is empty.
    """
    if not ordered.size:
        return float("nan")
    within = (np.arange(ordered.size + 1) / ordered.size) ** calls
    return float(ordered @ np.diff(within))


@dataclass(frozen=True, slots=True)
class Curve:
    """An empirical distribution function, thinned: ``share`` of all within ``seconds``, both (points,)."""

    seconds: Floats
    share: Floats

    @classmethod
    def of(cls, ordered: Floats) -> Curve:
        """Of a sample (n,) in ascending order."""
        share = np.unique(np.concatenate([np.linspace(0.0, 1.0, _POINTS), 1.0 - np.geomspace(1e-4, 0.1, 60)]))[1:]
        if not ordered.size:
            return cls(np.empty(0), np.empty(0))
        rank = np.unique(np.ceil(np.round(share * ordered.size, 9)).astype(np.int64))
        return cls(ordered[rank - 1], rank / ordered.size)


@dataclass(frozen=True, slots=True)
class FanOut:
    """Calls and actions of a run that arrived after its warm-up; seconds to the last token, the front end included."""

    calls: int
    """Of an action."""
    actions: int
    timeless: int
    """Actions of which a call had no answer: they have no time."""
    unanswered: int
    """Such calls."""
    call: Curve
    action: Curve
    call_s: dict[float, float]
    """By level of ``LEVELS``; ``nan`` without any."""
    action_s: dict[float, float]
    median_ci: tuple[float, float] | None
    """95 % interval of the action's median from the spread over runs; ``None`` with fewer than two."""
    median_as_call: float | None
    """Share of the calls that took no longer than the action's median."""
    independent_s: dict[float, Floats]
    """By level, (MOST_CALLS,): what the slowest of 1, 2, ... calls would take if calls were independent."""


def call_times(result: Result) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """(calls,) in order of seed and arrival: seconds from the first attempt to the answer (``nan``: none), seed, and
    whether the call came after the warm-up."""
    a = result.run.attempts
    first = np.flatnonzero(a.attempt == 0)
    answered = np.fmin.reduceat(a.finish_s, first) if first.size else np.empty(0)
    took = answered - a.arrival_s[first] + result.model.frontend_s
    return took, a.seed_index[first].astype(np.int64), result.counted[first]


def fan_out(result: Result) -> FanOut:
    """The calls and actions of a result. Action i of a seed is its requests i * n up to i * n + n - 1."""
    calls = result.scenario.traffic.client.fan_out
    took, seed, counted = call_times(result)
    action, action_seed = took.reshape(-1, calls).max(axis=1), seed[::calls]  # nan, where a call has no time
    there = counted[::calls]
    known = there & ~np.isnan(action)
    call = np.sort(took[counted & ~np.isnan(took)])
    slowest = np.sort(action[known])
    median = quantile(slowest, 0.5)
    return FanOut(
        calls=calls,
        actions=int(there.sum()),
        timeless=int(there.sum() - known.sum()),
        unanswered=int(counted.sum()) - call.size,
        call=Curve.of(call),
        action=Curve.of(slowest),
        call_s={level: quantile(call, level) for level in LEVELS},
        action_s={level: quantile(slowest, level) for level in LEVELS},
        median_ci=_median_ci(action[known], action_seed[known], result.run.attempts.seeds, median),
        median_as_call=float(np.searchsorted(call, median, side="right") / call.size) if slowest.size else None,
        independent_s={
            level: np.array([independent_quantile(call, n, level) for n in range(1, MOST_CALLS + 1)])
            for level in LEVELS
        },
    )


def _median_ci(action: Floats, seed: NDArray[np.int64], seeds: int, median: float) -> tuple[float, float] | None:
    each = np.array([quantile(np.sort(action[seed == i]), 0.5) for i in range(seeds)])
    half = half_width(each)
    return None if half is None else (max(0.0, median - half), median + half)
