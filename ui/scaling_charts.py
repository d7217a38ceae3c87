"""The scaling page's figures: panels on one time axis, and the lag taken apart. Pure functions, see `charts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.outcome.relief import Relief, Stage, Steps
from ui.charts import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    TEXT,
    Floats,
    Line,
    axis_title,
    clock,
    f32,
    nice_top,
)
from ui.panels import Layout, Panels
from ui.scaling_words import STAGES, episode_rules, part_label
from ui.words import NBSP, seconds

_ROW_PX = 27
_PANELS = Layout(
    panels=((0.67, 1.0), (0.36, 0.58), (0.0, 0.27)),
    titles=("requests per second", "requests waiting", "replicas"),
    axis="requests/s",
    dashes={"short": "solid", "decided": "dot", "drained": "dashdot"},
)
"""Demand and capacity, queue, replicas."""


def course_figure(r: Relief, horizon_s: float, warmup_s: float) -> go.Figure:
    """Demand and capacity; the queue; replicas wanted, starting and ready; rules at what happened."""
    scale, unit = clock(horizon_s)
    draft = Panels(_PANELS, horizon_s / scale, unit)
    d, end = r.demand, np.array([horizon_s])
    x = f32(d.time_s / scale)
    draft.area(0, x, f32(d.demand_rps), f32(np.minimum(d.demand_rps, d.capacity_rps)), BLUE, ORANGE)
    draft.line(0, x, f32(d.demand_rps), BLUE, "demand", "solid")
    draft.line(0, x, f32(d.capacity_rps), TEXT, "capacity", "dash", "hv")
    draft.line(1, f32(r.queue_time_s / scale), f32(r.queue), PURPLE, "waiting", "solid")
    ready_x, ready, starting = _stacked(r.ready, r.starting, horizon_s)
    both = f32(np.append(ready + starting, (ready + starting)[-1:]))
    held = f32(np.append(ready_x, horizon_s) / scale)
    draft.area(2, held, both, f32(np.append(ready, ready[-1:])), GREEN, BLUE, shape="hv")
    draft.line(2, *_held(r.wanted, end, scale), ORANGE, "wanted", "dash", "hv")
    draft.line(2, *_held(r.ready, end, scale), GREEN, "ready", "solid", "hv")
    draft.inside(2, held, f32(np.append(starting, 0)), f32(np.append(ready + starting / 2, 0)), "starting")
    tops = [
        nice_top(1.08 * max(float(d.demand_rps.max(initial=0.0)), float(d.capacity_rps.max(initial=0.0)))),
        nice_top(1.08 * float(r.queue.max(initial=0)) or 1.0),
        nice_top(1.15 * max(int((ready + starting).max(initial=1)), int(r.wanted.count.max(initial=1)))),
    ]
    if r.episode is not None:
        draft.rules([(at / scale, name) for at, name in episode_rules(r.episode, r.helped)])
    draft.grey(0.0, warmup_s / scale)
    return draft.figure(tops)


def _stacked(ready: Steps, starting: Steps, end_s: float) -> tuple[Floats, Floats, Floats]:
    """(moments, replicas ready, replicas starting) at each moment at which either changes."""
    time = np.union1d(ready.time_s, starting.time_s)
    time = time[time < end_s]
    counts = (s.count[np.searchsorted(s.time_s, time, side="right") - 1].astype(np.float64) for s in (ready, starting))
    return time, *counts


def _held(steps: Steps, end: Any, scale: float) -> tuple[Line, Line]:
    """A count's corners, up to the end."""
    inside = steps.time_s < end[0]
    count = steps.count[inside].astype(np.float64)
    time = np.concatenate([steps.time_s[inside], end])
    return f32(time / scale), f32(np.concatenate([count, count[-1:]]))


_COLOURS: dict[Stage, tuple[str, str]] = {
    "detection": (ORANGE, ""), "orders": (ORANGE, "x"), "provision": (BLUE, ""), "image_pull": (BLUE, "/"),
    "weights_load": (BLUE, "x"), "warmup": (BLUE, "."), "falling": (GREEN, "/"), "alone": (ORANGE, "/"),
    "drain": (PURPLE, ""),
}  # fmt: skip
"""A colour for each kind of waiting, and a pattern as a second code."""


def waterfall_figure(r: Relief) -> go.Figure:
    """What the lag is made of, one bar after the other, their sum, and the drain."""
    lag = None if r.episode is None else r.episode.lag_s
    rows = [(STAGES[p.stage], p.start_s, p.seconds, *_COLOURS[p.stage], part_label(p)) for p in r.parts]
    if lag is not None and r.parts:
        after = next((i for i, part in enumerate(r.parts) if part.stage == "drain"), len(rows))
        rows.insert(after, ("<b>lag</b>", 0.0, lag, TEXT, "", f"<b>{seconds(lag, 3)}</b>"))
    end = max((start + max(length, 0.0) for _, start, length, *_ in rows), default=1.0)
    scale, unit = clock(end)
    first = min((min(start, start + length) for _, start, length, *_ in rows), default=0.0)
    traces = [
        {
            "type": "bar", "orientation": "h", "y": [name], "x": f32(np.array([abs(length) / scale])),
            "base": f32(np.array([min(start, start + length) / scale])), "name": name, "width": 0.72,
            "marker": {"color": colour, "line": {"width": 0}, "pattern": {"shape": pattern, "size": 5}},
            "text": [text.replace(" ", NBSP)], "textposition": "outside", "cliponaxis": False,
            "textfont": {"color": TEXT}, "hoverinfo": "skip",
        }
        for name, start, length, colour, pattern, text in rows
    ]  # fmt: skip
    both = {"fixedrange": True, "tickfont": {"color": TEXT}}
    names = [name for name, *_ in rows]
    layout = {
        "height": 60 + _ROW_PX * len(rows), "showlegend": False, "uirevision": "keep", "barmode": "overlay",
        "margin": {"l": 8, "r": 70, "t": 6, "b": 0},
        "xaxis": both | {"range": [first / scale, end / scale * 1.02], "zeroline": True,
                         "title": axis_title(f"{unit} after demand outgrew capacity")},
        "yaxis": both | {"categoryorder": "array", "categoryarray": names[::-1], "automargin": True},
    }  # fmt: skip
    return go.Figure(data=traces, layout=layout)
