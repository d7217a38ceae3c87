"""The promise page's figures."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.outcome.promises import Terms
from engine.outcome.promises.threshold import Strictest
from ui.promise_settings import PLACES
from ui.promise_words import kept_s, what
from ui.words import NBSP, digits, percent, seconds

_LOOK: dict[str, Any] = {"border": True, "height": "stretch", "delta_color": "off", "delta_arrow": "off"}


def tiles(t: Terms, a: Terms | None) -> DeltaGenerator:
    """Three tiles, and the place of a fourth; with A, each says what it is there."""
    first, second, third, fourth = st.columns(4)
    s, now, o = t.strictest, t.choices[0], t.objective
    first.metric(
        f"Strictest kept for {percent(o.target)}",
        kept_s(s),
        _below(_spread(s), a and kept_s(a.strictest)),
        help=f"The shortest threshold at which {percent(o.target)} of requests are in time, all runs together, rounded "
        f"up. What is promised is the {what(o.metric)}.",
        **_LOOK,
    )
    second.metric(
        f"In time, {PLACES[o.measured_at]}",
        _percent(now.share),
        _below(f"promised: {percent(o.target)} within {seconds(o.threshold_s)}", a and _percent(a.choices[0].share)),
        help=f"Of {now.valid:,} that count.{_interval(now.ci95)}",
        **_LOOK,
    )
    third.metric(
        "Error budget (burn rate)",
        pace(t),
        _below("times what is allowed", a and pace(a)),
        help="Bad requests over those that the target allows: above 1 the budget doesn't last the window.",
        **_LOOK,
    )
    return fourth


def pace(t: Terms) -> str:
    """The burn rate over the whole run."""
    return "–" if t.budget is None else f"{digits(t.budget.pace, 2)}×"


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _spread(s: Strictest) -> str:
    if s.ci95_s is None:
        return "no threshold is kept" if s.threshold_s is None else "from one run"
    low, high = (seconds(end) for end in s.ci95_s)
    return f"{low} to {high} over {s.runs} runs" if low != high else f"the same in {s.runs} runs"


def _interval(ends: tuple[float, float] | None) -> str:
    return (
        ""
        if ends is None
        else f" 95{NBSP}% interval from the spread over runs: {percent(ends[0])} to {percent(ends[1])}."
    )


def _below(text: str, other: str | None) -> str:
    return text if other is None else f"A: {other}"
