"""The fewest replicas that keep the promise: worked out in another process, shown when they are known."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.scenario import Scenario
from engine.study import Fewest
from engine.traffic import Trace
from ui import parts, promise_charts, promise_tables, promise_words, runs, session, work
from ui.following import follow
from ui.runs import Answer, Aside
from ui.words import count


def known(scenario: Scenario) -> Aside | None:
    """The answer, if it was worked out already; its result is None where no number keeps the promise."""
    return runs.shared().known_aside(_key(scenario))


def found(scenario: Scenario) -> Fewest | None:
    """The number, if it is known and there is one."""
    aside = known(scenario)
    return aside.result if aside is not None else None


def go_on(scenario: Scenario, each_rps: float | None, trace: Trace | None) -> bool:
    """Ask for it, so that it is worked out; whether it is there."""
    return runs.shared().aside(_key(scenario), work.fewest_of, scenario, each_rps, trace) is not None


def _key(scenario: Scenario) -> str:
    return f"fewest {scenario.token}"


def tile(place: DeltaGenerator, scenario: Scenario, answer: Answer, trace: Trace | None) -> None:
    """The tile, working until the number is known."""
    with place:
        if answer.final and known(scenario) is None and not _pools(scenario):
            each_rps = answer.story.summary["replica"]["capacity_rps"]
            follow(lambda: go_on(scenario, each_rps, trace), lambda _: _tile(scenario))
        else:
            _tile(scenario)


def _tile(scenario: Scenario) -> None:
    aside, number = known(scenario), found(scenario)
    value, below = "…", "being worked out"
    if _pools(scenario):
        value, below = "–", "two pools have two numbers"
    if number is not None:
        value, below = count(number.replicas, "replica"), f"{number.have} now"
        if number.surely is not None and number.surely != number.replicas:
            below += f"; {number.surely} to be sure"
    elif aside is not None and not _pools(scenario):
        value, below = "–", "no number keeps it"
    st.metric(
        "Fewest machines that keep it", value, below, border=True, height="stretch", delta_color="off",
        delta_arrow="off",
        help="A fixed fleet of so many replicas keeps the promise over all runs, one fewer doesn't: tried with the "
        "same requests.",
    )  # fmt: skip


def _pools(scenario: Scenario) -> bool:
    return scenario.batching.policy == "disaggregated"


def section(scenario: Scenario) -> None:
    """How the share in time grows with the replicas, once it is known."""
    aside, number = known(scenario), found(scenario)
    if aside is None and not _pools(scenario):
        return
    st.markdown("#### The machines that this promise needs")
    if _pools(scenario):
        st.markdown("Which of two pools should grow depends on what is late: the start page tries one more of each.")
        return
    if number is None:
        st.markdown(promise_words.no_number(scenario.slo[0]))
        return
    if number.changes:
        words = f"Use {count(number.replicas, 'replica')}"
        st.button(words, key="use-fewest", on_click=session.change, args=(number.changes,))
    parts.chart(
        "fewest",
        promise_words.fewest_sentence(number),
        promise_charts.fewest_figure(number),
        lambda: promise_tables.fewest_table(number),
    )
