"""What every page starts with: the browser tab, and the little that the theme can't say."""

from __future__ import annotations

import streamlit as st

TITLE = "Headroom"
_SIDEBAR_PX = 330
_STYLE = """
<style>
.st-key-stale { opacity: 0.4; }
[data-testid="stMetricDelta"], [data-testid="stMetricDelta"] * { white-space: normal !important; height: auto; }
[data-testid="stMetricLabel"] * { white-space: normal !important; }
</style>
"""


def prepare() -> None:
    """Set the page up. Callable from `app.py` and from a page that runs without it."""
    st.set_page_config(
        page_title=TITLE, page_icon=":material/stacked_line_chart:", layout="wide", initial_sidebar_state=_SIDEBAR_PX
    )
    st.html(_STYLE)
