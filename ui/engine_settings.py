"""The expander with the engine's settings under the names of its flags."""

from __future__ import annotations

from collections.abc import Container

import streamlit as st

from ui.controls import POLICY, controls
from ui.inputs import box, choice
from ui.own_point import own_point
from ui.session import Current
from ui.settings import GROUPS, ONLY_WITH

_ACROSS = 4


def engine_settings(current: Current, above: Container[str] = ()) -> None:
    """One column a group. A changed value is the scenario's like any other: in the link, in undo, in every page.

    `above`: the keys of those that the page has as controls of its own.
    """
    drawn = controls(current.base)
    with st.expander("Engine settings", icon=":material/tune:", key="engine-settings"):
        st.caption("The scenario's values under the names that they have in vLLM, or here where it has none.")
        groups = list(GROUPS.items())
        for first in range(0, len(groups), _ACROSS):
            for column, (title, paths) in zip(st.columns(_ACROSS), groups[first : first + _ACROSS], strict=False):
                with column:
                    st.markdown(f"##### {title}")
                    for control in (drawn[path] for path in paths if path in drawn and _matters(path)):
                        (choice if control.kind == "choice" else box)(control, twin=control.key in above)
    own_point(current)


def _matters(path: str) -> bool:
    """Whether the batching policy that is chosen now looks at a setting."""
    return ONLY_WITH.get(path) in (None, st.session_state[POLICY])
