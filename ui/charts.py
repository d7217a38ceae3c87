"""From facts to Plotly figures. Pure functions; colours come from the theme, by Streamlit's stand-ins for them.

A figure is drafted as plain dictionaries and made at once: setting the properties of a Plotly object one by one takes
ten times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from engine.outcome.course import Arrivals, Bins, Latencies, Refusals
from ui.words import NBSP, REASONS, digits, seconds

# The front end replaces these by the theme's chart colours and text, light or dark (see .streamlit/config.toml).
BLUE, ORANGE, GREEN, PURPLE, YELLOW, RED, TEXT = (f"#00000{i}" for i in range(1, 8))
INSIDE = {"size": 12, "color": "#000038"}
"""Text on a full colour: the page's own has the most contrast with it, light or dark."""
REASON_COLOURS = {"queue_full": ORANGE, "too_long": PURPLE, "rate_limited": YELLOW, "shed": GREEN, "codel": RED}
_ENDS = {
    "throttled": "held back", "rate_limited": "rate limit", "too_long": "too long", "timeout": "gave up",
    "ttft_timeout": "gave up early", "queue_timeout": "queue timeout", "codel": "waited long",
}  # fmt: skip
"""Reasons short enough for the right end of a chart."""
PATTERNS = ("", "/", "x", ".", "-", "+", "|")
"""A second code beside colour for stacked bars."""

CONFIG = {"displayModeBar": False, "responsive": True}
HEIGHT = 235
_LABEL_PX = 13.0
_RIGHT_PX = 88
_MANY_POWERS = 2.6
_FAR = 4.0
"""A capacity that is more times the highest arrivals is said, not drawn: the arrivals would be a flat line."""

Floats = NDArray[np.float64]
Line = NDArray[np.float32]


def arrivals_figure(a: Arrivals, horizon_s: float, warmup_s: float, pinned: Arrivals | None = None) -> go.Figure:
    """Step area of one run's arrivals, the fleet's capacity, and the part above it; of A only what differs."""
    scale, unit = clock(horizon_s)
    seen = ~np.isnan(a.rate_rps)
    x, y = steps(a.bins.start_s[seen], a.bins.width_s, a.rate_rps[seen], horizon_s, scale)
    high = highest([a.rate_rps] if pinned is None else [a.rate_rps, pinned.rate_rps])
    capacities = [_most_served(shown) for shown in (a, pinned) if shown is not None]
    near = [rate for rate in capacities if not high or rate <= _FAR * high]
    top = nice_top(max([high, *near, min(capacities[0], _FAR * high if high else math.inf)]) * 1.08)
    draft = Draft(horizon_s / scale, unit, "requests per second", top, warmup_s / scale)
    draft.area(x, y, BLUE)
    draft.line(x, y, BLUE, "arrivals", shape="hv")
    draft.label(float(y[-1]) if y.size else 0.0, "arrivals", BLUE)
    if a.capacity_course_rps is not None:
        _moving_capacity(draft, a, seen, y, horizon_s, scale)
    elif a.capacity_rps is not None and a.capacity_rps <= top:
        capacity = np.full(x.size, a.capacity_rps, np.float32)
        draft.band(x, capacity, np.maximum(y, capacity), ORANGE, 0.45, shape="hv")
        draft.level(a.capacity_rps, "can be served", f"can serve {digits(a.capacity_rps, 2)}", TEXT)
    elif a.capacity_rps is not None:
        draft.note(f"can serve {digits(a.capacity_rps, 2)}, far above ↑")
    if pinned is not None:
        _pinned_arrivals(draft, a, pinned, horizon_s, scale)
    return draft.figure()


def _most_served(a: Arrivals) -> float:
    """The highest that can be served at any time."""
    return highest([a.capacity_course_rps]) if a.capacity_course_rps is not None else a.capacity_rps or 0.0


