"""Side work that a page follows: asked for once the scenario stands still, drawn as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from ui import session

_EVERY_S = 0.5
_STANDS_S = 0.4
"""A scenario that is changed sooner isn't worth the work."""


def follow(ask: Callable[[], bool], draw: Callable[[float], None]) -> None:
    """Ask for the work again and again, or it stops; draw the page anew once `ask` says that there is something new.

    Until then `draw` shows how far it is, given the seconds since the page was drawn.
    """
    _follow(ask, draw, time.monotonic())


@st.fragment(run_every=_EVERY_S)
def _follow(ask: Callable[[], bool], draw: Callable[[float], None], since: float) -> None:
    waited_s = time.monotonic() - since
    if waited_s > _STANDS_S and ask():
        session.run_again()
    draw(waited_s)
