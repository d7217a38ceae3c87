"""From facts to Plotly figures. Pure functions; colours come from the theme, by Streamlit's stand-ins for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from engine.outcome.course import Arrivals, Latencies, Refusals
from ui.words import NBSP, REASONS, digits, seconds

# The front end replaces these by the theme's chart colours, text and grid, light or dark (see .streamlit/config.toml).
BLUE, ORANGE, GREEN, PURPLE, YELLOW, RED = (f"#00000{i}" for i in range(1, 7))
TEXT = "#000036"
REASON_COLOURS = {"queue_full": ORANGE, "too_long": PURPLE, "rate_limited": YELLOW, "shed": GREEN, "codel": RED}
_PATTERNS = ("", "/", "x", ".", "-", "+", "|")
"""A second code beside colour for stacked bars."""

CONFIG = {"displayModeBar": False, "responsive": True}
HEIGHT = 270
_LABEL_PX = 13.0
_RIGHT_PX = 88


def arrivals_figure(a: Arrivals, horizon_s: float, warmup_s: float) -> go.Figure:
    """Step area of one run's arrivals, the fleet's capacity, and the part above it."""
    scale, unit = clock(horizon_s)
    seen = ~np.isnan(a.rate_rps)
    x, y = _steps(a.bins.start_s[seen], a.bins.width_s, a.rate_rps[seen], horizon_s, scale)
    high = float(np.nanmax(a.rate_rps, initial=0.0))
    top = nice_top(max(high, min(a.capacity_rps or 0.0, 4 * high if high else math.inf)) * 1.08)
    figure = _figure(scale, unit, horizon_s, "requests per second", top)
    figure.add_trace(_area(x, y, BLUE, 0.13))
    figure.add_trace(_line(x, y, BLUE, "arrivals", shape="hv"))
    labels = [(float(y[-1]) if y.size else 0.0, "arrivals", BLUE)]
    if a.capacity_rps is not None and a.capacity_rps <= top:
        line = np.full(x.size, a.capacity_rps, np.float32)
        figure.add_trace(_hidden(x, line, "hv"))
        figure.add_trace(_band(x, np.maximum(y, line), ORANGE, "above capacity", 0.45, shape="hv"))
        ends = np.array([0.0, horizon_s / scale], np.float32)
        full = np.full(2, a.capacity_rps, np.float32)
        figure.add_trace(_line(ends, full, TEXT, "can be served", dash="dash", width=1.6))
        labels.append((a.capacity_rps, f"can serve {digits(a.capacity_rps, 2)}", TEXT))
    elif a.capacity_rps is not None:
        _note(figure, f"can serve {digits(a.capacity_rps, 2)}, far above ↑")
    _label_ends(figure, labels, top)
    _mark_warmup(figure, warmup_s / scale)
    return figure


def latency_figure(c: Latencies, horizon_s: float, warmup_s: float, axis: str, threshold_s: float | None) -> go.Figure:
    """p50, p95 and p99 by time of arrival with 95 % bands, and the promise."""
    scale, unit = clock(horizon_s)
    x = _f32((c.bins.start_s + c.bins.width_s / 2) / scale)
    inside = c.bins.start_s >= warmup_s
    high = max((_top_of(c.figures["p99"], inside), threshold_s or 0.0))
    top = nice_top(high * 1.05)
    figure = _figure(scale, unit, horizon_s, f"{axis}, s", top)
    style = {"p99": (PURPLE, "dot", 1.6), "p95": (ORANGE, "solid", 2.4), "p50": (BLUE, "solid", 1.8)}
    labels: list[tuple[float, str, str]] = []
    for name, (colour, dash, width) in style.items():
        low, up = c.low[name], c.high[name]
        if not np.isnan(up).all():
            known = ~np.isnan(up)
            figure.add_trace(_hidden(x[known], _f32(low[known])))
            figure.add_trace(_band(x[known], _f32(np.minimum(up[known], top)), colour, f"{name}, 95 % band", 0.16))
        values = c.figures[name]
        figure.add_trace(_line(x, _f32(values), colour, name, dash=dash, width=width))
        last = values[~np.isnan(values)]
        if last.size:
            labels.append((float(last[-1]), name, colour))
    if threshold_s is not None and threshold_s <= top:
        ends = np.array([0.0, horizon_s / scale], np.float32)
        promise = np.full(2, threshold_s, np.float32)
        figure.add_trace(_line(ends, promise, GREEN, "promise", dash="dash", width=1.6))
        labels.append((threshold_s, f"promise {seconds(threshold_s)}", GREEN))
    _label_ends(figure, labels, top)
    _mark_warmup(figure, warmup_s / scale)
    return figure


def refusals_figure(r: Refusals, horizon_s: float, warmup_s: float) -> go.Figure:
    """Shares of arrivals that were turned away, by reason, stacked."""
    scale, unit = clock(horizon_s)
    x = _f32((r.bins.start_s + r.bins.width_s / 2) / scale)
    inside = r.bins.start_s >= 0
    total = np.nansum(list(r.shares.values()), axis=0) if r.shares else np.zeros(x.size)
    top = min(100.0, nice_top(100 * _top_of(total, inside) * 1.05))
    figure = _figure(scale, unit, horizon_s, "turned away, % of arrivals", top)
    figure.update_layout(barmode="stack", bargap=0)
    for i, (reason, share) in enumerate(r.shares.items()):
        colour = REASON_COLOURS.get(reason, RED)
        figure.add_trace(
            go.Bar(
                x=x, y=_f32(100 * np.nan_to_num(share)), width=np.float32(r.bins.width_s / scale),
                name=REASONS[reason], hovertemplate="%{y:.2f} %",
                marker={"color": colour, "line": {"width": 0}, "pattern": {"shape": _PATTERNS[i], "size": 5}},
            )
        )  # fmt: skip
    peaks = {reason: int(np.nanargmax(share)) for reason, share in r.shares.items() if not np.isnan(share).all()}
    for reason, at in peaks.items():
        figure.add_annotation(
            x=float(x[at]), y=min(float(100 * total[at]), top), text=REASONS[reason], showarrow=False, yshift=9,
            font={"color": TEXT, "size": 12}, xanchor="auto",
        )  # fmt: skip
    _mark_warmup(figure, warmup_s / scale)
    return figure


# -- shared pieces -----------------------------------------------------------------------------------------------------


def clock(horizon_s: float) -> tuple[float, str]:
    """Seconds per unit of the time axis, and the unit."""
    if horizon_s <= 180:
        return 1.0, "seconds"
    return (60.0, "minutes") if horizon_s <= 3 * 3600 else (3600.0, "hours")


def nice_top(value: float) -> float:
    """The next round number at or above a value: where an axis may end, so that small changes don't move it."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(m for m in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if m * power >= value * (1 - 1e-9)) * power