def _moving_capacity(
    draft: Draft, a: Arrivals, seen: NDArray[np.bool_], arrivals: Line, horizon_s: float, scale: float
) -> None:
    """What the replicas that are ready can serve, where an autoscaler changes their number."""
    assert a.capacity_course_rps is not None
    x, can = steps(a.bins.start_s[seen], a.bins.width_s, a.capacity_course_rps[seen], horizon_s, scale)
    draft.band(x, can, np.maximum(arrivals, can), ORANGE, 0.45, shape="hv")
    draft.line(x, can, TEXT, "can be served", shape="hv", dash="dash", width=1.6)
    if can.size:
        draft.label(float(can[-1]), f"can serve {digits(float(can[-1]), 2)}", TEXT)


def _pinned_arrivals(draft: Draft, a: Arrivals, pinned: Arrivals, horizon_s: float, scale: float) -> None:
    if not np.array_equal(a.rate_rps, pinned.rate_rps, equal_nan=True):
        seen = ~np.isnan(pinned.rate_rps)
        x, y = steps(pinned.bins.start_s[seen], pinned.bins.width_s, pinned.rate_rps[seen], horizon_s, scale)
        draft.ghost(x, y, BLUE, "A arrivals", shape="hv")
    rate = pinned.capacity_rps
    if rate is not None and rate != a.capacity_rps and rate <= draft.top:
        ends = np.array([0.0, draft.end], np.float32)
        draft.ghost(ends, np.full(2, rate, np.float32), TEXT, "A can serve", f"A can serve {digits(rate, 2)}")


def latency_figure(
    c: Latencies,
    horizon_s: float,
    warmup_s: float,
    axis: str,
    threshold_s: float | None,
    pinned: Latencies | None = None,
) -> go.Figure:
    """p50, p95 and p99 by time of arrival with 95 % bands, the promise, and A's p95."""
    scale, unit = clock(horizon_s)
    x = middles(c.bins, scale)
    counted = [c.figures["p99"][c.bins.start_s >= warmup_s]]
    counted += [] if pinned is None else [pinned.figures["p95"][pinned.bins.start_s >= warmup_s]]
    high = max(highest(counted), threshold_s or 0.0) * 1.05
    per, word = (1.0, "s") if nice_top(high) >= 1.0 else (1000.0, "ms")
    top = nice_top(high * per)
    draft = Draft(horizon_s / scale, unit, f"{axis}, {word}", top, warmup_s / scale)
    style = {"p99": (PURPLE, "dot", 1.6), "p95": (ORANGE, "solid", 2.4), "p50": (BLUE, "solid", 1.8)}
    for name, (colour, dash, width) in style.items():
        known = ~np.isnan(c.high[name])
        if known.any() and (pinned is None or name == "p95"):  # with A, one band is enough to tell noise from change
            up = np.minimum(c.high[name][known] * per, top)
            draft.band(x[known], f32(c.low[name][known] * per), f32(up), colour, 0.16)
        values = c.figures[name] * per
        draft.line(x, f32(values), colour, name, dash=dash, width=width)
        last = values[~np.isnan(values)]
        if last.size:
            draft.label(float(last[-1]), name, colour)
    if threshold_s is not None and threshold_s * per <= top:
        draft.level(threshold_s * per, "promise", f"promise {seconds(threshold_s)}", GREEN)
    if pinned is not None and not np.isnan(pinned.figures["p95"]).all():
        draft.ghost(middles(pinned.bins, scale), f32(pinned.figures["p95"] * per), ORANGE, "A p95")
    return draft.figure()


