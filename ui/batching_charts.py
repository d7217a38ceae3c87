"""The batching page's figures about the group: steps, memory, seats. Pure functions, in the idiom of `charts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.machine import Memory
from engine.study import Group, Record
from ui.batching_words import PARTS
from ui.charts import BLUE, GREEN, INSIDE, ORANGE, PURPLE, RED, TEXT, YELLOW, axis_title, f32, nice_top, veil
from ui.panels import Layout, Panels
from ui.words import NBSP, digits

COLOURS = {"weights": BLUE, "overhead": YELLOW, "communication": RED, "compute": ORANGE, "kv": PURPLE}
PATTERNS = {"weights": "", "overhead": ".", "communication": "x", "compute": "/", "kv": "-"}
"""A second code beside colour."""
_PANELS = Layout(
    panels=((0.54, 1.0), (0.27, 0.46), (0.0, 0.19)),
    titles=("a step, ms", "output tokens per second", "replica's time a token, ms (log)"),
    axis="a step = gap between words, ms",
    height_px=540,
    right_px=106,
    log=True,
    logs=frozenset({2}),
    close=0.32,
    dashes={"now": "solid", "knee": "dash", "memory full": "dot"},
)
_VISIBLE = 0.004
"""Share of the longest step from which on a part is drawn."""
_GIB = 2.0**30
_BAR_PX = 150
_NARROW = 0.09
"""Share of the memory from which on a part's figure fits into its bar."""
_SEATS_PX = 330
_FEW_DECADES = 150.0
_BESIDE, _BELOW = (10, -14, "left"), (-8, 22, "right")
"""Where the crossover's name stands: right of it, or left and below the line."""


