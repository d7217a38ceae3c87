"""Pieces of a page: tiles, a chart with its sentence and table, problems, what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from engine.scenario import Problem, Scenario
from engine.scenario.presets import FIRST, preset
from ui import charts, session
from ui.session import Current
from ui.words import plain, sentence


def chart(key: str, text: str, figure: go.Figure, table: Callable[[], pd.DataFrame]) -> None:
    """One sentence that says what to read, the chart, and its data behind a toggle."""
    with st.container(key=f"part-{key}", gap="small"):
        st.markdown(text)
        alt = text.replace("*", "")
        st.plotly_chart(figure, key=f"chart-{key}", theme="streamlit", config=charts.CONFIG, alt=alt)
        if st.toggle("Data as a table", key=f"table-{key}", persist_state="session"):
            st.dataframe(table(), hide_index=True, height=260)


def problems(found: Iterable[Problem]) -> None:
    """What is wrong, why, and what to try."""
    for problem in found:
        where = {"": "", "link": "The link is "}.get(problem.field, f"`{problem.field}` ")
        what = " ".join(part for part in (problem.value, problem.reason) if part)
        st.error(f"{where}**{plain(what)}.** {plain(sentence(problem.remedy))}", icon=":material/error:")


def headline(text: str) -> None:
    """The page's verdict."""
    st.title(text, anchor=False)


def told(current: Current, scenario: Scenario) -> None:
    """The story of an untouched preset; the first one's verdict is its story."""
    entry = preset(current.preset) if current.preset else None
    if entry is not None and entry.name != FIRST and entry.scenario == scenario:
        st.caption(f"**{plain(entry.title)}.** {plain(entry.story)}")


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
