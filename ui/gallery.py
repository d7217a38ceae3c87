"""More stories: every preset as a card that opens it."""

from __future__ import annotations

import streamlit as st

from engine.scenario.presets import Preset, presets
from ui import session
from ui.session import Current
from ui.words import plain

_ACROSS = 3


def gallery(current: Current) -> None:
    """Cards with title, story and a button, in the order of the presets."""
    st.markdown("#### More stories")
    entries = presets()
    for start in range(0, len(entries), _ACROSS):
        for column, entry in zip(st.columns(_ACROSS), entries[start : start + _ACROSS], strict=False):
            with column:
                _card(entry, current)


def _card(entry: Preset, current: Current) -> None:
    shown = current.scenario is not None and current.scenario.token == entry.scenario.token
    with st.container(border=True, key=f"card-{entry.name}", height="stretch"):
        st.markdown(f"**{plain(entry.title)}**")
        st.caption(plain(entry.story))
        st.button(
            "Shown above" if shown else "Open this story",
            key=f"open-{entry.name}",
            disabled=shown,
            on_click=_open,
            args=(entry,),
        )


def _open(entry: Preset) -> None:
    session.load(entry.scenario, entry.name)
    session.state().to_top = True


def to_top() -> None:
    """Scroll up, once after something below was opened or tried: its answer is at the top."""
    state = session.state()
    if state.to_top:
        state.to_top = False
        st.html(
            f"<script>/* {state.loads} */document.querySelector('[data-testid=stMain]')?.scrollTo({{top: 0}})</script>",
            unsafe_allow_javascript=True,
        )
