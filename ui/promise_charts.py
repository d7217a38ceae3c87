"""The promise page's figures. Pure functions, in the idiom of `charts`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from engine.outcome.promises import Terms
from engine.outcome.promises.budget import Budget
from engine.outcome.promises.burn_rate import RULES, exhausted_after
from engine.outcome.promises.histogram_quantile import Read
from engine.outcome.promises.rescore import Choice
from engine.outcome.promises.threshold import Curve, promisable
from engine.study import Fewest
from ui import axes
from ui.axes import Json
from ui.charts import (
    BLUE,
    GREEN,
    HEIGHT,
    ORANGE,
    PURPLE,
    TEXT,
    axis_title,
    clock,
    f32,
    nice_top,
    veil,
)
from ui.promise_words import choice_word
from ui.words import METRICS, NBSP, percent, seconds

_ROW_PX = 25
_AXIS_PX = 62
_LABEL_PX = 15
_NAME = 0.28
"""Share of the axis that the name of a rule takes on a telephone."""
_DASHES = ("dash", "dot", "dashdot")


def curve_figure(t: Terms, pinned: Curve | None = None) -> go.Figure:
    """Share in time, and of windows that keep the promise, against the threshold, log; the target across, the promise
    and the strictest as rules."""
    c, o = t.curve, t.objective
    assert c is not None
    x, y = f32(c.threshold_s), f32(100 * c.share)
    data = [*axes.band(x, f32(100 * c.low), f32(100 * c.high), BLUE), axes.line(x, y, BLUE, "in time", width=2.4)]
    labels = [(float(y[-1]), "in time", BLUE), (100 * o.target, f"target {percent(o.target)}", TEXT)]
    low, high = float(x[0]), float(x[-1])
    if t.windows_curve is not None:
        kept = f32(100 * t.windows_curve.share)
        data.append(axes.line(f32(t.windows_curve.threshold_s), kept, PURPLE, "windows kept", "dot"))
        labels.append((float(kept[-1]), "windows kept", PURPLE))
    across = np.full(2, 100 * o.target, np.float32)
    data.append(axes.line(np.array([low, high], np.float32), across, TEXT, "target", "dash", 1.6))
    if pinned is not None:
        inside = (pinned.threshold_s >= low) & (pinned.threshold_s <= high)
        if inside.any():
            other = f32(100 * pinned.share[inside])
            data.append(axes.line(f32(pinned.threshold_s[inside]), other, veil(BLUE, 0.6), "A", "6px,4px", 1.6))
            labels.append((float(other[-1]), "A", BLUE))
    rules = [(o.threshold_s, f"promised {seconds(o.threshold_s)}", ORANGE, "solid")]
    if t.strictest.threshold_s is not None:
        strictest = promisable(t.strictest.threshold_s)
        rules.append((strictest, f"kept {seconds(strictest)}", GREEN, "dot"))
    axis = f"{METRICS[o.metric][0]} ({METRICS[o.metric][1]}), log scale"
    shapes, notes = _rules([rule for rule in rules if low <= rule[0] <= high], low, high)
    lowest = min(float(np.nanmin(line["y"])) for line in data if line.get("name") in ("in time", "windows kept"))
    bottom = max(0.0, 10.0 * math.floor(min(lowest, 100 * o.target - 5) / 10))
    layout = axes.layout(HEIGHT + 40, (bottom, 100.5), "in time, %; windows kept, %", labels)
    layout["xaxis"] |= {"type": "log", "range": [math.log10(low), math.log10(high)], "title": axis_title(axis)}
    layout["xaxis"] |= axes.log_ticks(low, high)
    layout["shapes"], layout["annotations"] = shapes, layout["annotations"] + notes
    return go.Figure(data=data, layout=layout)


def _rules(found: Sequence[tuple[float, str, str, str]], low: float, high: float) -> tuple[list[Json], list[Json]]:
    """Upright lines on an axis from `low` to `high`, by ratio, with their names at the foot: the left one's to its
    left where there is room, else at the head."""
    shapes, notes = [], []
    order = sorted(found)
    room = len(order) > 1 and math.log(order[0][0] / low) > _NAME * math.log(high / low)
    for i, (at, text, colour, dash) in enumerate(order):
        line = {"color": colour, "width": 1.8, "dash": dash}
        shapes.append({"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line})
        left = i == 0 and room
        head = i == 0 and len(order) > 1 and not room
        side = {"xanchor": "right" if left else "left", "xshift": -4 if left else 4}
        place = {"x": math.log10(at), "y": 0.8 if head else 0.02, "yref": "paper", "yanchor": "bottom"}
        words = {"text": text.replace(" ", NBSP), "font": {"color": colour, "size": 12}, "showarrow": False}
        notes.append(place | side | words)
    return shapes, notes


def choices_figure(t: Terms) -> go.Figure:
    """A dot a choice, in groups; the present one filled and larger, intervals as bars, the target as a rule.

    The axis spans what place, failures and thresholds do; what lies further left is an arrow at its edge.
    """
    found = [c for c in t.choices if c.share is not None]
    shares = np.array([100 * (c.share or 0.0) for c in found])
    ends = np.array([[100 * e for e in (c.ci95 or (c.share or 0.0,) * 2)] for c in found])
    low = _left_edge(found, 100 * t.objective.target)
    off = shares < low
    at, ends = np.maximum(shares, low), np.maximum(ends, low)
    rows = np.arange(len(found), dtype=np.float32)
    kinds = zip(off.tolist(), (c.chosen for c in found), strict=True)
    marker = {
        "color": [ORANGE if c.chosen else BLUE for c in found],
        "symbol": ["triangle-left" if out else "diamond" if mine else "circle-open" for out, mine in kinds],
        "size": [11 if c.chosen else 9 for c in found],
        "line": {"width": 2},
    }
    bars = {
        "type": "data", "symmetric": False, "array": f32(ends[:, 1] - at), "arrayminus": f32(at - ends[:, 0]),
        "color": TEXT, "thickness": 1, "width": 0,
    }  # fmt: skip
    dots = {
        "type": "scatter", "x": f32(at), "y": rows, "mode": "markers", "marker": marker, "error_x": bars,
        "name": "in time", "customdata": f32(shares), "hovertemplate": "%{customdata:.2f} %<extra></extra>",
        "cliponaxis": False,
    }  # fmt: skip
    layout = axes.layout(_AXIS_PX + _ROW_PX * len(found), None, "", [])
    words = [choice_word(c, t.objective).replace(" ", NBSP) for c in found]
    layout["yaxis"] |= {"range": [len(found) - 0.5, -0.5], "tickvals": rows, "ticktext": words, "showgrid": False}
    layout["yaxis"] |= {"title": None, "zeroline": False}
    layout["xaxis"] |= {"range": [low, 100.0], "title": axis_title("in time, % (of windows: kept)"), "nticks": 6}
    layout["xaxis"] |= {"showgrid": True, "zeroline": False}
    layout["shapes"] = [_upright(100 * t.objective.target), *_between_groups(found)]
    layout["annotations"] = [_number(c, row) for row, c in enumerate(found)]
    layout["margin"] = {"l": 8, "r": 66, "t": 6, "b": 0}
    return go.Figure(data=[dots], layout=layout)


def _number(c: Choice, row: int) -> Json:
    """A choice's share at the right end of its row."""
    share = percent(c.share or 0.0)
    return {
        "x": 1, "xref": "paper", "xanchor": "left", "xshift": 10, "y": row, "showarrow": False,
        "text": f"<b>{share}</b>" if c.chosen else share, "font": {"color": ORANGE if c.chosen else TEXT, "size": 12},
    }  # fmt: skip


