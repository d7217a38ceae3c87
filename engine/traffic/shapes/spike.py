"""Spike: a rush that builds up, stays and ebbs away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.traffic.shapes.curve import Curve, PiecewiseLinear

if TYPE_CHECKING:
    from engine.scenario import Spike


def curve(shape: Spike, horizon_s: float) -> Curve:
    """Factor 1 until `at_s`; straight to `factor` over `rise_s`; `hold_s` there; straight back to 1 over `fall_s`.

    A rise or fall of 0 seconds is a jump. A factor below 1 is a dip.
    """
    pieces = (
        (shape.at_s, 1.0, 1.0),
        (shape.rise_s, 1.0, shape.factor),
        (shape.hold_s, shape.factor, shape.factor),
        (shape.fall_s, shape.factor, 1.0),
    )
    return PiecewiseLinear(pieces, after=1.0)
