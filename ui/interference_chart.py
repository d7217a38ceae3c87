"""A long prompt among people who write, token by token. A pure function, in the idiom of `charts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.study import Interference
from ui.charts import BLUE, ORANGE, PURPLE, TEXT, Floats, axis_title, f32, nice_top, veil
from ui.words import NBSP, digits

_GANTT, _STRIP = (0.36, 1.0), (0.0, 0.24)
_GANTT_PX = 400


def interference_figure(found: Interference) -> go.Figure:
    """Every token as a tick, a row a person; the long prompt on top; below, the gap before each token."""
    people = len(found.tokens_s)
    last = found.tokens_s[-1]
    left, right = float(last[0]), max(float(last[-1]), float(found.long_tokens_s[-1]))
    scale, unit = (1.0, "s") if right - left >= 1.0 else (1000.0, "ms")
    ticks = {"symbol": "line-ns-open", "size": 11, "line": {"width": 1.6}}
    inside = [t[(t >= left) & (t <= right)] for t in found.tokens_s]
    rows = np.repeat(np.arange(1, people + 1), [t.size for t in inside])
    traces: list[dict[str, Any]] = [
        _ticks(np.concatenate(inside) * scale, rows, BLUE, "words of those who write", ticks),
        _ticks(found.long_tokens_s * scale, np.full(found.long_tokens_s.size, 0), PURPLE, "its answer", ticks),
    ]
    gaps = np.diff(last)
    strip = {"type": "bar", "x": f32(last[1:] * scale), "y": f32(gaps * scale), "yaxis": "y2", "name": "gap before"}
    width = max(0.004 * (right - left), found.usual_s * 0.5) * scale
    traces.append(strip | {"width": width, "marker": {"color": ORANGE, "line": {"width": 0}},
                           "hovertemplate": f"%{{y:.3~g}} {unit}"})  # fmt: skip
    both = {"fixedrange": True, "tickfont": {"color": TEXT}}
    edge = 0.01 * (right - left)
    names = {0: "long prompt", (people + 1) // 2: f"{people} who write" if people > 1 else "who writes"}
    layout = {
        "height": _GANTT_PX, "showlegend": False, "uirevision": "keep", "hovermode": "closest",
        "margin": {"l": 8, "r": 14, "t": 26, "b": 0},
        "xaxis": both | {"range": [(left - edge) * scale, (right + edge) * scale], "anchor": "y2", "showgrid": False,
                         "title": axis_title(f"{_long(unit)} after the long prompt came")},
        "yaxis": both | {"domain": list(_GANTT), "range": [people + 0.7, -1.5], "showgrid": False, "zeroline": False,
                         "tickvals": list(names), "ticktext": list(names.values()), "automargin": True},
        "yaxis2": both | {"domain": list(_STRIP), "range": [0, nice_top(1.05 * float(gaps.max()) * scale)],
                          "nticks": 4, "rangemode": "tozero", "automargin": True},
        "shapes": _reading(found, scale, people),
        "annotations": _bracket(found, scale, unit),
    }  # fmt: skip
    return go.Figure(data=traces, layout=layout)


def _ticks(x: Floats, y: Floats, colour: str, name: str, marker: dict[str, Any]) -> dict[str, Any]:
    line = marker["line"] | {"color": colour}
    style = {"type": "scatter", "mode": "markers", "name": name, "hovertemplate": "%{x:.3~g}"}
    return style | {"x": f32(x), "y": f32(y), "marker": marker | {"color": colour, "line": line}}


def _long(unit: str) -> str:
    return "seconds" if unit == "s" else "milliseconds"


def _reading(found: Interference, scale: float, people: int) -> list[dict[str, Any]]:
    """The wait and the reading of the long prompt as a bar, and a veil over the others while it is read."""
    start, end = found.read_from_s * scale, found.first_word_s * scale
    plain: dict[str, Any] = {"type": "rect", "y0": -0.32, "y1": 0.32, "line": {"width": 0}, "layer": "below"}
    veiled = {"y0": 0.4, "y1": people + 0.6, "x0": start, "x1": end, "fillcolor": veil(PURPLE, 0.08)}
    line: dict[str, Any] = {"type": "line", "line": {"color": TEXT, "width": 2}}
    gap_from, gap_to = found.longest_from_s * scale, (found.longest_from_s + found.longest_s) * scale
    return [
        plain | {"x0": 0.0, "x1": start, "fillcolor": veil(ORANGE, 0.5)},
        plain | {"x0": start, "x1": end, "fillcolor": veil(PURPLE, 0.45)},
        plain | veiled,
        line | {"x0": gap_from, "x1": gap_to, "y0": 0.62, "y1": 0.62},
        *(line | {"x0": at, "x1": at, "y0": 0.5, "y1": 0.74} for at in (gap_from, gap_to)),
    ]


def _bracket(found: Interference, scale: float, unit: str) -> list[dict[str, Any]]:
    """The stall in milliseconds, and what the strip below shows."""
    row = {"showarrow": False, "font": {"color": TEXT, "size": 12}}
    middle = (found.longest_from_s + found.longest_s / 2) * scale
    pause = f"longest pause {digits(found.longest_s * 1000, 3)}{NBSP}ms"
    return [
        row | {"x": middle, "y": -0.95, "text": pause, "yanchor": "middle"},
        row | {"x": 0, "xref": "paper", "xanchor": "left", "y": _STRIP[1], "yref": "paper", "yanchor": "bottom",
               "text": f"<i>gap before each word, {unit}</i>"},
    ]  # fmt: skip
