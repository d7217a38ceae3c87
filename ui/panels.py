"""Charts above one another with one axis along, as plain dictionaries made into a figure at once; see `charts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ui.charts import TEXT, Line, axis_title, log_ticks, spread_apart, veil

_LABEL_PX = 13.0
_AXIS_PX = 45


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the panels are: shares of the height from below, the first panel on top; a title for each but the first
    stands in it, because beside so low a panel it doesn't fit. The first has `axis` beside it.
    """

    panels: tuple[tuple[float, float], ...]
    titles: tuple[str, ...]
    axis: str
    height_px: int = 520
    right_px: int = 78
    top_px: int = 38
    log: bool = False
    """Whether the axis along goes by ratio."""
    logs: frozenset[int] = frozenset()
    """Panels whose own axis goes by ratio; their tops are (lowest, highest)."""
    close: float = 0.16
    """Names of rules that are nearer than this share of the axis stand in different lines."""
    dashes: Mapping[str, str] = field(default_factory=dict)
    """How the rule of a name is drawn, where that isn't dashed."""


class Panels:
    """A draft: from `start` to `end` along."""

    def __init__(self, layout: Layout, end: float, unit: str, start: float = 0.0) -> None:
        self.layout, self.start, self.end, self.unit = layout, start, end, unit
        self.traces: list[dict[str, Any]] = []
        self.labels: list[tuple[int, float, str, str]] = []
        self.annotations: list[dict[str, Any]] = []
        self.shapes: list[dict[str, Any]] = []

    def line(
        self,
        panel: int,
        x: Line,
        y: Line,
        colour: str,
        name: str,
        dash: str,
        shape: str = "linear",
        text: str = "",
        symbol: str = "",
    ) -> None:
        """A line, with a mark at each point where there is a `symbol`, and its name, or `text`, at its right end."""
        line = {"color": colour, "width": 2.0, "dash": dash, "shape": shape}
        style = {"mode": "lines", "name": name, "line": line, "hovertemplate": "%{y:.3~g}"}
        if symbol:
            style |= {"mode": "lines+markers", "marker": {"symbol": symbol, "size": 8}}
        self.traces.append({"type": "scatter", "x": x, "y": y, "yaxis": axis_of(panel)} | style)
        known = y[~np.isnan(y)]
        if known.size:
            self.labels.append((panel, float(known[-1]), text or name, colour))

    def area(self, panel: int, x: Line, y: Line, low: Line, colour: str, above: str, shape: str = "linear") -> None:
        """The area up to `low`, and the one from there to `y`."""
        plain: dict[str, Any] = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "yaxis": axis_of(panel)}
        plain |= {"x": x, "line": {"width": 0, "shape": shape}}
        self.traces += [
            plain | {"y": low, "fill": "tozeroy", "fillcolor": veil(colour, 0.13)},
            plain | {"y": y, "fill": "tonexty", "fillcolor": veil(above, 0.45)},
        ]

    def stacked(self, panel: int, x: Line, y: Line, below: Line, colour: str, pattern: str, name: str) -> None:
        """One part of a whole on top of those before, `below` being their sum; its name at the right end."""
        fill = {"stackgroup": f"parts {panel}", "fillcolor": veil(colour, 0.5), "line": {"width": 0.8, "color": colour}}
        if pattern:
            fill["fillpattern"] = {"shape": pattern, "size": 5, "solidity": 0.25, "fgcolor": colour}
        style = {"mode": "lines", "name": name, "hovertemplate": "%{y:.3~g}", "yaxis": axis_of(panel)}
        self.traces.append({"type": "scatter", "x": x, "y": y} | style | fill)
        self.labels.append((panel, float(below[-1] + y[-1] / 2), name, colour))

    def inside(self, panel: int, x: Line, there: Line, height: Line, name: str) -> None:
        """A name in the middle of the longest stretch in which there is any."""
        length = np.where(there[:-1] > 0, np.diff(x), 0.0)
        if not length.any():
            return
        at = int(length.argmax())
        place = {"x": float(x[at] + length[at] / 2), "y": float(height[at]), "yref": axis_of(panel), "showarrow": False}
        self.annotations.append(place | {"text": name, "font": {"color": TEXT, "size": 12}})

    def grey(self, start: float, end: float) -> None:
        """A stretch through all panels that isn't counted, or can't be."""
        if end > start:
            box = {"type": "rect", "x0": start, "x1": end, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
            self.shapes.append(box | {"fillcolor": TEXT, "opacity": 0.1, "line": {"width": 0}})

    def rules(self, found: Sequence[tuple[float, str]]) -> None:
        """Vertical lines through all panels, named at the top, each name in a line with room for it."""
        taken = [-1.0, -1.0]  # where the last name of each line stands, as a share of the axis
        for index, (at, name) in enumerate(found):
            place = self._share(at)
            first = index == 0 and place > self.layout.close
            late = place > 0.85
            beside = taken[0] < 0 and not (late and index == 1)  # the first name stands on the other side of its rule
            row = 0 if first or place - abs(taken[0]) >= self.layout.close or beside else 1
            taken[row] = place
            style = {"color": TEXT, "width": 1.2, "dash": self.layout.dashes.get(name, "dash")}
            self.shapes.append({"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": style})
            self.annotations.append(
                {"x": self._placed(at), "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 2 + 15 * row,
                 "showarrow": False, "xanchor": "right" if first or late else "left",
                 "xshift": -2 if first or late else 2, "text": name, "font": {"color": TEXT, "size": 12}}
            )  # fmt: skip
            if first:
                taken[0] = -place

    def _placed(self, at: float) -> float:
        """A place along as annotations and ranges want it."""
        return float(np.log10(at)) if self.layout.log else at

    def _share(self, at: float) -> float:
        low, high = self._placed(self.start), self._placed(self.end)
        return (self._placed(at) - low) / (high - low)

    def figure(self, tops: Sequence[float | tuple[float, float]], **along: Any) -> go.Figure:
        """The finished chart; `tops` are the panels' highest values (and lowest, by ratio)."""
        look = self.layout
        both = {"fixedrange": True, "tickfont": {"color": TEXT}}
        along |= {"type": "log"} if look.log else {}
        layout: dict[str, Any] = {
            "height": look.height_px, "showlegend": False, "hovermode": "x unified", "uirevision": "keep",
            "hoversubplots": "axis", "margin": {"l": 8, "r": look.right_px, "t": look.top_px, "b": 0},
            "xaxis": both | {"range": [self._placed(self.start), self._placed(self.end)], "showgrid": False,
                             "title": axis_title(self.unit), "hoverformat": ".3~g",
                             "anchor": axis_of(len(look.panels) - 1)} | along,
            "annotations": list(self.annotations), "shapes": self.shapes,
        }  # fmt: skip
        for panel, (low, high) in enumerate(look.panels):
            top = tops[panel]
            ends = (0.0, top) if isinstance(top, float | int) else (float(np.log10(top[0])), float(np.log10(top[1])))
            up = {"range": list(ends), "nticks": 5, "domain": [low, high], "anchor": "x"}
            up |= log_ticks(*ends) if panel in look.logs else {"rangemode": "tozero"}
            layout["yaxis" + ("" if panel == 0 else str(panel + 1))] = both | up
            above = {"x": 0, "xref": "paper", "xanchor": "left", "y": high, "yref": "paper", "yanchor": "bottom"}
            row = {"showarrow": False, "font": {"color": TEXT, "size": 12}}
            if panel:
                layout["annotations"].append(above | row | {"text": f"<i>{look.titles[panel]}</i>"})
            layout["annotations"] += self._ends(panel, ends, (high - low) * (look.height_px - look.top_px - _AXIS_PX))
        layout["yaxis"]["title"] = axis_title(look.axis)
        return go.Figure(data=self.traces, layout=layout)

    def _ends(self, panel: int, ends: tuple[float, float], height_px: float) -> list[dict[str, Any]]:
        by_ratio, (low, high) = panel in self.layout.logs, ends
        mine = [
            ((float(np.log10(y)) if by_ratio else y) - low, name, colour)
            for where, y, name, colour in self.labels
            if where == panel
        ]
        span = high - low
        places = spread_apart([y for y, _, _ in mine], _LABEL_PX / height_px * span, span)
        right = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "showarrow": False, "yref": axis_of(panel)}
        return [
            right | {"y": low + place, "text": name, "font": {"color": colour, "size": 12}}
            for (_, name, colour), place in zip(mine, places, strict=True)
        ]


def axis_of(panel: int) -> str:
    """What Plotly calls a panel's axis."""
    return "y" if panel == 0 else f"y{panel + 1}"
