"""How prompts are read: first words above, gaps below, with one axis. Pure functions, in the idiom of `charts`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.study import Figure, PolicyOutcome, Read
from ui.charts import BLUE, ORANGE, PURPLE, RED, TEXT, Floats, axis_title, f32, log_ticks, spread_apart
from ui.words import NBSP, percent

_HEIGHT, _TOP_PX, _BELOW_PX = 400, 32, 50
_LABEL_PX = 14.0
_DECADE = 0.08
"""Air above and below the lines, in powers of ten."""


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    colour: str
    dash: str
    of: Callable[[Any], float]


_Panels = tuple[tuple[str, tuple[float, float], tuple[_Line, ...]], ...]

_PANELS: _Panels = (
    (
        "first word (TTFT)",
        (0.56, 1.0),
        (
            _Line("first word p95", ORANGE, "solid", lambda read: read.first_word_s["p95"]),
            _Line("p50", BLUE, "dot", lambda read: read.first_word_s["p50"]),
        ),
    ),
    (
        "gap between words (ITL)",
        (0.0, 0.44),
        (
            _Line("longest p95", RED, "solid", lambda read: read.pause_s),
            _Line("gap p99", PURPLE, "dash", lambda read: read.gap_s["p99"]),
        ),
    ),
)


_POLICIES: _Panels = (
    (
        "first word (TTFT)",
        (0.56, 1.0),
        (
            _Line("first word p95", ORANGE, "solid", lambda policy: _value(policy.ttft_s["p95"])),
            _Line("p50", BLUE, "dot", lambda policy: _value(policy.ttft_s["p50"])),
        ),
    ),
    (
        "gap between words (ITL)",
        (0.0, 0.44),
        (
            _Line("longest p95", RED, "solid", lambda policy: _value(policy.stall_s["p95"])),
            _Line("gap p99", PURPLE, "dash", lambda policy: _value(policy.itl_s["p99"])),
        ),
    ),
)


def _value(figure: Figure) -> float:
    return math.nan if figure.value is None else figure.value


def chunks_figure(found: Sequence[Read], own: int) -> go.Figure:
    """First word above, gaps below, by the token budget of a step."""
    names = [f"{int(read.value):,}" for read in found]
    figure = _panels(names, found, "most tokens a step (max-num-batched-tokens)")
    at = [int(read.value) for read in found].index(own)
    line = {"color": TEXT, "width": 1.2, "dash": "dot"}
    figure.add_shape({"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line})
    note = {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 14, "text": "now"}
    figure.add_annotation(note | {"showarrow": False, "font": {"color": TEXT, "size": 12}})
    return figure


def cached_figure(found: Sequence[Read]) -> go.Figure:
    """First word above, gaps below, by the share that is cached."""
    return _panels([percent(read.value, 2) for read in found], found, "share of the mean prompt that is cached")


def policies_figure(names: list[str], found: Sequence[PolicyOutcome]) -> go.Figure:
    """First word above, gaps below, one place a policy; there is nothing between two of them."""
    return _panels(names, found, "how prompts and answers share the machines", _POLICIES, "markers")


def _panels(
    names: list[str], found: Sequence[Any], along: str, panels: _Panels = _PANELS, mode: str = "lines+markers"
) -> go.Figure:
    both = {"fixedrange": True, "tickfont": {"color": TEXT}}
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "height": _HEIGHT, "showlegend": False, "uirevision": "keep", "hovermode": "x unified",
        "hoversubplots": "axis", "margin": {"l": 8, "r": 96, "t": _TOP_PX, "b": 0}, "annotations": [],
        "xaxis": both | {"type": "category", "title": axis_title(along), "anchor": "y2", "showgrid": False},
    }  # fmt: skip
    for panel, (title, (bottom, ceiling), lines) in enumerate(panels):
        values = [np.array([line.of(read) for read in found]) for line in lines]
        scale, unit = (1.0, "s") if np.nanmax(np.concatenate(values), initial=0.0) >= 1.0 else (1000.0, "ms")
        ref = "y2" if panel else "y"
        low, high = _range([value * scale for value in values])
        up = {"range": [low, high], "domain": [bottom, ceiling], "anchor": "x"}
        layout["yaxis2" if panel else "yaxis"] = both | up | log_ticks(low, high)
        traces += [_trace(names, y * scale, line, ref, unit, mode) for line, y in zip(lines, values, strict=True)]
        per_px = (high - low) / ((ceiling - bottom) * (_HEIGHT - _TOP_PX - _BELOW_PX))
        layout["annotations"] += _ends([y * scale for y in values], lines, ref, (low, high), per_px)
        above = {"x": 0, "xref": "paper", "xanchor": "left", "y": ceiling, "yref": "paper", "yanchor": "bottom"}
        named = {"showarrow": False, "font": {"color": TEXT, "size": 12}, "text": f"<i>{title}, {unit} (log)</i>"}
        layout["annotations"].append(above | named)
    return go.Figure(data=traces, layout=layout)


def _range(values: Sequence[Floats]) -> tuple[float, float]:
    """Powers of ten between which the lines lie."""
    every = np.concatenate(values)
    every = every[every > 0]  # which leaves nan out, too
    if not every.size:
        return 0.0, 1.0
    return float(np.log10(every.min())) - _DECADE, float(np.log10(every.max())) + _DECADE


def _trace(names: list[str], y: Floats, line: _Line, ref: str, unit: str, mode: str) -> dict[str, Any]:
    marker = {"color": line.colour, "size": 6, "symbol": "circle" if line.dash == "solid" else "diamond"}
    style = {"line": {"color": line.colour, "width": 2.0, "dash": line.dash}, "marker": marker}
    about = {"type": "scatter", "mode": mode, "name": line.name, "hovertemplate": f"%{{y:.3~g}} {unit}"}
    return about | style | {"x": names, "y": f32(y), "yaxis": ref}


def _ends(
    values: Sequence[Floats], lines: Sequence[_Line], ref: str, span: tuple[float, float], per_px: float
) -> list[dict[str, Any]]:
    """The lines' names at their right ends."""
    low, high = span
    last = [float(np.log10(y[-1])) - low if y[-1] > 0 else 0.0 for y in values]  # nan, too
    places = spread_apart(last, _LABEL_PX * per_px, high - low)
    right = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "showarrow": False, "yref": ref}
    return [
        right | {"y": low + place, "text": line.name.replace(" ", NBSP), "font": {"color": line.colour, "size": 12}}
        for place, line in zip(places, lines, strict=True)
    ]
