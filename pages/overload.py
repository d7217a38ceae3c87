"""When to say no: what refusing early saves for those who are let in, and what retries do."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from engine import Scenario  # the whole engine first: two visitors at once would import it from two ends
from engine.outcome.story import Story
from engine.traffic import Trace
from ui import answering, charts, overload_charts, overload_words, parts, tables
from ui.assumptions import machines
from ui.controls import controls
from ui.engine_settings import engine_settings
from ui.inputs import row
from ui.overload_tiles import tiles
from ui.runs import Answer
from ui.session import Current, Pinned
from ui.settings import DISCIPLINE, RATE_LIMIT, SHED, THROTTLE
from ui.ways import ways_of_saying_no

SLUG = "overload"
REFUSE = {
    SHED: "Predicted wait (s)",
    "admission.max_outstanding": "Requests a replica",
    "admission.queue_timeout_s": "In the queue (s)",
    RATE_LIMIT: "Arrivals a second",
    DISCIPLINE: "Order of the queue",
}
CALLERS = {
    "traffic.client.ttft_timeout_s": "First word (s)",
    "traffic.client.timeout_s": "Last word (s)",
    "traffic.client.on_timeout": "When they leave",
    "traffic.client.max_retries": "Retries",
    "traffic.client.backoff_s": "Pause before (s)",
    "traffic.client.retry_budget_ratio": "Retry budget",
    THROTTLE: "Hold back (K)",
}
_NOT_IN_A_CLOSED_LOOP = (RATE_LIMIT, THROTTLE, *(key for key in CALLERS if "retr" in key or "backoff" in key))
"""Users who wait for their answers don't take these yet."""
_REFUSING = "**Refusing** costs the service nothing here, and callers learn of it at once."


def show(answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None) -> None:
    """The answer, whole or first, beside A's."""
    story = answer.story
    o = story.overload
    parts.begin(current, scenario)
    a = parts.opening(overload_words.headline(o, scenario), overload_words.explanation(o), scenario, pinned)
    tiles(o, a.overload if a else None, scenario)
    st.caption(machines(story, scenario))
    _controls(current)
    horizon = parts.horizon_s(story, scenario)
    parts.chart(
        "load",
        overload_words.load_sentence(o),
        overload_charts.load_figure(
            o.load, o.fleet_rps, horizon, scenario.run.warmup_s, a.overload.load if a else None
        ),
        lambda: tables.load_table(o),
    )
    ways_of_saying_no(scenario, trace, answer)
    _refusals_and_retries(story, scenario, horizon, a)
    _work(story, a)
    parts.assumed(story, scenario, _REFUSING)


def _controls(current: Current) -> None:
    """What this page studies, and the rest of the engine's settings."""
    closed = current.base.traffic.process == "closed"
    drawn = {
        key: control
        for key, control in controls(current.base).items()
        if key in REFUSE or key in CALLERS
        if not (closed and key in _NOT_IN_A_CLOSED_LOOP)
    }
    with st.container(border=True, gap="small", key="saying-no"):
        st.markdown(":small[**Refuse or drop** what is above a limit; an empty box is off]")
        row(drawn, REFUSE)
        st.markdown(":small[**Callers** wait so long, then leave, and try again]")
        row(drawn, CALLERS)
    engine_settings(current, above=drawn)


def _refusals_and_retries(story: Story, scenario: Scenario, horizon_s: float, a: Story | None) -> None:
    o, warmup = story.overload, scenario.run.warmup_s
    refused = bool(story.refusals.shares) or bool(a and a.refusals.shares)
    again = bool(o.load.retries_rps.any()) or bool(a and a.overload.load.retries_rps.any())

    def refusals() -> go.Figure:
        return charts.refusals_figure(story.refusals, horizon_s, warmup, a.refusals if a else None)

    def amplification() -> go.Figure:
        return overload_charts.amplification_figure(o.load, horizon_s, warmup, a.overload.load if a else None)

    parts.beside(
        parts.Part(
            "refusals",
            overload_words.lost_sentence(story),
            refusals if refused else None,
            lambda: tables.refusals_table(story),
        ),
        parts.Part(
            "amplification",
            overload_words.amplification_sentence(o),
            amplification if again else None,
            lambda: tables.load_table(o),
        ),
    )


def _work(story: Story, a: Story | None) -> None:
    rows = [("now", story.overload.spent)] + ([("A", a.overload.spent)] if a else [])
    if not any(spent.total for _, spent in rows):
        st.markdown(overload_words.spent_sentence(story.overload))
        return
    parts.chart(
        "spent",
        overload_words.spent_sentence(story.overload),
        overload_charts.spent_figure(rows),
        lambda: tables.spent_table(rows),
    )


if __name__ == "__main__":
    answering.page(SLUG, show)
