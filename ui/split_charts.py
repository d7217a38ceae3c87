"""The chart of layouts: what a user sees against what a chip gives. Pure, in the idiom of `charts`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from engine.study import Layout, LayoutOutcome
from ui.charts import BLUE, GREEN, ORANGE, PURPLE, TEXT, YELLOW, axis_title, f32, nice_top
from ui.split_labels import placed
from ui.split_words import short
from ui.words import NBSP

_HEIGHT = 380
_KINDS = (
    ("copies", BLUE, "square"),
    ("tensor", GREEN, "circle"),
    ("context", ORANGE, "diamond"),
    ("pipeline", YELLOW, "triangle-down"),
    ("experts", PURPLE, "triangle-up"),
)
"""How a copy is split, its colour, and a marker as a second code; tensor together with another counts as the other."""
_ROOM = 1.15


def kind(layout: Layout) -> str:
    """What a copy is split by."""
    if layout.ep > 1:
        return "experts"
    if layout.pp > 1:
        return "pipeline"
    return "context" if layout.cp > 1 else "tensor" if layout.tp > 1 else "copies"


def layouts_figure(found: Sequence[LayoutOutcome], best: Sequence[LayoutOutcome], now: Layout | None) -> go.Figure:
    """A point a layout, the frontier drawn through those that nothing beats; the others hollow, and without their name
    where there is no room for it. `now` is marked by a word."""
    known = [one for one in found if one.tokens_per_user is not None and one.tokens_per_gpu is not None]
    tops = [nice_top(_ROOM * float(max(values, default=1.0))) for values in (_x(known), _y(known))]
    names = {one.layout: f"{short(one.layout)}{' (now)' if _same(one.layout, now) else ''}" for one in known}
    where = _where(known, best, list(names.values()), tops)
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
                "text": [names[one.layout].replace(" ", NBSP) if where[one.layout] else "" for one in mine],
                "textposition": [where[one.layout] or "top center" for one in mine],
                "textfont": {"size": 12, "color": TEXT}, "cliponaxis": False,
                "customdata": [names[one.layout] for one in mine],
                "hovertemplate": "%{customdata}: %{x:.3~g} tokens/s/user, %{y:.3~g} tokens/s/GPU<extra></extra>",
                "marker": {"size": 11, "symbol": [symbol if on else f"{symbol}-open" for on in front],
                           "color": colour, "line": {"width": 1.6, "color": colour}},
            }
        )  # fmt: skip
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


def nameless(figure: go.Figure) -> int:
    """Points for whose name there was no room."""
    return sum(not text for trace in figure.data for text in trace.text or ())


def _where(
    known: Sequence[LayoutOutcome], best: Sequence[LayoutOutcome], names: Sequence[str], tops: Sequence[float]
) -> dict[Layout, str | None]:
    """Where each one's name stands; room is kept for the frontier's, then for the present one's."""
    points = list(zip(_x(known) / tops[0], _y(known) / tops[1], strict=True))
    front = [i for i, one in enumerate(known) if one in best]
    present = [i for i, name in enumerate(names) if name.endswith("(now)")]
    order = sorted({*front, *present}, key=lambda i: (i not in front, i))
    places = placed(points, names, order)
    return {one.layout: place for one, place in zip(known, places, strict=True)}


def _same(one: Layout, now: Layout | None) -> bool:
    return now is not None and one.changes == now.changes


def _x(found: Sequence[LayoutOutcome]) -> np.ndarray:
    return f32(np.array([one.tokens_per_user for one in found], np.float64))


def _y(found: Sequence[LayoutOutcome]) -> np.ndarray:
    return f32(np.array([one.tokens_per_gpu for one in found], np.float64))
