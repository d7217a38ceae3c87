"""The traffic page's figures. Pure functions, in the idiom of `charts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.outcome import SHARES, Arriving, Joint, Lengths
from engine.study import Sized, SizedFleet
from engine.traffic import WIDTHS_S, Clumps, Fit, FittedLength, real_traffic
from ui.charts import (
    BLUE,
    GREEN,
    INSIDE,
    ORANGE,
    PURPLE,
    RED,
    TEXT,
    Draft,
    axis_title,
    clock,
    f32,
    highest,
    nice_top,
    steps,
    veil,
)
from ui.panels import Layout, Panels
from ui.traffic_words import BRIEF, NAMES, SLICES, fleet_name
from ui.words import digits, percent, seconds

_CLUMPS = Layout(
    panels=((0.0, 1.0),),
    titles=("",),
    axis="variance over mean of counts (log)",
    height_px=300,
    right_px=112,
    top_px=12,
    log=True,
    logs=frozenset({0}),
)
_SHORT = {"azure-code": "Azure code", "azure-chat": "Azure chat", "kimi": "Kimi chat"}
_REAL = {"azure-code": (RED, "dot", "square"), "azure-chat": (GREEN, "dash", "diamond"),
         "kimi": (PURPLE, "dashdot", "triangle-up")}  # fmt: skip
_FITTED = {"poisson": (TEXT, "dash", "x"), "gamma": (ORANGE, "dot", "square"), "mmpp": (PURPLE, "dashdot", "diamond")}
_LENGTHS_PX = 300
_RAREST = 0.001
_MARGIN = 1.15
"""Left and right of the first and the last point, by ratio."""
_FAR = 4.0
"""A capacity that is more times the highest arrivals is said, not drawn."""


def arrivals_figure(
    a: Arriving, fleet_rps: float | None, horizon_s: float, warmup_s: float, pinned: Arriving | None = None
) -> go.Figure:
    """Arrivals of the first run by the second and by the minute, their average, and what can be served."""
    scale, unit = clock(horizon_s)
    x, fine = steps(a.seconds.start_s, a.seconds.width_s, a.second_rps, horizon_s, scale)
    at, coarse = steps(a.slices.start_s, a.slices.width_s, a.slice_rps, horizon_s, scale)
    high = highest([a.second_rps, a.slice_rps])
    near = fleet_rps if fleet_rps is not None and fleet_rps <= _FAR * high else 0.0
    draft = Draft(horizon_s / scale, unit, "requests per second", nice_top(1.05 * max(high, near)), warmup_s / scale)
    draft.area(x, fine, BLUE)
    draft.line(x, fine, veil(BLUE, 0.55), "in a second", shape="hv", width=0.8)
    draft.label(float(np.median(fine)) if fine.size else 0.0, "by second", BLUE)
    if fleet_rps is not None and near:
        can = np.full(at.size, fleet_rps, np.float32)
        draft.band(at, can, np.maximum(coarse, can), RED, 0.45, shape="hv")
    word = BRIEF[a.slices.width_s]
    if a.slices.width_s > a.seconds.width_s:
        draft.line(at, coarse, ORANGE, f"by {word}", shape="hv", width=2.6)
        draft.label(float(coarse[-1]) if coarse.size else 0.0, f"by {word}", ORANGE)
    draft.level(a.clumps.rate_rps, "average", f"average {digits(a.clumps.rate_rps, 2)}", GREEN)
    if near:
        draft.level(near, "can be served", f"can serve {digits(near, 2)}", TEXT)
    elif fleet_rps is not None:
        draft.note(f"can serve {digits(fleet_rps, 2)}, far above ↑")
    if pinned is not None and not np.array_equal(pinned.slice_rps, a.slice_rps):
        then = steps(pinned.slices.start_s, pinned.slices.width_s, pinned.slice_rps, horizon_s, scale)
        draft.ghost(*then, ORANGE, "A by minute", shape="hv")
    return draft.figure()


def clumps_figure(c: Clumps, pinned: Clumps | None = None) -> go.Figure:
    """Index of dispersion by window: this scenario, real services, and independent arrivals."""
    draft = Panels(
        _CLUMPS, WIDTHS_S[-1] * _MARGIN, "window in which arrivals are counted, s (log)", WIDTHS_S[0] / _MARGIN
    )
    draft.line(0, f32(np.array(WIDTHS_S)), np.ones(len(WIDTHS_S), np.float32), TEXT, "independent", "dash")
    for real in real_traffic():
        colour, dash, symbol = _REAL[real.name]
        draft.line(0, *_course(real.dispersion), veil(colour, 0.8), _SHORT[real.name], dash, symbol=symbol)
    if pinned is not None and pinned.dispersion != c.dispersion:
        draft.line(0, *_course(pinned.dispersion), veil(BLUE, 0.6), "A", "6px,4px", symbol="circle-open")
    draft.line(0, *_course(c.dispersion), BLUE, "here", "solid", text="<b>here</b>", symbol="circle")
    shown = [real.dispersion for real in real_traffic()] + [c.dispersion] + ([pinned.dispersion] if pinned else [])
    return draft.figure((_ends(shown),), tickvals=list(WIDTHS_S), ticktext=[f"{w:g}" for w in WIDTHS_S])


def fit_figure(f: Fit) -> go.Figure:
    """The trace's dispersions, and what each fitted process has in draws of the same length."""
    draft = Panels(
        _CLUMPS, WIDTHS_S[-1] * _MARGIN, "window in which arrivals are counted, s (log)", WIDTHS_S[0] / _MARGIN
    )
    for candidate in f.candidates:
        colour, dash, symbol = _FITTED[candidate.process]
        name = NAMES[candidate.process]
        draft.line(0, *_course(candidate.clumps.dispersion), colour, name, dash, symbol=symbol)
    draft.line(0, *_course(f.measured.dispersion), BLUE, "trace", "solid", text="<b>trace</b>", symbol="circle")
    shown = [f.measured.dispersion, *(candidate.clumps.dispersion for candidate in f.candidates)]
    return draft.figure((_ends(shown),), tickvals=list(WIDTHS_S), ticktext=[f"{w:g}" for w in WIDTHS_S])


