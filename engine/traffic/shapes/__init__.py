"""How the rate changes over time: a factor on `traffic.rate_rps`, with its exact integral and the integral's inverse.

A new shape is one file with a function like `spike.curve` plus one line in `SHAPES`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from engine.traffic.shapes import diurnal, ramp, spike, steady, steps
from engine.traffic.shapes.curve import Curve, PiecewiseLinear

SHAPES: Final = MappingProxyType[str, Callable[[Any, float], Curve]](
    {
        "steady": steady.curve,
        "ramp": ramp.curve,
        "steps": steps.curve,
        "spike": spike.curve,
        "diurnal": diurnal.curve,
    }
)
"""From a shape's settings (the scenario's model of that kind) and the horizon in seconds to its curve."""


def curve(shape: Any, horizon_s: float) -> Curve:
    """Return the factor over time that `traffic.shape` stands for."""
    return SHAPES[shape.kind](shape, horizon_s)


__all__ = ["SHAPES", "Curve", "PiecewiseLinear", "curve"]
