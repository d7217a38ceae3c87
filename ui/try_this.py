"""Try this: buttons that each make one change, with what it does to the promise."""

from __future__ import annotations

import streamlit as st

from engine.scenario import Scenario
from engine.study import Suggestion
from engine.traffic import Trace
from ui import ideas, runs, session
from ui.following import follow

_MANY = 3


def try_this(scenario: Scenario, trace: Trace | None, final: bool) -> None:
    """The buttons, or their places while the changes are being tried in another process."""
    if not scenario.slo:
        return
    found = runs.shared().known_suggestions(scenario)
    with st.container(key="try-this", gap="small"):
        st.markdown("##### Try this")
        if found is not None:
            _buttons(found)
        elif final:
            follow(lambda: runs.shared().suggestions(scenario, trace) is not None, lambda _: _places())
        else:
            _places()


def _buttons(found: tuple[Suggestion, ...]) -> None:
    for index, (column, suggestion) in enumerate(zip(st.columns(_MANY), found, strict=False)):
        with column:
            st.button(
                ideas.button(suggestion),
                key=f"try-{index}",
                on_click=session.change,
                args=(suggestion.changes,),
                width="stretch",
            )
            st.caption(ideas.effect(suggestion))
    st.caption(ideas.source(found))


def _places() -> None:
    """As tall as the buttons, so that nothing moves when they come."""
    for index, column in enumerate(st.columns(_MANY)):
        with column:
            st.button("…", key=f"place-{index}", disabled=True, width="stretch")
            st.caption("Trying it out.")
    st.caption("Every change is simulated with the same requests as above; this takes some seconds.")