def _course(dispersion: dict[float, float | None]) -> tuple[Any, Any]:
    """Windows and values; those that aren't known, or are 0 and have no place on a log axis, are left out."""
    known = [(width, value) for width, value in dispersion.items() if value]
    return f32(np.array([w for w, _ in known], np.float64)), f32(np.array([v for _, v in known], np.float64))


def _ends(shown: Sequence[dict[float, float | None]]) -> tuple[float, float]:
    values = [value for one in shown for value in one.values() if value] + [1.0]
    return min(values) / 1.6, max(values) * 1.6


_CROSSES = 25.0
"""A bar that ends less than so many percent before the target has its text inside: the rule would cross it outside."""


def sized_figure(z: Sized, target: float | None) -> go.Figure:
    """How those fare who come in the worst minute, and all; for a fleet sized for the average and for that minute."""
    fleets: list[tuple[SizedFleet, str]] = [(z.average, "average")]
    word = f"worst {SLICES[z.slice_s]}"
    if z.worst.replicas != z.average.replicas:
        fleets.append((z.worst, word))
    promised = z.average.kept is not None
    names = [fleet_name(fleet, what) for fleet, what in fleets]
    looks = (("all", BLUE, ""), (word, ORANGE, "/"))
    data = []
    for name, colour, pattern in looks:
        values = [_fared(fleet, promised, name != "all") for fleet, _ in fleets]
        goal = 100 * target if promised and target is not None else 0.0
        places = ["inside" if goal - _CROSSES <= (v or 0.0) < goal else "outside" for v in values]
        data.append(
            {
                "type": "bar", "orientation": "h", "y": names, "x": f32(np.array([v or 0.0 for v in values])),
                "name": name, "textposition": places, "cliponaxis": False, "outsidetextfont": {"color": TEXT},
                "insidetextanchor": "end", "insidetextfont": INSIDE, "textangle": 0, "constraintext": "none",
                "text": [f"{name}: {_said(value, promised)}" for value in values], "hoverinfo": "skip",
                "marker": {"color": colour, "line": {"width": 0},
                           "pattern": {"shape": pattern, "size": 6, "solidity": 0.15, "fillmode": "overlay"}},
            }
        )  # fmt: skip
    end = 100.0 if promised else nice_top(max((float(np.max(bar["x"])) for bar in data), default=1.0))  # type: ignore[call-overload]
    title = "kept the promise, %" if promised else "95th percentile, s"
    layout: dict[str, Any] = {
        "height": 80 + 65 * len(fleets), "barmode": "group", "bargap": 0.25, "showlegend": False, "hovermode": False,
        "margin": {"l": 8, "r": 8, "t": 18, "b": 0}, "uirevision": "keep",
        "xaxis": {"range": [0, end * 1.55], "title": axis_title(title), "fixedrange": True, "showgrid": False,
                  "tickfont": {"color": TEXT}, "tickvals": [0, 25, 50, 75, 100] if promised else None},
        "yaxis": {"autorange": "reversed", "fixedrange": True, "tickfont": {"color": TEXT}, "automargin": True},
    }  # fmt: skip
    if promised and target is not None:
        rule = {"type": "line", "x0": 100 * target, "x1": 100 * target, "y0": 0, "y1": 1, "yref": "paper"}
        layout["shapes"] = [rule | {"line": {"color": GREEN, "width": 1.4, "dash": "dash"}}]
        layout["annotations"] = [
            {"x": 100 * target, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False,
             "text": f"target {percent(target)}", "font": {"color": GREEN, "size": 12}}
        ]  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _fared(fleet: SizedFleet, promised: bool, worst: bool) -> float | None:
    if promised:
        share = fleet.kept_worst if worst else fleet.kept
        return None if share is None else 100 * share
    return fleet.p95_worst_s if worst else fleet.p95_s


