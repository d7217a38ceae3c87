"""How long prompts and answers are: one uniform a request, put through the inverse of a distribution.

With the same uniforms, a setting that makes lengths longer makes every request's length longer or leaves it, so two
scenarios are compared request by request (common random numbers).

A new distribution is one file with a function like `lognormal.quantile` plus one line in `DISTRIBUTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.traffic.lengths import constant, empirical, geometric, lognormal, uniform
from engine.traffic.requests import MAX_TOKENS

Quantile = Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]
"""From a distribution's settings and uniforms in [0, 1) to lengths in tokens, not yet rounded or clipped; never
decreasing in the uniform, each from its own uniform alone. The uniforms are left as they are."""

DISTRIBUTIONS: Final = MappingProxyType[str, Quantile](
    {
        "constant": constant.quantile,
        "lognormal": lognormal.quantile,
        "uniform": uniform.quantile,
        "geometric": geometric.quantile,
        "empirical": empirical.quantile,
    }
)

_ENDS: Final = np.array([0.0, np.nextafter(1.0, 0.0)])  # the smallest and the largest uniform that a generator yields
_ENDS.setflags(write=False)


def lengths(
    settings: Any, uniforms: NDArray[np.float64], factors: NDArray[np.float64] | None = None
) -> NDArray[np.int32]:
    """Return a length in tokens for each uniform: rounded half up, then clipped to `min` and `max`.

    `mean` and `cv` are those before clipping. `factors`, one a uniform, multiply before rounding. Beyond `MAX_TOKENS`
    lengths are cut to it.
    """
    exact = DISTRIBUTIONS[settings.dist](settings, uniforms)
    if factors is not None:
        exact *= factors
    return whole(exact, settings.min, settings.max)


def whole(exact: NDArray[np.float64], low: int = 1, high: int | None = None) -> NDArray[np.int32]:
    """Return lengths rounded half up, then clipped to [low, high] (None: `MAX_TOKENS`, which nothing exceeds)."""
    rounded = np.floor(exact + 0.5)
    top = MAX_TOKENS if high is None else min(high, MAX_TOKENS)
    return np.clip(rounded, low, top, out=rounded).astype(np.int32)


@lru_cache(maxsize=256)
def only_length(settings: Any) -> int | None:
    """Return the length that every draw gives, or None where draws differ.

    A quantile function never decreases, so its two ends tell; then there is nothing to draw.
    """
    shortest, longest = lengths(settings, _ENDS).tolist()
    return int(shortest) if shortest == longest else None
