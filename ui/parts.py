"""Pieces of a page: tiles, a chart with its sentence and table, problems, what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from engine.outcome.story import Story
from engine.scenario import Problem, Scenario
from engine.scenario.presets import FIRST, preset
from ui import against, charts, session
from ui.assumptions import assumptions, footer
from ui.gallery import to_top
from ui.session import Current, Pinned
from ui.words import plain, sentence


def chart(key: str, text: str, figure: go.Figure, table: Callable[[], pd.DataFrame]) -> None:
    """One sentence that says what to read, the chart, and its data behind a toggle."""
    with st.container(key=f"part-{key}", gap="small"):
        st.markdown(text)
        alt = text.replace("*", "")
        st.plotly_chart(figure, key=f"chart-{key}", theme="streamlit", config=charts.CONFIG, alt=alt)
        if st.toggle("Data as a table", key=f"table-{key}", persist_state="session"):
            st.dataframe(table(), hide_index=True, height=260)


@dataclass(frozen=True, slots=True)
class Part:
    """A chart to be: its sentence, and what draws it and its table; without a figure the sentence says it all."""

    key: str
    text: str
    figure: Callable[[], go.Figure] | None
    table: Callable[[], pd.DataFrame]


def beside(*two: Part) -> None:
    """Charts side by side; one that would be empty is a sentence, and gives its place to the other."""
    places = st.columns(2, gap="large") if all(part.figure for part in two) else [st.container() for _ in two]
    for place, part in zip(places, two, strict=True):
        with place:
            if part.figure is None:
                st.markdown(part.text)
            else:
                chart(part.key, part.text, part.figure(), part.table)


def horizon_s(story: Story, scenario: Scenario) -> float:
    """Seconds that charts over time show: the scenario's, or of its longest run where it has none of its own."""
    return scenario.run.horizon_s or float(story.summary["run"]["horizon_s"])


def assumed(story: Story, scenario: Scenario, *more: str) -> None:
    """The end of a page: what isn't modelled, what must be known of this run, how much was simulated."""
    st.markdown("#### What this assumes")
    st.markdown("\n".join(f"- {line}" for line in [*assumptions(scenario), *more]))
    for note in story.summary["notes"]:
        st.caption(f":material/info: {plain(note)}")
    st.caption(footer(story, scenario))


def figures(key: str, text: str, table: Callable[[], pd.DataFrame]) -> None:
    """A sentence whose figures need no chart, and the table that they are from behind a toggle."""
    with st.container(key=f"part-{key}", gap="small"):
        st.markdown(text)
        if st.toggle("Data as a table", key=f"table-{key}", persist_state="session"):
            st.dataframe(table(), hide_index=True)


def problems(found: Iterable[Problem]) -> None:
    """What is wrong, why, and what to try."""
    for problem in found:
        where = {"": "", "link": "The link is "}.get(problem.field, f"`{problem.field}` ")
        what = " ".join(part for part in (problem.value, problem.reason) if part)
        st.error(f"{where}**{plain(what)}.** {plain(sentence(problem.remedy))}", icon=":material/error:")


def headline(text: str) -> None:
    """The page's verdict."""
    st.title(text, anchor=False)


def begin(current: Current, scenario: Scenario) -> None:
    """From the top, when a button asked for that; the story of an untouched preset. The first one's verdict is its
    story."""
    to_top()
    entry = preset(current.preset) if current.preset else None
    if entry is not None and entry.name != FIRST and entry.scenario == scenario:
        st.caption(f"**{plain(entry.title)}.** {plain(entry.story)}")


def opening(text: str, explanation: str, scenario: Scenario, pinned: Pinned | None) -> Story | None:
    """The verdict, what is behind it, and what was changed from A; A's story, when A is another scenario."""
    headline(text)
    if explanation:
        st.markdown(explanation)
    if pinned is None:
        return None
    st.markdown(against.changed(pinned.scenario, scenario))
    return pinned.story if pinned.scenario != scenario else None


def trouble(current: Current) -> None:
    """A link that can't be opened as it is: what is wrong, and the nearest scenario to open instead."""
    found = current.trouble
    assert found is not None
    headline("This link can't be opened as it is.")
    problems(found.problems)
    if found.dropped:
        st.markdown("The nearest valid scenario leaves out:\n\n" + _bullets(found.dropped))
    if found.kept:
        st.markdown("It keeps:\n\n" + _bullets(found.kept))
    with st.container(horizontal=True):
        st.button("Open the nearest valid scenario", on_click=session.load, args=(found.nearest, None))
        first = preset(FIRST)
        st.button(f"Start from {first.title}", on_click=session.load, args=(first.scenario, FIRST))


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {plain(line)}" for line in lines)
