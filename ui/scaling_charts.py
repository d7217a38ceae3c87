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
    spread_apart,
    veil,
)
from ui.scaling_words import STAGES, episode_rules, part_label
from ui.words import NBSP, seconds

_PANELS = ((0.67, 1.0), (0.36, 0.58), (0.0, 0.27))
"""Demand and capacity, queue, replicas: shares of the height, from below."""
_HEIGHT = 520
_LABEL_PX = 13.0
_RIGHT_PX = 78
_TOP_PX = 38
_CLOSE = 0.16
"""Names of rules that are nearer than this share of the axis stand in different lines."""
_ROW_PX = 27
_RULE_DASH = {"short": "solid", "decided": "dot", "ready": "dash", "fits again": "dash", "drained": "dashdot"}


def course_figure(r: Relief, horizon_s: float, warmup_s: float) -> go.Figure:
    """Demand and capacity; the queue; replicas wanted, starting and ready; rules at what happened."""
    scale, unit = clock(horizon_s)
    draft = _Panels(horizon_s / scale, unit)
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
    return draft.figure(tops, warmup_s / scale)


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


class _Panels:
    """Three charts above one another with one time axis."""

    def __init__(self, end: float, unit: str) -> None:
        self.end, self.unit = end, unit
        self.traces: list[dict[str, Any]] = []
        self.labels: list[tuple[int, float, str, str]] = []
        self.annotations: list[dict[str, Any]] = []
        self.shapes: list[dict[str, Any]] = []

    def line(self, panel: int, x: Line, y: Line, colour: str, name: str, dash: str, shape: str = "linear") -> None:
        """A line with its name at its right end."""
        line = {"color": colour, "width": 2.0, "dash": dash, "shape": shape}
        self.traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": y,
                "name": name,
                "line": line,
                "hovertemplate": "%{y:.3~g}",
            }
            | {"yaxis": _axis(panel)}
        )
        if y.size:
            self.labels.append((panel, float(y[-1]), name, colour))

    def area(self, panel: int, x: Line, y: Line, low: Line, colour: str, above: str, shape: str = "linear") -> None:
        """The area up to `low`, and the one from there to `y`."""
        plain: dict[str, Any] = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "yaxis": _axis(panel)}
        plain |= {"x": x, "line": {"width": 0, "shape": shape}}
        self.traces += [
            plain | {"y": low, "fill": "tozeroy", "fillcolor": veil(colour, 0.13)},
            plain | {"y": y, "fill": "tonexty", "fillcolor": veil(above, 0.45)},
        ]

    def inside(self, panel: int, x: Line, there: Line, height: Line, name: str) -> None:
        """A name in the middle of the longest stretch in which there is any."""
        length = np.where(there[:-1] > 0, np.diff(x), 0.0)
        if not length.any():
            return
        at = int(length.argmax())
        place = {"x": float(x[at] + length[at] / 2), "y": float(height[at]), "yref": _axis(panel), "showarrow": False}
        self.annotations.append(place | {"text": name, "font": {"color": TEXT, "size": 12}})

    def rules(self, found: list[tuple[float, str]]) -> None:
        """Vertical lines through all panels, named at the top, each name in a line with room for it."""
        taken = [-1.0, -1.0]  # where the last name of each line stands, as a share of the axis
        for index, (at, name) in enumerate(found):
            place = at / self.end
            first = index == 0 and place > _CLOSE
            row = 0 if first or place - taken[0] >= _CLOSE or taken[0] < 0 else 1
            taken[row] = place
            style = {"color": TEXT, "width": 1.2, "dash": _RULE_DASH[name]}
            self.shapes.append({"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": style})
            late = place > 0.85
            self.annotations.append(
                {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 2 + 15 * row, "showarrow": False,
                 "xanchor": "right" if first or late else "left", "xshift": -2 if first or late else 2, "text": name,
                 "font": {"color": TEXT, "size": 12}}
            )  # fmt: skip
            if first:
                taken[0] = -1.0

    def figure(self, tops: list[float], warmup: float) -> go.Figure:
        """The finished chart."""
        both = {"fixedrange": True, "tickfont": {"color": TEXT}}
        titles = ("requests per second", "requests waiting", "replicas")
        layout: dict[str, Any] = {
            "height": _HEIGHT, "showlegend": False, "hovermode": "x unified", "uirevision": "keep",
            "hoversubplots": "axis", "margin": {"l": 8, "r": _RIGHT_PX, "t": _TOP_PX, "b": 0},
            "xaxis": both | {"range": [0.0, self.end], "title": axis_title(self.unit), "showgrid": False,
                             "hoverformat": ".3~g", "anchor": "y3"},
            "annotations": self.annotations, "shapes": self.shapes,
        }  # fmt: skip
        for panel, (low, high) in enumerate(_PANELS):
            up = {"range": [0.0, tops[panel]], "rangemode": "tozero", "nticks": 5, "domain": [low, high]}
            layout["yaxis" + ("" if panel == 0 else str(panel + 1))] = both | up | {"anchor": "x"}
            # Beside the axis a name as long as this doesn't fit so low a panel.
            above = {"x": 0, "xref": "paper", "xanchor": "left", "y": high, "yref": "paper", "yanchor": "bottom"}
            row = {"showarrow": False, "font": {"color": TEXT, "size": 12}}
            if panel:
                layout["annotations"].append(above | row | {"text": f"<i>{titles[panel]}</i>"})
            layout["annotations"] += self._ends(panel, tops[panel], (high - low) * (_HEIGHT - _TOP_PX - 45))
        layout["yaxis"]["title"] = axis_title("requests/s")
        if warmup > 0:
            box = {"type": "rect", "x0": 0, "x1": warmup, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
            layout["shapes"].append(box | {"fillcolor": TEXT, "opacity": 0.1, "line": {"width": 0}})
        return go.Figure(data=self.traces, layout=layout)

    def _ends(self, panel: int, top: float, height_px: float) -> list[dict[str, Any]]:
        mine = [(y, name, colour) for where, y, name, colour in self.labels if where == panel]
        places = spread_apart([y for y, _, _ in mine], _LABEL_PX / height_px * top, top)
        right = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "showarrow": False, "yref": _axis(panel)}
        return [
            right | {"y": place, "text": name, "font": {"color": colour, "size": 12}}
            for (_, name, colour), place in zip(mine, places, strict=True)
        ]


def _axis(panel: int) -> str:
    return "y" if panel == 0 else f"y{panel + 1}"


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
