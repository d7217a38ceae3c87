"""Growth: lengths that change evenly in the course of a run, for traffic that gets wordier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.scenario import Growth

Factors = NDArray[np.float64] | None
"""A factor a request; None where all are 1."""


@dataclass(frozen=True, slots=True)
class Grown:
    """What prompts and answers are multiplied with before they are rounded, by request."""

    prompt: Factors = None
    output: Factors = None


def grown(growth: Growth | None, arrival_s: NDArray[np.float64], horizon_s: float | None) -> Grown:
    """Return the factors of requests that arrive at these times, in seconds.

    A factor is 1 at the start and `prompt_factor` or `output_factor` at the horizon, on a straight line, and a request
    keeps that of its arrival. Without a horizon, which a scenario with growth never lacks, nothing grows.
    """
    if growth is None or horizon_s is None:
        return Grown()
    share = arrival_s / horizon_s
    prompt, output = (
        None if factor == 1.0 else 1.0 + (factor - 1.0) * share
        for factor in (growth.prompt_factor, growth.output_factor)
    )
    return Grown(prompt, output)
