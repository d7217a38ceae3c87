"""The current scenario of a browser session: one function that every page calls first.

A scenario is the base (a preset, an opened link, an uploaded trace) with the controls' values on top. The URL carries
it: when it holds something else than what was last written to it or read from it, somebody opened a link, edited the
address or went back, and the base is read anew. No page relies on `app.py` having run.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from engine.outcome.story import Story
from engine.scenario import Problem, Scenario, ScenarioError
from engine.scenario.link import LinkError, open_link
from engine.scenario.presets import FIRST, preset
from ui import traces
from ui.control import Value
from ui.controls import apply, controls
from ui.history import History, Visit

PRESET = "preset"
"""Key of the list of presets."""
_STATE = "headroom"
_ECHO_S = 0.25
"""For so long after a link was written, a request may still carry the one before."""


@dataclass
class State:
    """What a session remembers besides its widgets."""

    base: Scenario
    preset: str | None
    page: str
    link: str = ""
    """The query string that the URL was last seen with, or given."""
    meant: str = ""
    """Token of the scenario that this query string stands for."""
    before: str = ""
    """The query string before it."""
    written_at: float = 0.0
    own_at: float = -inf
    """When the app asked for a run itself: the one that follows at once may have the URL of an older request."""
    values: dict[str, Value] = field(default_factory=dict)
    """The controls' values when the last run read them."""
    trouble: Trouble | None = None
    loads: int = 0
    """How many times the base was changed."""
    upload_error: str = ""
    """What is wrong with the file that was uploaded last."""
    history: History = field(default_factory=History)
    pinned: Pinned | None = None
    bare: dict[str, Visit] = field(default_factory=dict)
    """What was shown on the pages that were come to from another one: what the browser's Back to an address without
    a link means there."""
    to_top: bool = False
    """Whether the page should be scrolled up when it is drawn next."""


@dataclass
class Pinned:
    """What is compared with: A, and the best answer to it so far."""

    scenario: Scenario
    story: Story | None = None
    final: bool = False


@dataclass(frozen=True)
class Trouble:
    """A link that can't be opened as it is, and what to open instead."""

    problems: tuple[Problem, ...]
    nearest: Scenario
    kept: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class Current:
    """What a page works with. Without a scenario, `trouble` or `problems` says why."""

    scenario: Scenario | None
    base: Scenario
    preset: str | None
    trouble: Trouble | None
    problems: tuple[Problem, ...]
    link: str | None
    """Query string of the scenario; None when it is too long for a link."""


def current(page: str) -> Current:
    """The scenario that this session is about, by its URL and its controls. The first call of every page."""
    _settle()
    link = _url()
    state: State | None = st.session_state.get(_STATE)
    if state is None:
        state = st.session_state[_STATE] = State(preset(FIRST).scenario, FIRST, page)
        load(state.base, state.preset)
        state.link = "?"  # whatever the URL says is news
    own, state.own_at = time.monotonic() - state.own_at < _ECHO_S, -inf
    if link != state.link and not own and not _own_echo(state, link, page):
        _open(state, link, page)
    arrived = page != state.page and not link
    state.page = page
    if state.trouble is not None:
        return Current(None, state.base, state.preset, state.trouble, (), None)
    found = _from_controls(state, link)
    if arrived and found.scenario is not None:
        state.bare[page] = Visit(found.scenario, found.preset)
    return found


def run_again() -> None:
    """Draw the page anew, without anybody's having asked for it; this run ends here."""
    state().own_at = time.monotonic()
    st.rerun()


def load(base: Scenario, name: str | None) -> None:
    """Start from another scenario: its values into the controls. Before they are drawn, or in a callback."""
    state: State = st.session_state[_STATE]
    for key in controls(state.base):
        for widget in (key, slider_key(key)):
            st.session_state.pop(widget, None)
    state.base, state.preset, state.trouble, state.upload_error = base, name, None, ""
    for key, control in controls(base).items():
        st.session_state[key] = control.value
        if control.stops:
            st.session_state[slider_key(key)] = control.nearest_stop(float(control.value))
    st.session_state[PRESET] = name
    state.values = values(base)
    state.loads += 1


def state() -> State:
    """What this session remembers; after `current`."""
    found: State = st.session_state[_STATE]
    return found