def _said(value: float | None, promised: bool) -> str:
    if value is None:
        return "nobody"
    return percent(value / 100, 2) if promised else seconds(value)


def lengths_figure(
    prompt: Lengths, output: Lengths, fitted: tuple[FittedLength, FittedLength] | None = None
) -> go.Figure:
    """Share of requests that are longer than so many tokens, by ratio both; dots at p50, p90 and p99."""
    longer = 100 * (1.0 - SHARES[:-1])
    data: list[dict[str, Any]] = []
    notes = []
    for name, lengths, colour, dash in (("prompts", prompt, BLUE, "solid"), ("answers", output, ORANGE, "dash")):
        line = {"color": colour, "width": 2.2, "dash": dash}
        hover = {"hovertemplate": "%{y:.2~g} % longer than %{x:,.0f} tokens"}
        data.append(
            {"type": "scatter", "mode": "lines", "x": f32(lengths.tokens[:-1]), "y": f32(longer), "name": name,
             "line": line} | hover
        )  # fmt: skip
        marks = np.array([lengths.quantile(share) for share in (0.5, 0.9, 0.99)])
        data.append(
            {"type": "scatter", "mode": "markers", "x": f32(marks), "y": f32(np.array([50.0, 10.0, 1.0])),
             "name": name, "marker": {"color": colour, "size": 8}} | hover
        )  # fmt: skip
        notes.append(
            {"x": float(np.log10(marks[0])), "y": float(np.log10(50.0)), "text": name, "showarrow": False,
             "xanchor": "right", "xshift": -8, "font": {"color": colour, "size": 12}}
        )  # fmt: skip
    for law, colour in zip(fitted or (), (BLUE, ORANGE), strict=False):
        data.append(_law(law, colour))
    low = max(1.0, min(float(lengths.tokens[0]) for lengths in (prompt, output)))
    high = max(float(lengths.tokens[-1]) for lengths in (prompt, output)) * 1.1
    both = {"type": "log", "fixedrange": True, "tickfont": {"color": TEXT}, "tickformat": ",~g", "dtick": 1}
    layout = {
        "height": _LENGTHS_PX, "showlegend": False, "hovermode": "closest", "uirevision": "keep",
        "margin": {"l": 8, "r": 14, "t": 10, "b": 0}, "annotations": notes,
        "xaxis": both | {"title": axis_title("tokens (log)"), "range": [float(np.log10(low)), float(np.log10(high))]},
        "yaxis": both | {"title": axis_title("longer than that, % (log)"),
                         "range": [float(np.log10(100 * _RAREST)), 2.05]},
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _law(law: FittedLength, colour: str) -> dict[str, Any]:
    """A fitted lognormal's line."""
    tokens = law.quantiles(SHARES[1:-1])
    return {
        "type": "scatter", "mode": "lines", "x": f32(tokens), "y": f32(100 * (1.0 - SHARES[1:-1])), "name": "fitted",
        "line": {"color": veil(colour, 0.7), "width": 1.4, "dash": "dot"}, "hoverinfo": "skip",
    }  # fmt: skip


def joint_figure(j: Joint) -> go.Figure:
    """Prompts against answers, by ratio both; the darker, the more requests."""
    share = np.where(j.share > 0, 100 * j.share, np.nan)
    data = {
        "type": "heatmap", "x": f32(j.prompt_edges), "y": f32(j.output_edges), "z": f32(share),
        "colorscale": [[0, veil(BLUE, 0.15)], [1, BLUE]], "showscale": False, "hoverongaps": False,
        "hovertemplate": "prompt %{x:,.0f}, answer %{y:,.0f} tokens: %{z:.2~g} % of requests<extra></extra>",
    }  # fmt: skip
    both = {"type": "log", "fixedrange": True, "tickfont": {"color": TEXT}, "tickformat": ",~g", "dtick": 1}
    layout = {
        "height": _LENGTHS_PX, "uirevision": "keep", "margin": {"l": 8, "r": 14, "t": 10, "b": 0},
        "xaxis": both | {"title": axis_title("prompt, tokens (log)"), "showgrid": False},
        "yaxis": both | {"title": axis_title("answer, tokens (log)"), "showgrid": False},
    }  # fmt: skip
    return go.Figure(data=[data], layout=layout)
