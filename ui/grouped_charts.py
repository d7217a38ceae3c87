"""The batching page's figures about simulated groups: over the run, and both ways of grouping. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.outcome import GroupCourse
from engine.study import Grouped, Served
from ui.batching_words import WAYS
from ui.charts import BLUE, ORANGE, PURPLE, RED, TEXT, clock, f32, highest, nice_top
from ui.panels import Layout, Panels
from ui.words import NBSP, digits, seconds

_PANELS = Layout(
    panels=((0.42, 1.0), (0.0, 0.3)),
    titles=("conversations a replica", "for each 100 arrivals"),
    axis="conversations a replica",
    height_px=400,
    right_px=96,
    dashes={"memory full": "dot", "preempted": "dash", "refused": "solid", "gave up": "solid"},
)
_WAYS_PX = 270


def course_figure(c: GroupCourse, horizon_s: float, warmup_s: float, max_num_seqs: int) -> go.Figure:
    """The group that runs and the one that memory allows; refusals and preemptions; when they begin."""
    scale, unit = clock(horizon_s)
    draft = Panels(_PANELS, horizon_s / scale, unit)
    x = f32((c.start_s + c.width_s / 2) / scale)
    allowed = highest([c.allowed])
    high = max(highest([c.running]), min(allowed, 4 * max(highest([c.running]), 1.0)))
    fits = bool(np.nanmin(c.allowed, initial=np.inf) <= high)
    name = "room for" if fits else f"room for {digits(allowed, 2)} ↑"
    draft.line(0, x, f32(c.allowed), TEXT, "there is room for", "dash", text=name)
    draft.line(0, x, f32(c.running), BLUE, "running", "solid")
    if max_num_seqs <= 1.5 * high:
        draft.line(0, x, np.full(x.size, max_num_seqs, np.float32), ORANGE, "max_num_seqs", "dot")
    lost, preempted, who = f32(100 * c.lost), f32(100 * c.preempted), "gave up" if c.gave_up else "refused"
    draft.line(1, x, lost, RED, "refused or timed out", "solid", text=who)
    draft.line(1, x, preempted, PURPLE, "preemptions", "dash", text="preempted")
    begun = ((c.full_from_s, "memory full"), (c.preempted_from_s, "preempted"), (c.lost_from_s, who))
    draft.rules(sorted((at / scale, name) for at, name in begun if at is not None))
    draft.grey(0.0, warmup_s / scale)
    return draft.figure((nice_top(1.08 * high), nice_top(1.08 * max(1.0, highest([c.lost * 100, c.preempted * 100])))))


def ways_figure(g: Grouped) -> go.Figure:
    """Both ways of grouping: what a replica can serve, first words, gaps; each with a scale of its own from zero."""
    rows = [
        ("a saturated replica serves, requests per second", "capacity_rps", lambda value: digits(value, 3)),
        (f"first word (TTFT) of the slowest 5{NBSP}%", "ttft_p95_s", seconds),
        ("1 gap between words (ITL) in 100 is longer than", "itl_p99_s", seconds),
    ]
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "height": _WAYS_PX, "showlegend": False, "uirevision": "keep", "hovermode": False, "bargap": 0.2,
        "margin": {"l": 8, "r": 8, "t": 22, "b": 4}, "annotations": [],
    }  # fmt: skip
    for row, (title, name, words) in enumerate(rows):
        mark = "" if row == 0 else str(row + 1)
        values = [getattr(served, name) for served in (g.static, g.continuous)]
        data.append(_bars((g.static, g.continuous), values, words, mark))
        high = 1.0 - row * 0.355
        span = [0.0, 1.3 * max([value for value in values if value], default=1.0)]
        layout[f"xaxis{mark}"] = {"range": span, "visible": False, "fixedrange": True, "anchor": f"y{mark}"}
        layout[f"yaxis{mark}"] = {"domain": [high - 0.255, high], "fixedrange": True, "tickfont": {"color": TEXT},
                                  "anchor": f"x{mark}", "automargin": True}  # fmt: skip
        layout["annotations"].append(
            {"x": 0, "xref": "paper", "xanchor": "left", "y": high, "yref": "paper", "yanchor": "bottom",
             "showarrow": False, "text": f"<i>{title}</i>", "font": {"color": TEXT, "size": 12}}
        )  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _bars(ways: tuple[Served, Served], values: list[float | None], words: Any, mark: str) -> dict[str, Any]:
    return {
        "type": "bar", "orientation": "h", "y": [WAYS[served.policy] for served in ways],
        "x": f32(np.array([value or 0.0 for value in values])),
        "text": [" nobody" if value is None else f" {words(value)}" for value in values], "textposition": "outside",
        "cliponaxis": False, "textfont": {"color": TEXT}, "xaxis": f"x{mark}", "yaxis": f"y{mark}", "name": "",
        "marker": {"color": [ORANGE, BLUE], "line": {"width": 0},
                   "pattern": {"shape": ["/", ""], "size": 6, "solidity": 0.15, "fillmode": "overlay"}},
    }  # fmt: skip
