"""Single controls on the screen: a slider with its box, a box, a list."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Literal

import streamlit as st

from ui import session
from ui.control import Control, position
from ui.controls import POLICY, POOLS, burstiness_word, controls

_BOX_PX = 104
_ROW_PX = 154
"""Two of them fit side by side on a telephone."""
_NULL_PX, _WIDE_PX, _WIDEST_PX = 200, 236, 300
_SHORT_WORD, _LONG_WORD = 12, 32
_EMPTY, _SHOWN = 9, 14
"""Letters of what an empty box stands for that fit into one of `_ROW_PX`, and of `_NULL_PX`."""
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
    position = st.session_state.get(session.slider_key(key))
    if position is None:  # a button of the same run took the control away
        return
    st.session_state[key] = int(position) if whole else float(position)


def _follow_box(control: Control) -> None:
    if control.stops and control.key in st.session_state:
        st.session_state[session.slider_key(control.key)] = control.nearest_stop(float(st.session_state[control.key]))


def row(drawn: Mapping[str, Control], labels: Mapping[str, str], twins: Container[str] = ()) -> None:
    """Controls side by side under labels of a page's own, as many in a line as there is room for.

    `twins`: the keys of those that the sidebar has already.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for control in (replace(drawn[key], label=label) for key, label in labels.items() if key in drawn):
            twin = control.key in twins
            (choice if control.kind == "choice" else box)(control, width=_width(control), twin=twin)


def _width(control: Control) -> int:
    """Lists of long words are wider, and boxes that stand for many when empty."""
    longest = max(map(len, (control.choices or {}).values()), default=0)
    if longest > _LONG_WORD:
        return _WIDEST_PX
    if len(control.null) > _EMPTY:
        return _NULL_PX
    return _WIDE_PX if longest > _SHORT_WORD else _ROW_PX


def _twin(control: Control) -> str:
    """Key of the second widget for a control; it shows the first one's value."""
    key = f"{control.key} twin"
    st.session_state[key] = st.session_state[control.key]
    return key


def _follow_twin(control: Control) -> None:
    st.session_state[control.key] = st.session_state[f"{control.key} twin"]
    _follow_box(control)
    _follow_choice(control)


def _follow_choice(control: Control) -> None:
    """Two pools that are chosen share the replicas out that there are, unless they have had sizes before."""
    several = int(st.session_state["fleet.replicas"])
    if control.key != POLICY or st.session_state[POLICY] != "disaggregated" or several < 2:
        return
    if any(st.session_state[pool] > 1 for pool in POOLS):
        return
    drawn = controls(session.state().base)
    for pool, size in zip(POOLS, (several // 2, several - several // 2), strict=True):
        st.session_state[pool] = size
        _follow_box(drawn[pool])


def box(control: Control, width: Width = "stretch", hidden: bool = False, twin: bool = False) -> None:
    """A box for a number. Empty where the control allows it, and then it says what that stands for.

    A `twin` is a second one for a control that stands on the same page already.
    """
    number = int if control.whole else float
    st.number_input(
        control.label,
        min_value=number(control.low) if control.low is not None else None,
        max_value=number(control.high) if control.high is not None else None,
        value=None if control.null else "min",
        placeholder=_brief(control.null) or None,
        step=number(control.step),
        format="%d" if control.whole else "%g",
        key=_twin(control) if twin else control.key,
        help=None if hidden else control.help,
        label_visibility="collapsed" if hidden else "visible",
        on_change=_follow_twin if twin else _follow_box,
        args=(control,),
        persist_state="session",
        width=width,
    )


def _brief(null: str) -> str:
    """What an empty box stands for, as much of it as its width shows; the help has it all."""
    first = null.partition(";")[0]
    return first if len(first) <= _SHOWN else f"{first[: _SHOWN + 1].rpartition(' ')[0]} …"


def choice(control: Control, width: Width = "stretch", twin: bool = False) -> None:
    """A list of words; for `twin` see `box`."""
    assert control.choices is not None
    words = control.choices
    st.selectbox(
        control.label,
        list(words),
        format_func=lambda value: words.get(value, str(value)),
        key=_twin(control) if twin else control.key,
        help=control.help,
        on_change=_follow_twin if twin else _follow_choice,
        args=(control,),
        persist_state="session",
        width=width,
    )


def pair(one: Control, other: Control) -> None:
    """A wide control and a narrow one in a row."""
    with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small"):
        for control, width in ((one, "stretch"), (other, _BOX_PX)):
            choice(control, width) if control.kind == "choice" else box(control, width)
