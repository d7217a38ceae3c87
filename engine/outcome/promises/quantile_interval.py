"""How well a number of requests tells a quantile: order statistics, free of any assumption about the distribution.

How many of n independent requests lie at or below the true q quantile is binomial(n, q), so two ranks of the sorted
sample enclose it with known confidence (David and Nagaraja, Order Statistics, 3rd ed., 2003, section 7.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from engine.outcome.spread import Floats, quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ranks:
    """Places in the sorted sample, from 1, between which the true quantile lies."""

    low: int
    """0: below the smallest, so nothing bounds it from below."""
    high: int
    """n + 1: above the largest, so nothing bounds it from above."""


def ranks(n: int, q: float, confidence: float = CONFIDENCE) -> Ranks:
    """The ranks for n requests; with the confidence's rest on either side at most half each."""
    rest = (1.0 - confidence) / 2
    low, high = stats.binom.ppf([rest, 1.0 - rest], n, q)
    return Ranks(int(low), int(high) + 1)


def none_above(n: int, q: float) -> float:
    """Probability that not one of n requests lies above the true quantile: the largest says nothing about it then."""
    return float(q**n)


def fewest(q: float, confidence: float = CONFIDENCE) -> int:
    """The fewest requests whose largest bounds the q quantile from above: n with q to the n at most the rest."""
    n = max(1, int(np.log((1.0 - confidence) / 2) / np.log(q)) - 1)
    while ranks(n, q, confidence).high > n:
        n += 1
    return n


@dataclass(frozen=True, slots=True)
class Sure:
    """A quantile and how well it is known; seconds."""

    q: float
    value_s: float
    low_s: float | None
    """``None``: not bounded on this side."""
    high_s: float | None
    needs: int
    """The fewest requests with which it is bounded above."""


def sure(ordered: Floats, q: float) -> Sure:
    """What a sorted sample (n,), n > 0, says about its q quantile."""
    n, at = ordered.size, ranks(ordered.size, q)
    return Sure(
        q=q,
        value_s=quantile(ordered, q),
        low_s=float(ordered[at.low - 1]) if at.low >= 1 else None,
        high_s=float(ordered[at.high - 1]) if at.high <= n else None,
        needs=fewest(q),
    )