def sharing_figure(g: Group, size: int | None) -> go.Figure:
    """Step time by group size, split; output tokens a second; the replica's time a token; knee and limits marked."""
    s = g.sharing
    x, top = f32(s.sizes.astype(np.float64)), int(s.sizes[-1])
    draft = Panels(_PANELS, float(top), "conversations in the group (log)", 1.0)
    highest, below = float(s.step_s.max()), np.zeros(x.size, np.float32)
    for name in PARTS:
        part = f32(s.parts[name] * 1e3) if name in s.parts else below * 0  # type: ignore[index]
        if part.max(initial=0.0) >= _VISIBLE * highest * 1e3:
            draft.stacked(0, x, part, below, COLOURS[name], PATTERNS[name], PARTS[name])
            below = below + part
    draft.line(1, x, f32(s.tokens_per_s), GREEN, "tokens per second", "solid", text="tokens/s")
    word = f32(s.word_s * 1e3)
    draft.line(2, x, word, TEXT, "ms a token", "solid", text="ms a token")
    marks = [(float(size), "now")] if size is not None and 1 < size < top else []
    marks += [(float(s.knee), "knee")] if s.knee is not None and 1 < s.knee < top else []
    if g.limit(g.record) == "kv" and 1 < g.record.seats < top:
        marks.append((g.record.seats, "memory full"))
        draft.grey(g.record.seats, float(top))
    draft.rules(sorted(marks))
    powers = 2 ** np.arange(top.bit_length())
    shown = powers[:: 1 + powers.size // 9]
    tops = (nice_top(1.04 * highest * 1e3), nice_top(1.08 * float(s.tokens_per_s.max())))
    ends = (float(word.min()) / 1.3, float(word.max()) * 1.3)
    return draft.figure((*tops, ends), tickvals=shown, ticktext=[f"{n:,}" for n in shown])


def memory_figure(m: Memory) -> go.Figure:
    """One bar: what an accelerator's memory holds; its figures are the table's."""
    parts = memory_parts(m)
    looks = {"weights": (BLUE, ""), "activations": (ORANGE, "/"), "runtime": (YELLOW, "."),
             "conversations (KV)": (PURPLE, "-"), "kept free": (TEXT, "x")}  # fmt: skip
    data = []
    for name, size in parts.items():
        colour, pattern = looks[name]
        wide = size >= _NARROW * m.device
        inside = INSIDE | ({"color": TEXT} if name == "kept free" else {})
        data.append(
            {
                "type": "bar", "orientation": "h", "x": f32(np.array([size / _GIB])), "y": ["memory"], "name": name,
                "text": [f"{digits(size / _GIB, 2)}" if wide else ""], "textposition": "inside", "textangle": 0,
                "insidetextanchor": "middle", "textfont": inside, "hovertemplate": "%{x:.3~g} GiB",
                "constraintext": "none",
                "marker": {"color": veil(colour, 0.4) if name == "kept free" else colour, "line": {"width": 0},
                           "pattern": {"shape": pattern, "size": 7, "solidity": 0.12, "fillmode": "overlay"}},
            }
        )  # fmt: skip
    legend = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "normal"}
    layout = {
        "height": _BAR_PX + 32, "barmode": "stack", "bargap": 0.1, "uirevision": "keep", "hovermode": "closest",
        "showlegend": True, "legend": legend | {"font": {"color": TEXT}, "itemclick": False, "itemdoubleclick": False},
        "margin": {"l": 8, "r": 14, "t": 70, "b": 0},
        "xaxis": {"title": axis_title("GiB of one accelerator"), "range": [0, m.device / _GIB], "fixedrange": True,
                  "tickfont": {"color": TEXT}, "showgrid": False},
        "yaxis": {"visible": False, "fixedrange": True},
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def memory_parts(m: Memory) -> dict[str, float]:
    """Bytes of one accelerator by what they are for; they add up to its memory."""
    return {
        "weights": m.weights,
        "activations": m.activations,
        "runtime": m.runtime,
        "conversations (KV)": max(m.kv, 0.0),
        "kept free": m.device - m.usable,
    }


def seats_figure(g: Group, size: int | None) -> go.Figure:
    """Seats against the length of a conversation, by ratio both; the setting, the crossover, and where we are."""
    held = g.record.held_tokens
    x, y = f32(g.lengths), f32(g.seats)
    line = {"type": "scatter", "mode": "lines", "hovertemplate": "%{x:.3~g} tokens: %{y:.3~g} seats"}
    data: list[dict[str, Any]] = [
        line | {"x": x, "y": y, "name": "seats", "line": {"color": BLUE, "width": 2.4}},
    ]
    notes = []
    if g.crossover_tokens is not None:
        memory = g.kv_capacity_tokens / g.lengths if g.kv_capacity_tokens else g.seats
        above = g.lengths <= g.crossover_tokens
        data.append(
            line | {"x": x[above], "y": f32(memory[above]), "name": "memory alone", "hoverinfo": "skip",
                    "hovertemplate": None, "line": {"color": PURPLE, "width": 1.4, "dash": "dot"}}
        )  # fmt: skip
        crossing = f"crossover at {digits(g.crossover_tokens)}:<br>max_num_seqs {g.max_num_seqs:,}"
        early = g.crossover_tokens < np.sqrt(g.lengths[0] * g.lengths[-1])
        notes.append(_note(g.crossover_tokens, g.max_num_seqs, crossing, *(_BESIDE if early else _BELOW)))
        notes.append(_note(float(x[-1]), float(y[-1]), "memory", -12, 4, "right"))
    else:
        notes.append(_note(float(x[0]) * 1.02, g.max_num_seqs, f"max_num_seqs {g.max_num_seqs:,}", 4, 12))
    data += _points(g, size, notes)
    low, high = max(0.5, min(float(y.min()), size or np.inf) / 1.6), max(float(g.max_num_seqs), float(y.max())) * 4
    both = {"type": "log", "fixedrange": True, "tickfont": {"color": TEXT}, "tickformat": ",~g", "dtick": 1}
    fine = {"dtick": "D2"} if high / low < _FEW_DECADES else {}
    layout = {
        "height": _SEATS_PX, "showlegend": False, "hovermode": "closest", "uirevision": "keep",
        "margin": {"l": 8, "r": 14, "t": 10, "b": 0}, "annotations": notes,
        "xaxis": both | {"title": axis_title("tokens a conversation holds (log)"),
                         "range": [float(np.log10(x[0])), float(np.log10(max(x[-1], held)))]},
        "yaxis": both | fine | {"title": axis_title("seats a replica (log)"), "range": [float(np.log10(low)),
                                                                                  float(np.log10(high))]},
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _points(g: Group, size: int | None, notes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The present mix, that at the end of the run, and how many there are on average."""
    found: list[tuple[Record, float, str, str, str]] = [(g.record, g.record.seats, "now", "circle", "solid")]
    if g.grown is not None:
        found.append((g.grown, g.grown.seats, "at the end", "circle-open", "solid"))
    if size is not None:
        found.append((g.record, float(size), "in use", "diamond", "dot"))
    data = []
    for record, seats, name, symbol, _ in found:
        style = {"color": ORANGE if name != "in use" else GREEN, "size": 11, "symbol": symbol, "line": {"width": 2}}
        data.append(
            {
                "type": "scatter", "mode": "markers", "x": f32(np.array([record.held_tokens])),
                "y": f32(np.array([seats])), "name": name, "marker": style,
                "hovertemplate": "%{x:.3~g} tokens: %{y:.3~g} conversations",
            }
        )  # fmt: skip
        text = f"{name}: {digits(seats, 2 if seats < 100 else 3)}"
        left = name == "in use"
        notes.append(_note(record.held_tokens, seats, text, -9 if left else 9, 2 if left else -9, _side(name)))
    return data


def _side(name: str) -> str:
    return "right" if name == "in use" else "left"


def _note(x: float, y: float, text: str, dx: float, dy: float, anchor: str = "left") -> dict[str, Any]:
    """A name beside a point of axes that go by ratio; `dy` pixels down."""
    return {
        "x": float(np.log10(x)), "y": float(np.log10(y)), "text": text.replace(" ", NBSP), "showarrow": False,
        "xanchor": anchor, "xshift": dx, "yshift": -dy, "font": {"color": TEXT, "size": 12},
    }  # fmt: skip
