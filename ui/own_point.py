"""One measurement of the user's own: it corrects the step times of the scenario."""

from __future__ import annotations

import streamlit as st

from engine.machine import scale_from_measurement, typical_lengths
from engine.scenario import Analytic, Scale, Scenario, ScenarioError
from ui import parts, session
from ui.session import Current
from ui.words import digits

_TROUBLE = "own point trouble"
_METRICS = {"tpot": "TPOT", "output_tok_s": "output tokens/s"}
_LABELS = {"tpot": "TPOT measured (s)", "output_tok_s": "Tokens/s measured, of one replica"}
_KEYS = ("metric", "value", "concurrency", "prompt", "output")
_SOME_PROMPT, _SOME_ANSWER, _SOME_TOGETHER = 1024.0, 256.0, 32.0


def own_point(current: Current) -> None:
    """An expander with the form; what it changes is the scenario's: in its link, in undo, among the changes."""
    scenario = current.scenario
    if scenario is None or not isinstance(scenario.performance, Analytic):
        return
    with st.expander("You have measured it?", icon=":material/straighten:", key="own-point"):
        st.caption(
            "One measurement of this deployment corrects all step times: so many requests at once all the time, on one "
            "replica, of these mean lengths. What your benchmark calls mean TPOT or output throughput fits."
        )
        _boxes(scenario)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Correct by this measurement", key="own-point-apply", on_click=_apply)
            if scenario.performance.scale != Scale():
                st.button("Remove the correction", key="own-point-remove", on_click=_remove)
                st.markdown(corrected(scenario.performance.scale))
        loads, problems = st.session_state.get(_TROUBLE, (-1, ()))
        if loads == session.state().loads:
            parts.problems(problems)


def corrected(scale: Scale) -> str:
    """What a correction says: "Steps take 1.2 times as long as predicted."."""
    if scale.tpot == scale.prefill:
        return f"Corrected: steps take {digits(scale.tpot)} times as long as predicted."
    return f"Corrected: writing takes {digits(scale.tpot)}, reading {digits(scale.prefill)} times as long as predicted."


def _boxes(scenario: Scenario) -> None:
    prompt, answer = typical_lengths(scenario) or (_SOME_PROMPT, _SOME_ANSWER)
    first = {"metric": "tpot", "value": None, "concurrency": _SOME_TOGETHER, "prompt": prompt, "output": answer}
    for key, value in first.items():
        st.session_state.setdefault(_key(key), value)
    across = st.columns(len(_KEYS))
    with across[0]:
        st.selectbox("What", list(_METRICS), format_func=_METRICS.__getitem__, key=_key("metric"))
    labels = (_LABELS[st.session_state[_key("metric")]], "Requests at once", "Prompt (tokens)", "Answer (tokens)")
    for column, key, label in zip(across[1:], _KEYS[1:], labels, strict=True):
        with column:
            st.number_input(label, value=None, format="%g", key=_key(key), persist_state="session")


def _key(name: str) -> str:
    return f"own point {name}"


def _apply() -> None:
    """Turn the measurement into a correction, or say what is wrong with it and change nothing. In a callback."""
    metric, *given = (st.session_state.get(_key(key)) for key in _KEYS)
    value, concurrency, prompt, output = (float("nan") if one is None else float(one) for one in given)
    try:
        scale = scale_from_measurement(session.present(), metric, value, concurrency, prompt, output)
        _set(scale)
    except ScenarioError as error:
        st.session_state[_TROUBLE] = (session.state().loads, error.problems)


def _remove() -> None:
    """Take the correction back. In a callback."""
    _set(Scale())


def _set(scale: Scale) -> None:
    changes = {"performance.scale": {"tpot": scale.tpot, "prefill": scale.prefill}}
    session.load(session.present().replace(changes), session.state().preset)