def refusals_figure(r: Refusals, horizon_s: float, warmup_s: float, pinned: Refusals | None = None) -> go.Figure:
    """Shares of arrivals that were turned away, by reason, stacked, and A's total."""
    scale, unit = clock(horizon_s)
    x = middles(r.bins, scale)
    shares = {reason: 100 * np.nan_to_num(share) for reason, share in r.shares.items()}
    total, then = _total(r), None if pinned is None else _total(pinned)
    top = min(100.0, nice_top(highest([total] if then is None else [total, then]) * 1.05))
    draft = Draft(horizon_s / scale, unit, "turned away, % of arrivals", top, warmup_s / scale)
    below = np.zeros(x.size)
    for i, (reason, share) in enumerate(shares.items()):
        colour = REASON_COLOURS.get(reason, RED)
        draft.bars(x, f32(share), r.bins.width_s / scale, colour, REASONS[reason], PATTERNS[i % len(PATTERNS)])
        draft.label(float((below + share / 2).mean()), _ENDS.get(reason, REASONS[reason]), colour)
        below = below + share
    if pinned is not None and then is not None:
        draft.ghost(middles(pinned.bins, scale), f32(then), TEXT, "A")
    return draft.figure()


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


def log_ticks(low: float, high: float) -> dict[str, Any]:
    """Ticks of an axis with powers of ten, from 10^low to 10^high, written out: 1, 2 and 5 of each power; the powers
    alone where there are many."""
    powers, steps = range(math.floor(low), math.ceil(high) + 1), (1, 2, 5) if high - low < _MANY_POWERS else (1,)
    found = [m * 10.0**p for p in powers for m in steps if low <= math.log10(m * 10.0**p) <= high]
    return {"type": "log", "tickvals": found, "ticktext": [digits(value) for value in found]}


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


