"""The waiting page's figures. Pure functions, in the idiom of `charts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.outcome.fan_out import FanOut
from engine.outcome.where import PARTS, Part, Where
from engine.study import LoadCurve
from ui import waiting_words
from ui.charts import (
    BLUE,
    GREEN,
    INSIDE,
    ORANGE,
    PURPLE,
    RED,
    TEXT,
    YELLOW,
    Draft,
    axis_title,
    f32,
    log_ticks,
    nice_top,
)
from ui.overload_charts import axis, stacked
from ui.words import NBSP, seconds

COLOURS: dict[Part, str] = {
    "queue": ORANGE, "frontend": TEXT, "prompt": PURPLE, "handover": GREEN, "answer": BLUE, "stalled": YELLOW,
    "preempted": RED,
}  # fmt: skip
PATTERNS: dict[Part, str] = {
    "queue": "", "frontend": "-", "prompt": "x", "handover": "|", "answer": "", "stalled": "/", "preempted": ".",
}  # fmt: skip
"""A second code beside colour."""
_ROW_PX, _LEGEND_PX, _AXIS_PX = 38, 58, 48
_LETTER = 0.03
"""Share of the longest bar that a letter of a part's figure takes on a telephone."""
_NAMES = {"p50": "typical (p50)", "p95": "1 in 20 (p95)", "p99": "1 in 100 (p99)"}
_OTHERS = 20
"""Calls of an action that is drawn where the scenario has single calls."""


def where_figure(w: Where) -> go.Figure:
    """One bar a percentile: its seconds by what they go into."""
    names = [_NAMES[level.name].replace(" ", NBSP) for level in w.levels]
    longest = max(level.time_s for level in w.levels)
    scale, unit = (1.0, "seconds") if longest >= 1.0 else (1000.0, "milliseconds")
    data = []
    for part in PARTS:
        values = np.array([level.parts.get(part, 0.0) for level in w.levels])
        if values.max() < 0.002 * longest:
            continue
        figures = [seconds(value) for value in values]
        fits = values >= [_LETTER * len(figure) * longest for figure in figures]
        text = [figure if fit else "" for figure, fit in zip(figures, fits, strict=True)]
        pattern = {"shape": PATTERNS[part], "size": 7, "solidity": 0.12, "fillmode": "overlay"}
        data.append(
            {
                "type": "bar", "orientation": "h", "x": f32(values * scale), "y": names,
                "name": waiting_words.PARTS[part], "text": text, "textposition": "inside",
                "insidetextanchor": "middle", "textangle": 0, "textfont": INSIDE, "constraintext": "none",
                "hovertemplate": "%{x:.3~g}",
                "marker": {"color": COLOURS[part], "line": {"width": 0}, "pattern": pattern},
            }
        )  # fmt: skip
    bars = {"autorange": "reversed", "fixedrange": True, "tickfont": {"color": TEXT}, "automargin": True}
    along = axis(f"{unit} to the {waiting_words.WORD[w.by]}") | {"rangemode": "tozero"}
    return stacked(data, along, bars, _ROW_PX * len(names) + _LEGEND_PX + _AXIS_PX)


# -- the hockey stick --------------------------------------------------------------------------------------------------


