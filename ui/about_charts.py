"""The About page's figures: predictions against measurements, and recorded runs beside simulated ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from engine.machine import Published
from engine.study import RecordedRun
from ui.charts import BLUE, GREEN, ORANGE, PURPLE, RED, TEXT, YELLOW
from ui.confidence import FAMILIES, engine_word
from ui.words import digits

METRICS = {
    "tpot": "gap between words (TPOT)",
    "ttft_low_load": "first word at low load (TTFT)",
    "batch_latency": "whole batch",
    "output_tok_s": "output tokens a second",
}
SIDES = {"recorded": "real", "fitted": "simulated, step times fitted to it", "predicted": "simulated, nothing fitted"}
UNITS = {
    "tpot": ("ms", 1e3),
    "ttft_low_load": ("s", 1.0),
    "batch_latency": ("s", 1.0),
    "output_tok_s": ("tokens/s", 1.0),
}
"""What a metric is drawn in, and how many of it a second or a token a second is."""
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, RED, TEXT)
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "triangle-down", "star", "hexagon", "pentagon",
            "hourglass", "bowtie", "triangle-left")  # fmt: skip
MARKS = {family: (_COLOURS[i % len(_COLOURS)], _SYMBOLS[i % len(_SYMBOLS)]) for i, family in enumerate(FAMILIES)}
"""A family's colour and shape, whatever else is shown; no two have the same shape."""
_SCATTER_PX, _CURVES_PX = 430, 380
_MANY_DECADES = 300.0
"""From this ratio of an axis' ends on, only powers of ten are marked."""


def scatter(points: Sequence[Published], off: float) -> go.Figure:
    """Predicted over measured on log axes, the line where they are equal, and a band of `off` (a share) around it.

    The points, at least one, are of one metric.
    """
    unit, scale = UNITS[points[0].metric]
    low = scale * min(min(p.measured, p.predicted) for p in points) / 1.3
    high = scale * max(max(p.measured, p.predicted) for p in points) * 1.3
    ends = np.array([low, high])
    line = {"mode": "lines", "hoverinfo": "skip", "showlegend": False}
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "x": ends, "y": ends * (1 - off), "line": {"width": 0}} | line,
        {"type": "scatter", "x": ends, "y": ends * (1 + off), "line": {"width": 0}}
        | line
        | {"fill": "tonexty", "fillcolor": f"{TEXT}1a"},
        {"type": "scatter", "x": ends, "y": ends, "line": {"color": TEXT, "width": 1.2, "dash": "dash"}} | line,
    ]
    count = Counter(p.family for p in points)
    for family, _ in count.most_common():  # small ones on top
        own = [p for p in points if p.family == family]
        traces.append(_dots(own, FAMILIES[family], *MARKS[family]))
    axis = {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "fixedrange": True,
        "dtick": 1 if high / low > _MANY_DECADES else "D2",
        "tickformat": ",~g",
        "tickfont": {"color": TEXT},
        "zeroline": False,
    }
    layout = {
        "height": _SCATTER_PX,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 0},
        "hovermode": "closest",
        "showlegend": len(count) > 1,
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "font": {"color": TEXT},
            "traceorder": "normal",
        },
        "xaxis": axis | {"title": _title(f"measured, {unit} (log)")},
        "yaxis": axis | {"title": _title(f"predicted, {unit} (log)")},
    }
    return go.Figure(data=traces, layout=layout)


def _dots(points: Sequence[Published], name: str, colour: str, symbol: str) -> dict[str, Any]:
    unit, scale = UNITS[points[0].metric]
    said = [
        f"{p.model} on {p.tp} × {p.accelerator}<br>{engine_word(p.engine)}, {p.weight_dtype}, {METRICS[p.metric]}<br>"
        f"{p.prompt:,.0f} + {p.output:,.0f} tokens, {p.seqs:,.0f} at once<br>measured {digits(scale * p.measured)}, "
        f"predicted {digits(scale * p.predicted)} {unit} ({p.off:+.0%})<br>{p.source}"
        for p in points
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": np.array([scale * p.measured for p in points], np.float32),
        "y": np.array([scale * p.predicted for p in points], np.float32),
        "marker": {"color": colour, "symbol": symbol, "size": 6, "opacity": 0.6, "line": {"width": 0}},
        "text": said,
        "hovertemplate": "%{text}<extra></extra>",
    }


def scatter_table(points: Sequence[Published]) -> pd.DataFrame:
    """The scatter's points, a row each."""
    return pd.DataFrame(
        {
            "source": [p.source for p in points],
            "model": [p.model for p in points],
            "accelerator": [p.accelerator for p in points],
            "devices": [p.tp for p in points],
            "engine": [engine_word(p.engine) for p in points],
            "weights": [p.weight_dtype for p in points],
            "load": [p.load for p in points],
            "prompt": [p.prompt for p in points],
            "answer": [p.output for p in points],
            "at once": [p.seqs for p in points],
            "unit": ["tokens/s" if p.metric == "output_tok_s" else "s" for p in points],
            "measured": [p.measured for p in points],
            "predicted": [p.predicted for p in points],
            "error %": [round(100 * p.off, 1) for p in points],
        }
    )


def curves(run: RecordedRun) -> go.Figure:
    """Requests running and waiting, one panel each on the same time axis: real as dots, simulated as lines."""
    styles: dict[str, dict[str, Any]] = {
        "recorded": {"mode": "markers", "marker": {"color": ORANGE, "size": 4.5}},
        "fitted": {"mode": "lines", "line": {"color": BLUE, "width": 2}},
        "predicted": {"mode": "lines", "line": {"color": GREEN, "width": 1.8, "dash": "dot"}},
    }
    traces = [
        {"type": "scatter", "x": run.time_s.astype(np.float32), "y": _f32(panel[side]), "yaxis": axis}  # type: ignore[index]
        | styles[side]
        | {"name": name, "legendgroup": side, "showlegend": axis == "y", "hovertemplate": "%{y:.0f}"}
        for axis, panel in (("y", run.running), ("y2", run.waiting))
        for side, name in SIDES.items()
    ]
    both = {"rangemode": "tozero", "fixedrange": True, "tickfont": {"color": TEXT}, "nticks": 5}
    along = {"title": _title("seconds since the first arrival"), "anchor": "y2", "rangemode": "tozero"}
    layout = {
        "height": _CURVES_PX,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 0},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"color": TEXT}},
        "xaxis": along | {"fixedrange": True, "showgrid": False, "tickfont": {"color": TEXT}},
        "yaxis": both | {"domain": [0.54, 1.0], "title": _title("running")},
        "yaxis2": both | {"domain": [0.0, 0.46], "title": _title("waiting")},
    }
    return go.Figure(data=traces, layout=layout)


def curves_table(run: RecordedRun) -> pd.DataFrame:
    """The curves, a row a point of time."""
    columns = {"second": run.time_s}
    for what, panel in (("running", run.running), ("waiting", run.waiting)):
        columns |= {f"{what}, {name}": panel[side] for side, name in SIDES.items()}  # type: ignore[index]
    return pd.DataFrame(columns)


def _f32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)


def _title(text: str) -> dict[str, Any]:
    return {"text": text, "font": {"color": TEXT}}
