"""The overload page's figures."""

from __future__ import annotations

import streamlit as st

from engine.outcome.overload import Overload
from engine.scenario import Scenario
from ui.words import NBSP, digits, percent, rate

_NOTHING = "–"


def tiles(o: Overload, a: Overload | None, scenario: Scenario) -> None:
    """Four tiles; with A, each says what it is there."""
    word = "In time" if scenario.slo else "Answered"
    figures = (
        (f"{word} (goodput)", goodput(o), f"of {rate(o.first_rps)} asked for", a and goodput(a),
         "Answers that kept every promise, per second, after the warm-up."),
        (f"{word}, of those let in", let_in(o), f"{_refused(o)} refused", a and let_in(a),
         "Of the requests that weren't refused, whatever attempt decided them."),
        ("Attempts per request", attempts(o), _at_the_end(o), a and attempts(a),
         "First attempts and retries, for each first attempt (amplification)."),
        ("Work late or for nothing", wasted(o), "of the tokens worked on", a and wasted(a),
         "Prompts read and answers written for requests that came late or whose callers had left."),
    )  # fmt: skip
    for column, (label, value, below, other, text) in zip(st.columns(len(figures)), figures, strict=True):
        column.metric(
            label, value, below if other is None else f"A: {other}", help=text,
            delta_color="off", delta_arrow="off", border=True, height="stretch",
        )  # fmt: skip


def goodput(o: Overload) -> str:
    """Answers in time per second."""
    return f"{digits(o.goodput_rps, 2)}/s"


def let_in(o: Overload) -> str:
    """Share in time of those who weren't refused."""
    return _NOTHING if o.fates.of_let_in is None else percent(o.fates.of_let_in)


def attempts(o: Overload) -> str:
    """Attempts for each request."""
    return _NOTHING if o.attempts is None else digits(o.attempts, 2)


def wasted(o: Overload) -> str:
    """Share of the work that was late or for nothing."""
    return percent((o.spent.late + o.spent.for_nothing) / o.spent.total, 2) if o.spent.total else _NOTHING


def _refused(o: Overload) -> str:
    return percent(o.fates.shares["refused"]) if o.fates.total else f"0{NBSP}%"


def _at_the_end(o: Overload) -> str:
    if not o.end.first_rps:
        return "first attempts and retries"
    return f"{digits(o.end.offered_rps / o.end.first_rps, 2)} at the end"