def load_figure(c: LoadCurve) -> go.Figure:
    """Mean wait by load with its 95 % band, and the closed forms."""
    shown = 1.1 * float(np.nanmax(c.wait_s + np.nan_to_num(c.half_width_s)))
    scale, unit = (1.0, "s") if shown >= 1.0 else (1000.0, "ms")
    top = nice_top(shown * scale)
    x = f32(100 * c.load)
    draft = Draft(100.0, "load, % of what the replicas can serve", f"mean wait in the queue, {unit}", top, 0.0)
    low, high = (np.clip((c.wait_s + sign * c.half_width_s) * scale, 0.0, top) for sign in (-1, 1))
    draft.band(x, f32(low), f32(high), BLUE, 0.18)
    for values, colour, name, dash in (
        (c.single_s, PURPLE, "one server", "dot"),
        (c.seats_s, ORANGE, f"{c.seats} seats" if c.seats > 1 else "M/G/1", "dash"),
        (c.wait_s, BLUE, "simulated", "solid"),
    ):
        if name == "one server" and c.seats == 1:
            continue
        y = values * scale
        draft.line(x, f32(y), colour, name, dash=dash, width=2.4 if dash == "solid" else 1.8)
        draft.label(float(min(y[-1], top)), name, colour)
    figure = draft.figure()
    if c.own_load is not None and c.own_load <= 1.0:
        at = 100 * c.own_load
        rule = {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper"}
        figure.add_shape(rule | {"line": {"color": TEXT, "width": 1.2, "dash": "dot"}})
        near = {"x": at, "y": 1, "yref": "paper", "yanchor": "top", "showarrow": False, "text": "this scenario"}
        side = {"xanchor": "left", "xshift": 4} if at < 50 else {"xanchor": "right", "xshift": -4}
        figure.add_annotation(near | side | {"font": {"color": TEXT, "size": 12}})
    return figure


# -- fan-out -----------------------------------------------------------------------------------------------------------


def fan_out_figure(f: FanOut) -> go.Figure:
    """Share of the calls, of the actions, and of actions of independent calls, that are over within a time."""
    calls = f.calls if f.calls > 1 else _OTHERS
    lines = [(f.call.seconds, f.call.share, BLUE, "solid", "a call")]
    if f.calls > 1:
        lines.append((f.action.seconds, f.action.share, ORANGE, "solid", f"an action of {f.calls}"))
    lines.append((f.call.seconds, f.call.share**calls, PURPLE, "dot", f"{calls} independent calls"))
    traces: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for row, (x, y, colour, dash, name) in enumerate(lines):
        line = {"color": colour, "width": 2.2, "dash": dash}
        traces.append(
            {"type": "scatter", "mode": "lines", "x": f32(x), "y": f32(100 * y), "name": name, "line": line,
             "hovertemplate": "%{y:.1f} % within %{x:.3~g} s"}
        )  # fmt: skip
        if x.size:
            # Named one below the other above the chart: on a telephone no corner of it is empty enough.
            note = {"x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom"}
            note |= {"yshift": _NAME_PX * (len(lines) - 1 - row), "font": {"color": colour, "size": 13}}
            notes.append(note | {"text": f"{_SAMPLE[dash]} {name}", "showarrow": False})
    both = {"fixedrange": True, "tickfont": {"color": TEXT}}
    half = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": 50, "y1": 50}
    layout = {
        "height": 300 + _NAME_PX * len(lines), "showlegend": False, "uirevision": "keep", "hovermode": "closest",
        "margin": {"l": 8, "r": 14, "t": 10 + _NAME_PX * len(lines), "b": 0}, "annotations": notes,
        "shapes": [half | {"line": {"color": TEXT, "width": 1.0, "dash": "dot"}}],
        "xaxis": both | _log_seconds(f) | {"title": axis_title("seconds to the last word (log)"), "showgrid": False},
        "yaxis": both | {"range": [0, 101], "title": axis_title("answered within, %"), "nticks": 6},
    }  # fmt: skip
    return go.Figure(data=traces, layout=layout)


def _log_seconds(f: FanOut) -> dict[str, Any]:
    """From the quickest calls to the slowest, but for one in a thousand on either side."""
    seen = f.call.seconds[(f.call.share > 0.001) & (f.call.share < 0.9995) & (f.call.seconds > 0)]
    if not seen.size:
        return {"type": "log"}
    low, high = float(np.log10(seen[0])) - _AIR, float(np.log10(seen[-1])) + _AIR
    return {"range": [low, high]} | log_ticks(low, high)


_NAME_PX = 19
_AIR = 0.05
"""Beside the curves, in powers of ten."""
_SAMPLE = {"solid": "——", "dot": "· · ·"}
"""How a line looks, beside its name."""
