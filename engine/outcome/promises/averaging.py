"""Why percentiles can't be averaged: a run's own percentile beside means of percentiles of its parts.

A part with one request in a hundred of the traffic weighs as much as any other in a plain mean; and weights by traffic
don't help either, because the slow requests of all parts may come from one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.outcome.result import Result
from engine.outcome.spread import Floats, grouped_quantiles, quantile

from .windows import slice_s

Part = Literal["replica", "slice", "run"]


@dataclass(frozen=True, slots=True)
class Averaged:
    """One percentile of everything, and what means of its parts' percentiles make of it; seconds."""

    q: float
    parts: int
    true_s: float
    """Of all requests together."""
    mean_s: float
    """Plain mean over the parts: wrong."""
    weighted_s: float
    """Mean weighted by the parts' requests: wrong too."""
    lowest_s: float
    highest_s: float
    """Of the parts."""


def averaged(values: Floats, part: NDArray[np.int64], q: float) -> Averaged | None:
    """``part`` (n,) says to which part, from 0, each of ``values`` (n,) belongs; ``None`` without values."""
    if not values.size:
        return None
    sizes = np.bincount(part)
    each = grouped_quantiles(values, part, sizes.size, np.array([q]))[0][sizes > 0]
    weights = sizes[sizes > 0]
    return Averaged(
        q=q,
        parts=int(each.size),
        true_s=quantile(np.sort(values), q),
        mean_s=float(each.mean()),
        weighted_s=float(np.average(each, weights=weights)),
        lowest_s=float(each.min()),
        highest_s=float(each.max()),
    )


def averages(result: Result, measured_s: Floats, q: float) -> dict[Part, Averaged]:
    """By replica and by slice of time of every run, and by run; of completed requests that count."""
    a = result.run.attempts
    seen = result.observed & ~np.isnan(measured_s)
    values, seed = measured_s[seen], a.seed_index[seen].astype(np.int64)
    slot = np.maximum((a.arrival_s[seen] - result.warmup_s) // slice_s(result), 0).astype(np.int64)
    places = max(int(a.replica.max(initial=0)) + 1, 1)
    parts: dict[Part, NDArray[np.int64]] = {
        "slice": seed * (int(slot.max(initial=0)) + 1) + slot,
        "replica": seed * places + a.replica[seen],
        "run": seed,
    }
    found = {name: averaged(values, part, q) for name, part in parts.items()}
    return {name: each for name, each in found.items() if each is not None and each.parts > 1}
