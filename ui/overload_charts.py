"""The overload page's figures. Pure functions, in the idiom of `charts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.outcome.overload import Load, Spent
from ui.charts import (
    BLUE,
    GREEN,
    INSIDE,
    ORANGE,
    PURPLE,
    TEXT,
    YELLOW,
    Draft,
    axis_title,
    clock,
    f32,
    highest,
    middles,
    nice_top,
    steps,
)
from ui.overload_words import FATES
from ui.words import NBSP, digits

_ROW_PX = 30
_LEGEND_PX = 58
_FEWEST_ROWS = 5
"""For so many there is room, however few there are: on a phone the legend has a word a line."""
"""Its entries need three lines on a telephone."""
_AXIS_PX = 48
COLOURS = {"in_time": GREEN, "late": ORANGE, "refused": PURPLE, "gave_up": YELLOW, "waiting": TEXT}
PATTERNS = {"in_time": "", "late": "/", "refused": "x", "gave_up": ".", "waiting": "-"}
"""A second code beside colour."""
_WORTH_A_COLOUR = 0.005
"""Share from which on a fate is drawn: less can't be seen."""
_WORTH_A_NUMBER = 0.07
"""Share of a bar from which on its figure fits into it."""


def load_figure(
    load: Load, fleet_rps: float | None, horizon_s: float, warmup_s: float, pinned: Load | None = None
) -> go.Figure:
    """First attempts and retries stacked, what can be served, answers in time, and A's answers in time."""
    scale, unit = clock(horizon_s)
    seen = ~np.isnan(load.first_rps)
    start, width = load.bins.start_s[seen], load.bins.width_s
    first, all_of_them = load.first_rps[seen], (load.first_rps + load.retries_rps)[seen]
    x, y = steps(start, width, first, horizon_s, scale)
    _, whole = steps(start, width, all_of_them, horizon_s, scale)
    _, good = steps(start, width, load.in_time_rps[seen], horizon_s, scale)
    top = nice_top(1.08 * max(highest([all_of_them, load.in_time_rps]), fleet_rps or 0.0))
    draft = Draft(horizon_s / scale, unit, "requests per second", top, warmup_s / scale)
    draft.area(x, y, BLUE)
    draft.line(x, y, BLUE, "first attempts", shape="hv")
    if y.size:
        draft.label(float(y[-1]), "first attempts", BLUE)
    if load.retries_rps[seen].any():
        draft.band(x, y, whole, ORANGE, 0.25, shape="hv")
        draft.line(x, whole, ORANGE, "with retries", shape="hv", dash="dot")
        draft.label(float(whole[-1]), "with retries", ORANGE)
    draft.line(x, good, GREEN, "in time", shape="hv", width=2.6)
    if good.size:
        draft.label(float(good[-1]), "in time", GREEN)
    if fleet_rps is not None:
        draft.level(fleet_rps, "can be served", f"can serve {digits(fleet_rps, 2)}", TEXT)
    if pinned is not None:
        known = ~np.isnan(pinned.in_time_rps)
        ghost = steps(pinned.bins.start_s[known], pinned.bins.width_s, pinned.in_time_rps[known], horizon_s, scale)
        draft.ghost(*ghost, GREEN, "A in time", shape="hv")
    return draft.figure()


def amplification_figure(load: Load, horizon_s: float, warmup_s: float, pinned: Load | None = None) -> go.Figure:
    """Attempts for each request, by time of arrival."""
    scale, unit = clock(horizon_s)
    others = [] if pinned is None else [pinned.amplification]
    top = nice_top(1.08 * max(2.0, highest([load.amplification, *others])))
    draft = Draft(horizon_s / scale, unit, "attempts per request", top, warmup_s / scale)
    y = f32(load.amplification)
    draft.line(middles(load.bins, scale), y, ORANGE, "attempts", width=2.4)
    draft.level(1.0, "no retries", "no retries", TEXT)
    known = y[~np.isnan(y)]
    if known.size:
        draft.label(float(known[-1]), "attempts", ORANGE)
    if pinned is not None:
        draft.ghost(middles(pinned.bins, scale), f32(pinned.amplification), ORANGE, "A")
    return draft.figure()