def spread_apart(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Places for labels near the heights that they belong to, at least `gap` apart, from 0 to `top`."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = [min(max(heights[i], 0.0), top) for i in order]
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    for i in range(len(placed) - 1, -1, -1):
        ceiling = top if i == len(placed) - 1 else placed[i + 1] - gap
        placed[i] = min(placed[i], ceiling)
    result = [0.0] * len(heights)
    for place, i in zip(placed, order, strict=True):
        result[i] = place
    return result


def _figure(scale: float, unit: str, horizon_s: float, axis: str, top: float) -> go.Figure:
    """An empty chart over the whole horizon from zero to `top`."""
    end = horizon_s / scale
    figure = go.Figure()
    figure.update_layout(
        height=HEIGHT, showlegend=False, hovermode="x unified", uirevision="keep",
        margin={"l": 8, "r": _RIGHT_PX, "t": 10, "b": 0},
        xaxis={"range": [0.0, end], "title": {"text": unit}, "showgrid": False, "fixedrange": True, "hoverformat": ".3~g"},
        yaxis={"range": [0.0, top], "title": {"text": axis}, "rangemode": "tozero", "fixedrange": True, "nticks": 6},
    )  # fmt: skip
    return figure


def _line(
    x: NDArray[np.float32], y: NDArray[np.float32], colour: str, name: str,
    *, shape: str = "linear", dash: str = "solid", width: float = 1.8,
) -> go.Scatter:  # fmt: skip
    line = {"color": colour, "width": width, "dash": dash, "shape": shape}
    return go.Scatter(x=x, y=y, name=name, mode="lines", line=line, hovertemplate="%{y:.3~g}")


def _area(x: NDArray[np.float32], y: NDArray[np.float32], colour: str, opacity: float) -> go.Scatter:
    """The steps' area down to zero."""
    return go.Scatter(
        x=x, y=y, mode="lines", line={"width": 0, "shape": "hv"}, fill="tozeroy", fillcolor=_veil(colour, opacity),
        hoverinfo="skip",
    )  # fmt: skip


def _hidden(x: NDArray[np.float32], y: NDArray[np.float32], shape: str = "linear") -> go.Scatter:
    """The lower edge of a band."""
    return go.Scatter(x=x, y=y, mode="lines", line={"width": 0, "shape": shape}, hoverinfo="skip")


def _band(
    x: NDArray[np.float32], y: NDArray[np.float32], colour: str, name: str, opacity: float, *, shape: str = "linear"
) -> go.Scatter:
    """The upper edge of a band, filled down to the edge before it."""
    return go.Scatter(
        x=x, y=y, name=name, mode="lines", line={"width": 0, "shape": shape}, fill="tonexty",
        fillcolor=_veil(colour, opacity), hoverinfo="skip",
    )  # fmt: skip


def _veil(colour: str, opacity: float) -> str:
    """A colour that lets what is behind it through; the stand-in is replaced in front of the two digits."""
    return f"{colour}{round(255 * opacity):02x}"


def _label_ends(figure: go.Figure, labels: list[tuple[float, str, str]], top: float) -> None:
    """Names at the right end of the lines, moved apart where they would overlap."""
    places = spread_apart([height for height, _, _ in labels], _LABEL_PX / (HEIGHT - 75) * top, top)
    for (_, text, colour), place in zip(labels, places, strict=True):
        figure.add_annotation(
            x=1, xref="paper", y=place, text=text.replace(" ", NBSP), showarrow=False, xanchor="left", xshift=6,
            font={"color": colour, "size": 12},
        )  # fmt: skip


def _note(figure: go.Figure, text: str) -> None:
    figure.add_annotation(
        x=1, xref="paper", y=1, yref="paper", text=text, showarrow=False, xanchor="right", yanchor="top",
        font={"color": TEXT, "size": 12},
    )  # fmt: skip


def _mark_warmup(figure: go.Figure, end: float) -> None:
    """A veil over what isn't counted."""
    if end > 0:
        figure.add_vrect(x0=0, x1=end, fillcolor=TEXT, opacity=0.1, line_width=0, layer="below")


def _steps(
    start_s: NDArray[np.float64], width_s: float, y: NDArray[np.float64], horizon_s: float, scale: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Corners of a step line: each bin's start, and the last one's end."""
    if not y.size:
        return _f32(start_s), _f32(y)
    end = min(float(start_s[-1]) + width_s, horizon_s)
    return _f32(np.append(start_s, end) / scale), _f32(np.append(y, y[-1]))


def _top_of(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> float:
    seen = values[inside & ~np.isnan(values)]
    return float(seen.max(initial=0.0))


def _f32(values: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)