def _left_edge(found: Sequence[Choice], target: float) -> float:
    """Where the axis begins, %: a round figure below what one promise can be made of one run."""
    near = [100 * (c.share or 0.0) for c in found if c.part in ("now", "place", "failures", "threshold")]
    room = 100.0 - min(*near, target)
    return max(0.0, 100.0 - nice_top(1.15 * max(room, 2.0)))


def _upright(x: float) -> Json:
    line = {"color": TEXT, "width": 1.6, "dash": "dash"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _between_groups(found: Sequence[Choice]) -> list[Json]:
    """Thin lines between the parts that are chosen."""
    line = {"color": veil(TEXT, 0.3), "width": 1}
    across = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "line": line, "layer": "below"}
    rows = [i + 0.5 for i, (a, b) in enumerate(pairwise(found)) if a.part != b.part]
    return [across | {"y0": row, "y1": row} for row in rows]


def budget_figure(b: Budget, horizon_s: float, warmup_s: float) -> go.Figure:
    """What is left of the budget: mean and worst run, and how it goes at the alerts' burn rates."""
    scale, unit = clock(horizon_s)
    x = f32(b.time_s / scale)
    left, worst = f32(100 * b.left), f32(100 * b.worst)
    bottom = min(float(left.min()), float(worst.min()), 100.0 - 4.0)
    floor = -nice_top(-bottom) if bottom < 0 else 100.0 - nice_top(100.0 - bottom)
    several = not np.array_equal(left, worst)
    name = "all runs" if several else "left"
    data = [axes.line(x, left, BLUE, name, width=2.4, shape="hv")]
    labels = [(float(left[-1]), name, BLUE)]
    if several:
        data.append(axes.line(x, worst, PURPLE, "worst run", "dot"))
        labels.append((float(worst[-1]), "worst run", PURPLE))
    end = min(float(b.time_s[-1]), b.from_s + b.window_s)
    inside: list[tuple[float, float, str]] = []
    for rule, dash in zip(RULES, _DASHES, strict=True):
        gone = exhausted_after(rule.burn, b.window_s)
        until = min(end, b.from_s + gone * (100.0 - floor) / 100.0)
        height = 100.0 * (1.0 - (until - b.from_s) / gone)
        ends = f32(np.array([b.from_s, until]) / scale)
        name = f"burn {rule.burn:g}"
        data.append(axes.line(ends, np.array([100.0, height], np.float32), veil(TEXT, 0.7), name, dash, 1.2))
        if until >= end and end == float(b.time_s[-1]):
            labels.append((height, name, TEXT))
        else:
            inside.append((float(ends[-1]), height, name))
    layout = axes.layout(HEIGHT + 20, (floor, 100.0 + (100.0 - floor) * 0.04), "error budget left, %", labels)
    layout["xaxis"] |= {"range": [0.0, horizon_s / scale], "title": axis_title(unit), "hoverformat": ".3~g"}
    layout["annotations"] += _at_the_ends(inside, 100.0 - floor)
    if warmup_s > 0:
        box = {"type": "rect", "x0": 0, "x1": warmup_s / scale, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
        layout["shapes"] = [box | {"fillcolor": TEXT, "opacity": 0.1, "line": {"width": 0}}]
    return go.Figure(data=data, layout=layout)


def _at_the_ends(found: Sequence[tuple[float, float, str]], height: float) -> list[Json]:
    """Names at lines' ends (x, y) inside a chart so high; of those that end as low each is above the next."""
    beside = {"showarrow": False, "xanchor": "left", "yanchor": "bottom", "xshift": 3}
    notes: list[Json] = []
    for i, (x, y, name) in enumerate(found):
        below = sum(abs(y - other) < 0.1 * height for _, other, _ in found[i + 1 :])
        words = {"text": name.replace(" ", NBSP), "font": {"color": TEXT, "size": 11}}
        notes.append(beside | words | {"x": x, "y": y, "yshift": _LABEL_PX * below})
    return notes


def histogram_figure(t: Terms) -> go.Figure:
    """A row a percentile: the bucket as a bar, what it is, and what is read from it; log."""
    top = max(read.bucket_s[1] if math.isfinite(read.bucket_s[1]) else read.true_s for read in t.readings)
    names = [f"p{read.q * 100:g}" for read in t.readings]
    low = min(max(read.bucket_s[0], read.true_s / 10) for read in t.readings) * 0.8
    data = [_bucket(name, read, low, top * 1.2) for name, read in zip(names, t.readings, strict=True)]
    kinds = (("true", "true_s", "circle", GREEN), ("read", "read_s", "diamond-open", ORANGE))
    for label, field, symbol, colour in kinds:
        marker = {"symbol": symbol, "color": colour, "size": 11, "line": {"width": 2}}
        at = f32(np.array([getattr(read, field) for read in t.readings]))
        style = {"mode": "markers", "marker": marker, "hovertemplate": "%{x:.3~g} s", "showlegend": True}
        data.append({"type": "scatter", "x": at, "y": names, "name": label} | style)
    layout = axes.layout(_AXIS_PX + 34 + 30 * len(names), None, "", [])
    layout["yaxis"] |= {"type": "category", "autorange": "reversed", "title": None}
    layout["xaxis"] |= {"type": "log", "range": [math.log10(low), math.log10(top * 1.2)]}
    layout["xaxis"] |= {"title": axis_title("seconds, log scale; bars are buckets"), **axes.log_ticks(low, top * 1.2)}
    layout["showlegend"] = True
    layout["legend"] = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"color": TEXT}}
    layout["margin"] = {"l": 8, "r": 16, "t": 6, "b": 0}
    return go.Figure(data=data, layout=layout)