class Draft:
    """A chart over time from zero to `top`, with names at the right end of its lines."""

    def __init__(self, end: float, unit: str, axis: str, top: float, warmup: float) -> None:
        self.end, self.unit, self.axis, self.top, self.warmup = end, unit, axis, top, warmup
        self.traces: list[dict[str, Any]] = []
        self.labels: list[tuple[float, str, str]] = []
        self.annotations: list[dict[str, Any]] = []

    def line(
        self, x: Line, y: Line, colour: str, name: str, shape: str = "linear", dash: str = "solid", width: float = 1.8
    ) -> None:
        """A line that the pointer reads."""
        line = {"color": colour, "width": width, "dash": dash, "shape": shape}
        style = {"mode": "lines", "line": line, "hovertemplate": "%{y:.3~g}"}
        self.traces.append({"type": "scatter", "x": x, "y": y, "name": name} | style)

    def ghost(self, x: Line, y: Line, colour: str, name: str, text: str = "", shape: str = "linear") -> None:
        """A line of what is compared with: dashed and pale."""
        self.line(x, y, veil(colour, 0.6), name, shape=shape, dash="6px,4px", width=1.6)
        known = y[~np.isnan(y)]
        if known.size:
            self.label(float(known[-1]), text or name, colour)

    def level(self, height: float, name: str, text: str, colour: str) -> None:
        """A dashed line across at one height."""
        ends = np.array([0.0, self.end], np.float32)
        self.line(ends, np.full(2, height, np.float32), colour, name, dash="dash", width=1.6)
        self.label(height, text, colour)

    def area(self, x: Line, y: Line, colour: str) -> None:
        """The area under steps."""
        self._filled(x, y, "hv", fill="tozeroy", fillcolor=veil(colour, 0.13))

    def band(self, x: Line, low: Line, high: Line, colour: str, opacity: float, shape: str = "linear") -> None:
        """The area between two lines."""
        self._filled(x, low, shape)
        self._filled(x, high, shape, fill="tonexty", fillcolor=veil(colour, opacity))

    def bars(self, x: Line, y: Line, width: float, colour: str, name: str, pattern: str) -> None:
        """Bars stacked on those before."""
        marker = {"color": colour, "line": {"width": 0}, "pattern": {"shape": pattern, "size": 5}}
        style = {"width": width, "marker": marker, "hovertemplate": "%{y:.2f} %"}
        self.traces.append({"type": "bar", "x": x, "y": y, "name": name} | style)

    def label(self, height: float, text: str, colour: str) -> None:
        """A name at the right end, at this height or near it."""
        self.labels.append((height, text, colour))

    def note(self, text: str) -> None:
        """A remark in the upper right corner."""
        corner = {"x": 1, "xref": "paper", "y": 1, "yref": "paper", "xanchor": "right", "yanchor": "top"}
        self.annotations.append(corner | {"text": text, "showarrow": False, "font": {"color": TEXT, "size": 12}})

    def figure(self) -> go.Figure:
        """The finished chart."""
        both = {"fixedrange": True, "tickfont": {"color": TEXT}}
        along = {"range": [0.0, self.end], "title": axis_title(self.unit), "showgrid": False, "hoverformat": ".3~g"}
        up = {"range": [0.0, self.top], "title": axis_title(self.axis), "rangemode": "tozero", "nticks": 6}
        layout = {
            "height": HEIGHT, "showlegend": False, "hovermode": "x unified", "uirevision": "keep",
            "barmode": "stack", "bargap": 0,
            "margin": {"l": 8, "r": _RIGHT_PX, "t": 10, "b": 0},
            "xaxis": both | along,
            "yaxis": both | up,
            "annotations": self.annotations + self._placed_labels(),
            "shapes": self._veiled_warmup(),
        }  # fmt: skip
        return go.Figure(data=self.traces, layout=layout)

    def _filled(self, x: Line, y: Line, shape: str, **fill: str) -> None:
        line = {"width": 0, "shape": shape}
        self.traces.append(
            {"type": "scatter", "x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip"} | fill
        )

    def _placed_labels(self) -> list[dict[str, Any]]:
        places = spread_apart([height for height, _, _ in self.labels], _LABEL_PX / (HEIGHT - 75) * self.top, self.top)
        right = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "showarrow": False}
        return [
            right | {"y": place, "text": text.replace(" ", NBSP), "font": {"color": colour, "size": 12}}
            for (_, text, colour), place in zip(self.labels, places, strict=True)
        ]

    def _veiled_warmup(self) -> list[dict[str, Any]]:
        """What isn't counted."""
        if self.warmup <= 0:
            return []
        box = {"type": "rect", "x0": 0, "x1": self.warmup, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
        return [box | {"fillcolor": TEXT, "opacity": 0.1, "line": {"width": 0}}]


def veil(colour: str, opacity: float) -> str:
    """A colour that lets what is behind it through; the stand-in is replaced in front of the two digits."""
    return f"{colour}{round(255 * opacity):02x}"


def axis_title(text: str) -> dict[str, Any]:
    """An axis's name in the theme's text colour."""
    return {"text": text, "font": {"color": TEXT}}


def steps(start_s: Floats, width_s: float, y: Floats, horizon_s: float, scale: float) -> tuple[Line, Line]:
    """Corners of a step line: each bin's start, and the last one's end."""
    if not y.size:
        return f32(start_s), f32(y)
    end = min(float(start_s[-1]) + width_s, horizon_s)
    return f32(np.append(start_s, end) / scale), f32(np.append(y, y[-1]))


def middles(bins: Bins, scale: float) -> Line:
    """The middle of each bin."""
    return f32((bins.start_s + bins.width_s / 2) / scale)


def highest(lines: Sequence[Floats]) -> float:
    """The highest value of several lines, 0 without any."""
    return max((float(np.nan_to_num(line).max(initial=0.0)) for line in lines), default=0.0)


def _total(r: Refusals) -> Floats:
    """All reasons together, %."""
    parts = [100 * np.nan_to_num(share) for share in r.shares.values()]
    return np.sum(parts, axis=0) if parts else np.zeros(r.bins.start_s.size)


def f32(values: Floats) -> Line:
    """Half the bytes, and more digits than a screen has pixels."""
    return np.asarray(values, np.float32)
