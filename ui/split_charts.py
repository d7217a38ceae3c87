"""The chart of layouts: what a user sees against what a chip gives. Pure, in the idiom of `charts`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from engine.study import Layout, LayoutOutcome
from ui.charts import BLUE, GREEN, ORANGE, PURPLE, TEXT, axis_title, f32, nice_top
from ui.split_words import short
from ui.words import NBSP

_HEIGHT = 380
_KINDS = (
    ("copies", BLUE, "square"),
    ("tensor", GREEN, "circle"),
    ("context", ORANGE, "diamond"),
    ("experts", PURPLE, "triangle-up"),
)
"""How a copy is split, its colour, and a marker as a second code; tensor and context together count as context."""
_ROOM = 1.15


def kind(layout: Layout) -> str:
    """What a copy is split by."""
    if layout.ep > 1:
        return "experts"
    return "context" if layout.cp > 1 else "tensor" if layout.tp > 1 else "copies"


def layouts_figure(found: Sequence[LayoutOutcome], best: Sequence[LayoutOutcome], now: Layout | None) -> go.Figure:
    """A point a layout, the frontier drawn through those that nothing beats; the others hollow. `now` has a ring."""
    known = [one for one in found if one.tokens_per_user is not None and one.tokens_per_gpu is not None]
    line = {"color": TEXT, "width": 1.4, "dash": "dot"}
    data = [{"type": "scatter", "mode": "lines", "x": _x(best), "y": _y(best), "line": line, "hoverinfo": "skip"}]
    for name, colour, symbol in _KINDS:
        mine = [one for one in known if kind(one.layout) == name]
        if not mine:
            continue
        front = [one in best for one in mine]
        data.append(
            {
                "type": "scatter", "mode": "markers+text", "x": _x(mine), "y": _y(mine), "name": name,
                "text": [f"{short(one.layout)}{' (now)' if _same(one.layout, now) else ''}".replace(" ", NBSP)
                         for one in mine],
                "textposition": ["top center" if on else "bottom center" for on in front],
                "textfont": {"size": 12, "color": TEXT}, "cliponaxis": False,
                "hovertemplate": "%{text}: %{x:.3~g} tokens/s/user, %{y:.3~g} tokens/s/GPU<extra></extra>",
                "marker": {"size": 11, "symbol": [symbol if on else f"{symbol}-open" for on in front],
                           "color": colour, "line": {"width": 1.6, "color": colour}},
            }
        )  # fmt: skip
    tops = [nice_top(_ROOM * float(max(values, default=1.0))) for values in (_x(known), _y(known))]
    both = {"fixedrange": True, "tickfont": {"color": TEXT}, "rangemode": "tozero"}
    legend = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"color": TEXT}}
    layout = {
        "height": _HEIGHT, "uirevision": "keep", "hovermode": "closest", "margin": {"l": 8, "r": 14, "t": 34, "b": 0},
        "legend": legend | {"itemclick": False, "itemdoubleclick": False},
        "xaxis": both | {"range": [0, tops[0]], "title": axis_title("tokens/s for each user, at this traffic")},
        "yaxis": both | {"range": [0, tops[1]], "title": axis_title("tokens/s a chip, at most")},
    }  # fmt: skip
    data[0]["showlegend"] = False
    return go.Figure(data=data, layout=layout)


def _same(one: Layout, now: Layout | None) -> bool:
    return now is not None and one.changes == now.changes


def _x(found: Sequence[LayoutOutcome]) -> np.ndarray:
    return f32(np.array([one.tokens_per_user for one in found], np.float64))


def _y(found: Sequence[LayoutOutcome]) -> np.ndarray:
    return f32(np.array([one.tokens_per_gpu for one in found], np.float64))
