"""A promise we can keep: the strictest that these machines keep, or the machines that this one needs."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from engine import Scenario  # the whole engine first: two visitors at once would import it from two ends
from engine.outcome.promises import Terms
from engine.outcome.story import Story
from engine.traffic import Trace
from ui import answering, fewest, measuring_words, parts, promise_charts, promise_tables, promise_words
from ui.assumptions import footer, machines
from ui.controls import controls
from ui.engine_settings import engine_settings
from ui.inputs import row
from ui.promise_settings import FAILURES, KIND, METRIC, NETWORK, PLACE, TARGET, THRESHOLD, WINDOW
from ui.promise_tiles import tiles
from ui.runs import Answer
from ui.session import Current, Pinned, change
from ui.words import count

SLUG = "promise"
SAID = {
    METRIC: "What is promised",
    THRESHOLD: "Within (s)",
    TARGET: "For % of requests",
    WINDOW: "Window (s)",
    KIND: "Windows",
}
MEASURED = {PLACE: "Measured", FAILURES: "Counts as broken", NETWORK: "Network (s)"}
_PLACES = (
    "**Places:** the server's clock starts at the replica and sees no refusal; the gateway's starts at the router; the "
    "client's with the first try, and stops with the last one's result and the network's round trip."
)
_ALERTS = (
    "**Alerts** know of a request when its time is measured, and never of one that is still under way. Before the "
    "counted part of a run all is taken to have been well. Their windows are those of a 30-day promise, scaled."
)


def show(answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None) -> None:
    """The whole answer, beside A's."""
    story = answer.story
    parts.begin(current, scenario)
    t = story.terms
    if t is None:
        _nothing_promised(story, scenario, current)
        return
    explanation = promise_words.explanation(t, fewest.found(scenario))
    a = parts.opening(promise_words.headline(t), explanation, scenario, pinned)
    fewest.tile(tiles(t, a.terms if a else None), scenario, answer, trace)
    st.caption(machines(story, scenario))
    _controls(current, scenario)
    if t.choices[0].share is not None:
        _charts(t, scenario, story, a)
    parts.assumed(story, scenario, _PLACES, _ALERTS)


def _controls(current: Current, scenario: Scenario) -> None:
    """Every part of the promise, and the rest of the engine's settings."""
    drawn = controls(current.base)
    with st.container(border=True, gap="small", key="terms"):
        more = f" (the first of {count(len(scenario.slo), 'promise')})" if len(scenario.slo) > 1 else ""
        st.markdown(f":small[**The promise**{more}]")
        row(drawn, SAID, twins=(THRESHOLD, TARGET))
        st.markdown(":small[**Where** the clock stands, and what counts against it]")
        row(drawn, MEASURED)
    engine_settings(current)


def _charts(t: Terms, scenario: Scenario, story: Story, a: Story | None) -> None:
    if t.curve is not None:
        other = a.terms if a is not None and a.terms and a.terms.objective.metric == t.objective.metric else None
        parts.chart(
            "curve",
            promise_words.curve_sentence(t),
            promise_charts.curve_figure(t, other.curve if other else None),
            lambda: promise_tables.curve_table(t),
        )
    st.markdown("#### The same run, every choice")
    parts.chart(
        "choices",
        promise_words.choices_sentence(t),
        promise_charts.choices_figure(t),
        lambda: promise_tables.choices_table(t),
    )
    fewest.section(scenario)
    _budget_and_alerts(t, scenario, story)
    _readings(t)


def _budget_and_alerts(t: Terms, scenario: Scenario, story: Story) -> None:
    st.markdown("#### Error budget and alerts")
    b = t.budget
    if b is None:
        st.markdown(promise_words.budget_sentence(t))
        return
    horizon = parts.horizon_s(story, scenario)
    parts.chart(
        "budget",
        promise_words.budget_sentence(t),
        promise_charts.budget_figure(b, horizon, scenario.run.warmup_s),
        lambda: promise_tables.budget_table(b),
    )
    st.markdown(measuring_words.alerts_sentence(t))
    st.dataframe(promise_tables.alerts_table(t), hide_index=True)


def _readings(t: Terms) -> None:
    """What those who measure get wrong."""
    st.markdown("#### What measuring does to the number")
    if t.readings:
        parts.chart(
            "histogram",
            measuring_words.histogram_sentence(t),
            promise_charts.histogram_figure(t),
            lambda: promise_tables.readings_table(t),
        )
    sections: list[tuple[str, str, Callable[[], pd.DataFrame]]] = [
        ("windows", measuring_words.windows_sentence(t), lambda: promise_tables.windows_table(t)),
        ("averages", measuring_words.averages_sentence(t), lambda: promise_tables.averages_table(t)),
        ("omission", measuring_words.omission_sentence(t), lambda: promise_tables.omission_table(t)),
        ("sure", measuring_words.sure_sentence(t), lambda: promise_tables.sure_table(t)),
    ]
    for key, text, table in sections:
        if text:
            parts.figures(key, text, table)


def _nothing_promised(story: Story, scenario: Scenario, current: Current) -> None:
    """Without a promise: one to begin with."""
    parts.headline("Nothing is promised.")
    st.markdown("Promise something to see whether these machines keep it, and how strict it could be.")
    st.button("Promise the first word within 2 s", key="promise", type="primary", on_click=change, args=(_FIRST,))
    st.caption(machines(story, scenario))
    engine_settings(current)
    st.caption(footer(story, scenario))


_FIRST: dict[str, object] = {"slo": [{}]}


if __name__ == "__main__":
    answering.page(SLUG, show, patient=True)
