"""Ramp: traffic that grows, or shrinks, evenly over the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.traffic.shapes.curve import Curve, PiecewiseLinear

if TYPE_CHECKING:
    from engine.scenario import Ramp


def curve(shape: Ramp, horizon_s: float) -> Curve:
    """Factor 1 at the start, straight to `to_factor` at the horizon."""
    return PiecewiseLinear([(horizon_s, 1.0, shape.to_factor)], after=shape.to_factor)
