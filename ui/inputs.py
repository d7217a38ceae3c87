"""Single controls on the screen: a slider with its box, a box, a list."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from ui import session
from ui.control import Control, position
from ui.controls import burstiness_word

_BOX_PX = 104
Width = int | Literal["stretch"]


def slider(control: Control) -> None:
    """A slider with a box to type in: the box has the exact value, the slider its nearest position."""
    with st.container(gap="xxsmall"):
        word = f" · {burstiness_word(float(st.session_state[control.key]))}" if control.key == "burstiness" else ""
        st.markdown(f":small[{control.label}{word}]", help=control.help)
        with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small"):
            st.select_slider(
                control.label,
                control.stops,
                format_func=position,
                key=session.slider_key(control.key),
                label_visibility="collapsed",
                on_change=_follow_slider,
                args=(control.key, control.whole),
                persist_state="session",
            )
            box(control, width=_BOX_PX, hidden=True)


def _follow_slider(key: str, whole: bool) -> None:
    position = st.session_state[session.slider_key(key)]
    st.session_state[key] = int(position) if whole else float(position)


def _follow_box(control: Control) -> None:
    if control.stops:
        st.session_state[session.slider_key(control.key)] = control.nearest_stop(float(st.session_state[control.key]))


def box(control: Control, width: Width = "stretch", hidden: bool = False) -> None:
    """A box for a number. Empty where the control allows it, and then it says what that stands for."""
    number = int if control.whole else float
    st.number_input(
        control.label,
        min_value=number(control.low) if control.low is not None else None,
        max_value=number(control.high) if control.high is not None else None,
        value=None if control.null else "min",
        placeholder=control.null or None,
        step=number(control.step),
        format="%d" if control.whole else "%g",
        key=control.key,
        help=None if hidden else control.help,
        label_visibility="collapsed" if hidden else "visible",
        on_change=_follow_box,
        args=(control,),
        persist_state="session",
        width=width,
    )


def choice(control: Control, width: Width = "stretch") -> None:
    """A list of words."""
    assert control.choices is not None
    words = control.choices
    st.selectbox(
        control.label,
        list(words),
        format_func=lambda value: words.get(value, str(value)),
        key=control.key,
        help=control.help,
        persist_state="session",
        width=width,
    )


def pair(one: Control, other: Control) -> None:
    """A wide control and a narrow one in a row."""
    with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small"):
        for control, width in ((one, "stretch"), (other, _BOX_PX)):
            choice(control, width) if control.kind == "choice" else box(control, width)