def ways_figure(rows: Sequence[tuple[str, Mapping[str, float]]]) -> go.Figure:
    """One bar a way, first on top: shares of all who came, by what became of them, to 100 %."""
    names = [name.replace(" ", NBSP) for name, _ in rows]
    data = [
        _bars(fate, [shares.get(fate, 0.0) for _, shares in rows], names, across=True)
        for fate in FATES
        if any(shares.get(fate, 0.0) >= _WORTH_A_COLOUR for _, shares in rows)
    ]
    share = axis("share of requests, %") | {"range": [0, 100]}
    ways = {"autorange": "reversed", "fixedrange": True, "tickfont": {"color": TEXT}, "automargin": True}
    return stacked(data, share, ways, _ROW_PX * max(len(rows), _FEWEST_ROWS) + _LEGEND_PX + _AXIS_PX)


def caps_figure(rows: Sequence[tuple[str, Mapping[str, float]]]) -> go.Figure:
    """One bar a cap, smallest on the left: shares of all who came, by what became of them, to 100 %."""
    names = [name for name, _ in rows]
    data = [
        _bars(fate, [shares.get(fate, 0.0) for _, shares in rows], names, across=False)
        for fate in FATES
        if any(shares.get(fate, 0.0) >= _WORTH_A_COLOUR for _, shares in rows)
    ]
    caps = {"type": "category"} | axis("most requests a replica takes, running and waiting")
    return stacked(data, caps, axis("share of requests, %") | {"range": [0, 100]}, 320)


def spent_figure(rows: Sequence[tuple[str, Spent]]) -> go.Figure:
    """Tokens worked on, by what became of the request, to 100 %; one bar for the scenario, one for A."""
    names = [name for name, _ in rows]
    kinds = (("in_time", "in time"), ("late", "late"), ("for_nothing", "for callers who had left"))
    like = {"for_nothing": "gave_up"}
    data = []
    for kind, word in kinds:
        shares = [getattr(spent, kind) / spent.total if spent.total else 0.0 for _, spent in rows]
        if any(shares):
            data.append(_bars(like.get(kind, kind), shares, names, across=True) | {"name": word})
    share = axis("share of the tokens worked on, %") | {"range": [0, 100]}
    ways = {"autorange": "reversed", "fixedrange": True, "tickfont": {"color": TEXT}, "automargin": True}
    return stacked(data, share, ways, _ROW_PX * len(rows) + _LEGEND_PX + _AXIS_PX)


def _bars(fate: str, shares: Sequence[float], names: Sequence[str], across: bool) -> dict[str, Any]:
    values = f32(100 * np.asarray(shares, np.float64))
    along, over = ("x", "y") if across else ("y", "x")
    text = [f"{share * 100:.0f}" if share >= _WORTH_A_NUMBER else "" for share in shares]
    return {
        "type": "bar", "orientation": "h" if across else "v", along: values, over: list(names), "name": FATES[fate],
        "text": text, "textposition": "inside", "insidetextanchor": "middle", "textangle": 0,
        "textfont": INSIDE, "hovertemplate": f"%{{{along}:.1f}} %", "constraintext": "none",
        "marker": {"color": COLOURS[fate], "line": {"width": 0}, "pattern": _pattern(fate)},
    }  # fmt: skip


def _pattern(fate: str) -> dict[str, Any]:
    return {"shape": PATTERNS[fate], "size": 7, "solidity": 0.12, "fillmode": "overlay"}


def axis(title: str) -> dict[str, Any]:
    """An axis that stays as it is, without a grid."""
    return {"title": axis_title(title), "fixedrange": True, "tickfont": {"color": TEXT}, "showgrid": False}


def stacked(data: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], height: int) -> go.Figure:
    """Stacked bars under a legend."""
    legend = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "normal"}
    layout = {
        "height": height, "barmode": "stack", "bargap": 0.25, "uirevision": "keep",
        "showlegend": True, "legend": legend | {"font": {"color": TEXT}, "itemclick": False, "itemdoubleclick": False},
        "margin": {"l": 8, "r": 14, "t": _LEGEND_PX, "b": _AXIS_PX}, "xaxis": x, "yaxis": y,
        "hovermode": "x unified" if x.get("type") == "category" else "y unified",
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)
