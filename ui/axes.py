"""Pieces of figures whose axes aren't time from zero: drafts as plain dictionaries, in the idiom of `charts`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ui.charts import TEXT, Line, axis_title, spread_apart, veil
from ui.words import NBSP, seconds

RIGHT_PX = 96
_LABEL_PX = 14.0

_LONG = {
    (1, 2, 5): (60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0, 18000.0, 36000.0, 72000.0),
    (1,): (60.0, 600.0, 3600.0, 36000.0),
}
"""Ticks of a minute and more, by the digits of shorter ones."""

Json = dict[str, Any]


def line(
    x: Line, y: Line, colour: str, name: str, dash: str = "solid", width: float = 1.8, shape: str = "linear"
) -> Json:
    """A line in percent that the pointer reads."""
    style = {"color": colour, "width": width, "dash": dash, "shape": shape}
    return {
        "type": "scatter", "x": x, "y": y, "mode": "lines", "line": style, "name": name, "hovertemplate": "%{y:.3~g} %",
    }  # fmt: skip


def band(x: Line, low: Line, high: Line, colour: str) -> list[Json]:
    """The area between two lines, where both are known."""
    known = ~(np.isnan(low) | np.isnan(high))
    plain = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": x[known]}
    return [plain | {"y": low[known]}, plain | {"y": high[known], "fill": "tonexty", "fillcolor": veil(colour, 0.16)}]


def layout(height: int, up: tuple[float, float] | None, axis: str, labels: list[tuple[float, str, str]]) -> Json:
    """Axes that don't move; `up` is the range of the upright one, beside whose right end the labels (height, text,
    colour) stand apart."""
    both = {"fixedrange": True, "tickfont": {"color": TEXT}}
    found: Json = {
        "height": height, "showlegend": False, "hovermode": "closest" if up is None else "x unified",
        "uirevision": "keep",
        "margin": {"l": 8, "r": RIGHT_PX, "t": 10, "b": 0},
        "xaxis": both | {"showgrid": False}, "yaxis": both | {"title": axis_title(axis), "nticks": 6},
        "annotations": [],
    }  # fmt: skip
    if up is not None:
        low, high = up
        gap = _LABEL_PX / (height - 75) * (high - low)
        places = spread_apart([value - low for value, _, _ in labels], gap, high - low)
        right = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "showarrow": False}
        found["yaxis"]["range"] = [low, high]
        found["annotations"] = [
            right | {"y": low + place, "text": text.replace(" ", NBSP), "font": {"color": colour, "size": 12}}
            for (_, text, colour), place in zip(labels, places, strict=True)
        ]
    return found


def log_ticks(low: float, high: float) -> Json:
    """Round values on a log axis of times, few enough for a telephone; from a minute on, whole minutes and hours."""
    digits = (1, 2, 5) if high / low < 300 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [d * 10.0**p for p in powers for d in digits if low <= d * 10.0**p <= high]
    if high >= 60:
        values = [value for value in values if value < 50] + [value for value in _LONG[digits] if low <= value <= high]
    return {"tickvals": np.array(values), "ticktext": [seconds(value) for value in values]}
