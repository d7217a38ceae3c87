"""Constants of the step-time model that the scenario replaces: one at a time, kept in its link."""

from __future__ import annotations

from dataclasses import fields

import streamlit as st

from engine.machine import Constants, constants, deployment, largest_step
from engine.scenario import Analytic, Scenario, ScenarioError
from ui import parts, session
from ui.words import digits

_NAME, _VALUE, _TROUBLE = "override name", "override value", "override trouble"
_PATH = "performance.overrides"


def overrides(scenario: Scenario) -> None:
    """A list of names, a box, and what is replaced already with a way back."""
    now = _own(scenario)
    meanings = {one.name: one.metadata["text"] for one in fields(Constants)}
    st.session_state.setdefault(_NAME, "eta_m")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Constant", list(meanings), key=_NAME, format_func=lambda name: f"{name}: {meanings[name]}", width=440
        )
        st.number_input("Value", value=None, format="%g", key=_VALUE, width=160, placeholder="your value")
        st.button("Replace", key="override-apply", on_click=_apply)
        if now:
            st.button("Back to the fitted ones", key="override-remove", on_click=_set, args=({},))
    if now:
        st.caption("Replaced: " + ", ".join(f"`{name}` {digits(value, 4)}" for name, value in now.items()) + ".")
    loads, problems = st.session_state.get(_TROUBLE, (-1, ()))
    if loads == session.state().loads:
        parts.problems(problems)


def _own(scenario: Scenario) -> dict[str, float]:
    return dict(scenario.performance.overrides) if isinstance(scenario.performance, Analytic) else {}


def _apply() -> None:
    value = st.session_state.get(_VALUE)
    if value is not None:
        _set(_own(session.present()) | {st.session_state[_NAME]: float(value)})


def _set(values: dict[str, float]) -> None:
    """Replace all overrides, or say what is wrong and change nothing. In a callback."""
    try:
        changed = session.present().replace({_PATH: values})
        constants(changed, deployment(changed, largest_step(changed.batching)))
        session.load(changed, session.state().preset)
    except ScenarioError as error:
        st.session_state[_TROUBLE] = (session.state().loads, error.problems)
