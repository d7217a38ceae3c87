"""The placement page's figures: stacked memory bars. Pure functions, in the idiom of `charts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.placement import Needs, Packing, Parts, Used, ruled_out
from ui.charts import BLUE, GREEN, INSIDE, ORANGE, TEXT, axis_title, f32, nice_top, veil
from ui.packing_words import gb
from ui.words import NBSP, count

_ROW_PX = 46
_LEGEND_PX = 80
"""Its entries need four lines on a telephone."""
_AXIS_PX = 48
PARTS = (
    ("weights", BLUE, ""),
    ("KV", GREEN, "/"),
    ("activations, runtime", ORANGE, "x"),
    ("free", veil(TEXT, 0.14), ""),
)
"""What a chip holds, its colour, and a pattern as a second code."""
_WORTH_A_NUMBER = 0.09
"""Share of the axis from which on a part's figure fits into it."""


def chips_figure(needs: Needs, packing: Packing) -> go.Figure:
    """A bar for every chip in use, those alike together: GB of weights, KV, the rest, and free."""
    rows = [(_chip_label(needs, one, many), needs.parts(one)) for one, many in alike(packing)]
    return _figure(rows, max((needs.device_gb(used.chip) for used in packing.used), default=1.0))


def alike(packing: Packing) -> list[tuple[Used, int]]:
    """Chips in use, one of each that hold the same, and how many there are of it."""
    counted = Counter((used.chip, _content(used)) for used in packing.used)
    first = {}
    for used in packing.used:
        first.setdefault((used.chip, _content(used)), used)
    return [(first[key], many) for key, many in counted.items()]


def _content(used: Used) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((shard.item, shard.tp) for shard in used.shards))


def holds(needs: Needs, used: Used) -> str:
    """What is on a chip: "2 × Llama-2-13B, Llama-2-70B 1/2"."""
    said = []
    for (item, tp), many in Counter(_content(used)).items():
        name = needs.problem.items[item].model.split(" at ")[0] + (f" 1/{tp}" if tp > 1 else "")
        said.append(f"{many} × {name}" if many > 1 else name)
    return ", ".join(said)


def _chip_label(needs: Needs, used: Used, many: int) -> str:
    times = f"{many} × " if many > 1 else ""
    held = holds(needs, used).replace(", ", "<br>")
    return f"<b>{times}{needs.problem.chips[used.chip].type}</b><br>{held}".replace(" ", NBSP)


def seats_figure(needs: Needs, item: int) -> go.Figure:
    """One model by itself on each type of chip: memory filled up with conversations, their number at the end."""
    short = {one.chip: one for one in ruled_out(needs.problem) if one.item == item}
    rows, ends = [], []
    for t, chip in enumerate(needs.problem.chips):
        alone = needs.alone(item, t)
        if alone is None:
            one = short.get(t)
            text = f"short by {gb(one.short_gb)}" if one is not None and one.short_gb else "ruled out"
            rows.append((chip.type, Parts(0.0, 0.0, 0.0, needs.device_gb(t))))
        else:
            text = count(alone.seats, "seat")
            rows.append((chip.type if alone.tp == 1 else f"{alone.tp} × {chip.type}", alone.parts))
        ends.append(text)
    labels = [f"<b>{name}</b><br>{end}".replace(" ", NBSP) for (name, _), end in zip(rows, ends, strict=True)]
    shown = [(label, parts) for label, (_, parts) in zip(labels, rows, strict=True)]
    sizes = [needs.device_gb(t) for t in range(len(needs.problem.chips))]
    return _figure(shown, max(sizes, default=1.0))


def _figure(rows: Sequence[tuple[str, Parts]], largest: float) -> go.Figure:
    top = nice_top(largest)
    # Two bars may have the same name: places are numbers, names their ticks.
    places = list(range(len(rows)))
    data: list[dict[str, Any]] = []
    for at, (name, colour, pattern) in enumerate(PARTS):
        sizes = [max(astuple(parts)[at], 0.0) for _, parts in rows]
        text = [f"{size:.0f}" if size >= _WORTH_A_NUMBER * top and name != "free" else "" for size in sizes]
        data.append(
            {
                "type": "bar", "orientation": "h", "x": f32(np.array(sizes)), "y": places, "name": name, "text": text,
                "textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "textfont": INSIDE,
                "constraintext": "none", "hovertemplate": "%{x:.3~g} GB", "width": 0.62,
                "marker": {"color": colour, "line": {"width": 0},
                           "pattern": {"shape": pattern, "size": 7, "solidity": 0.12, "fillmode": "overlay"}},
            }
        )  # fmt: skip
    both = {"fixedrange": True, "tickfont": {"color": TEXT}}
    legend = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "normal"}
    lines = sum(max(2, label.count("<br>") + 1) for label, _ in rows)
    layout = {
        "height": round(lines * _ROW_PX / 2) + _LEGEND_PX + _AXIS_PX, "barmode": "stack", "uirevision": "keep",
        "showlegend": True, "legend": legend | {"font": {"color": TEXT}, "itemclick": False, "itemdoubleclick": False},
        "margin": {"l": 8, "r": 14, "t": _LEGEND_PX, "b": _AXIS_PX}, "hovermode": "y unified",
        "xaxis": both | {"title": axis_title("memory of one chip, GB"), "range": [0, top], "showgrid": False},
        "yaxis": both | {"range": [len(rows) - 0.5, -0.5], "automargin": True, "tickmode": "array", "tickvals": places,
                         "ticktext": [label for label, _ in rows], "showgrid": False},
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)