def present() -> Scenario:
    """The scenario that the controls show; the base where they don't go together. In a callback."""
    try:
        return apply(state().base, values(state().base))
    except ScenarioError:
        return state().base


def change(changes: Mapping[str, object]) -> None:
    """Make a change that a page offers, and show its answer from the top. In a callback."""
    try:
        load(present().replace(dict(changes)), state().preset)
    except ScenarioError:  # the controls were moved at the same moment, and the two don't go together
        return
    state().to_top = True


def pin() -> None:
    """Keep the present scenario as A. In a callback."""
    state().pinned = Pinned(present())


def unpin() -> None:
    """Compare with nothing any more. In a callback."""
    state().pinned = None


def pinned() -> Pinned | None:
    """A, if there is one."""
    return state().pinned


def undo() -> None:
    """Back to the scenario before this one, whatever the browser's history says. In a callback."""
    _show(state().history.undo())


def redo() -> None:
    """Take an undo back. In a callback."""
    _show(state().history.redo())


def _show(visit: Visit | None) -> None:
    if visit is not None:
        load(visit.scenario, visit.preset)


def slider_key(key: str) -> str:
    """Key of the slider beside a box."""
    return f"{key} slider"


def values(base: Scenario) -> dict[str, Value]:
    """The controls' present values."""
    return {key: st.session_state[key] for key in controls(base) if key in st.session_state}


def link_of(scenario: Scenario, name: str | None) -> str | None:
    """The query string that stands for a scenario; "" for the untouched first preset, None when it is too long."""
    first = preset(FIRST).scenario
    if name == FIRST and scenario.token == first.token:
        return ""
    try:
        return scenario.to_link(name)
    except LinkError:
        return None


def _url() -> str:
    """The URL's query string, with what concerns us in one order."""
    given: dict[str, Any] = st.query_params.to_dict()
    return urlencode([(key, given[key]) for key in ("p", "s") if key in given])


def _own_echo(state: State, link: str, page: str) -> bool:
    """Whether a URL that isn't the last one says nothing new.

    A control that moved while the link to its former value was still on its way comes with the URL before that; so may
    any click right after. Another page of this app comes with no link at all.
    """
    if state.values != values(state.base):
        return True
    if link == state.before and time.monotonic() - state.written_at < _ECHO_S:
        return True
    return not link and page != state.page


def _open(state: State, link: str, page: str) -> None:
    """Read a link from outside: the base of what follows, or trouble."""
    state.before, state.link = state.link, link
    if not link and page in state.bare:
        visit = state.bare[page]
        load(visit.scenario, visit.preset)
        state.meant = visit.scenario.token
        return
    try:
        opened = open_link(link)
    except LinkError as error:
        state.trouble = Trouble(error.problems, error.nearest, error.kept, error.dropped)
    else:
        problem = traces.missing(opened.scenario)
        state.trouble = problem and Trouble((problem,), traces.without(opened.scenario), (), ())
    if state.trouble is not None:
        st.session_state[PRESET] = None
        return
    load(opened.scenario, opened.preset)
    state.meant = opened.scenario.token


def _from_controls(state: State, link: str) -> Current:
    for key, control in controls(state.base).items():
        if key not in st.session_state:
            st.session_state[key] = control.value
        if control.stops and slider_key(key) not in st.session_state:
            st.session_state[slider_key(key)] = control.nearest_stop(float(control.value))
    state.values = values(state.base)
    try:
        scenario = apply(state.base, state.values)
    except ScenarioError as error:
        return Current(None, state.base, state.preset, None, error.problems, None)
    state.history.visit(scenario, state.preset)
    share = link_of(scenario, state.preset)
    if scenario.token != state.meant:
        state.before, state.link, state.meant = link, share or "", scenario.token
        state.written_at = time.monotonic()
    if link != state.link:
        _write(state.link)
    return Current(scenario, state.base, state.preset, None, (), share)


def _write(link: str) -> None:
    """Put a query string into the URL: one entry in the browser's history."""
    if link:
        st.query_params.from_dict(dict(part.split("=", 1) for part in link.split("&")))
    else:
        st.query_params.clear()


@cache
def _settle() -> None:
    """Once a process, after its imports: keep the collector, which runs after every script run, off what stays."""
    gc.collect()
    gc.freeze()
