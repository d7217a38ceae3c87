"""Steps: a rate that jumps at given moments and stays in between."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from engine.traffic.shapes.curve import Curve, PiecewiseLinear

if TYPE_CHECKING:
    from engine.scenario import Steps


def curve(shape: Steps, horizon_s: float) -> Curve:
    """Factor 1 until the first of `points`, then each point's factor from its moment on, until the next."""
    points = [(0.0, 1.0), *shape.points]
    pieces = [(until - since, factor, factor) for (since, factor), (until, _) in pairwise(points)]
    return PiecewiseLinear(pieces, after=points[-1][1])