def _bucket(name: str, read: Read, low: float, high: float) -> Json:
    """A bucket as a bar, as far as it is on the axis."""
    ends = np.array([max(read.bucket_s[0], low), min(read.bucket_s[1], high)], np.float32)
    bar = {"color": veil(BLUE, 0.25), "width": 11}
    style = {"mode": "lines", "line": bar, "hoverinfo": "skip", "showlegend": False}
    return {"type": "scatter", "x": ends, "y": [name] * 2} | style


def fewest_figure(found: Fewest) -> go.Figure:
    """Share in time by number of replicas, with intervals; the target across, the answer filled."""
    trials = found.trials
    x = np.array([trial.replicas for trial in trials], np.float32)
    y = np.array([100 * trial.attainment for trial in trials])
    ends = np.array([[100 * e for e in (trial.ci95 or (trial.attainment,) * 2)] for trial in trials])
    answer = [trial.replicas == found.replicas for trial in trials]
    bars = {
        "type": "data", "symmetric": False, "array": f32(ends[:, 1] - y), "arrayminus": f32(y - ends[:, 0]),
        "color": TEXT, "thickness": 1,
    }  # fmt: skip
    marker = {
        "color": [GREEN if mine else BLUE for mine in answer], "size": [12 if mine else 9 for mine in answer],
        "symbol": ["diamond" if mine else "circle-open" for mine in answer], "line": {"width": 2},
    }  # fmt: skip
    dots = {
        "type": "scatter", "x": x, "y": f32(y), "mode": "markers", "marker": marker, "error_y": bars,
        "cliponaxis": False, "name": "in time", "hovertemplate": "%{x} replicas: %{y:.2f} %<extra></extra>",
    }  # fmt: skip
    low, high = float(x.min()) - 0.6, float(x.max()) + 0.6
    across = axes.line(
        np.array([low, high], np.float32), np.full(2, 100 * found.target, np.float32), TEXT, "target", "dash"
    )
    layout = axes.layout(
        HEIGHT, (0.0, 102.0), "in time, %", [(100 * found.target, f"target {percent(found.target)}", TEXT)]
    )
    layout["xaxis"] |= {"range": [low, high], "title": axis_title("replicas"), "tickvals": x}
    return go.Figure(data=[dots, across], layout=layout)
