"""From the scenario to its answer on the screen: what every page does, whatever it shows.

The first answer comes within a moment; while the whole one is computed in another process the page stands, and any
change of the inputs ends the waiting.
"""

from __future__ import annotations

import time
from typing import Protocol

import streamlit as st

from engine.scenario import Scenario, ScenarioError
from engine.traffic import Trace, TraceError
from ui import frame, parts, runs, session, traces
from ui.engine_settings import engine_settings
from ui.gallery import gallery
from ui.runs import Answer
from ui.session import Current, Pinned
from ui.widgets import sidebar
from ui.words import NBSP, plain, sentence

_SHOWN = "last shown"
_WAIT = ":material/hourglass_top:"
_FIRST_THINGS_FIRST_S = 0.15  # the browser draws the first answer before its processor is taken


class Show(Protocol):
    """Draws a page's answer, whole or first, beside A's."""

    def __call__(
        self, answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None
    ) -> None: ...


class Stand(Protocol):
    """Draws a page that answers from the scenario itself, without simulating it."""

    def __call__(self, scenario: Scenario, current: Current) -> None: ...


def page(slug: str, show: Show, *, patient: bool = False) -> None:
    """The whole page: sidebar, then the answer, or what is in its way. A `patient` page has no use for a first answer,
    and waits for the whole one."""
    _page(slug, lambda scenario, current: _answer(current, scenario, show, patient))


def standing(slug: str, show: Stand) -> None:
    """The same for a page that needs no simulation."""
    _page(slug, show)


def _page(slug: str, show: Stand) -> None:
    frame.prepare()
    current = session.current(slug)
    sidebar(current)
    if current.trouble is not None:
        parts.trouble(current)
    elif current.scenario is None:
        parts.headline("These settings don't go together.")
        parts.problems(current.problems)
        _way_out(current)
    else:
        show(current.scenario, current)


def _way_out(current: Current) -> None:
    """Without an answer: where settings that the sidebar doesn't have can be put right, and other stories."""
    engine_settings(current)
    gallery(current)


def _answer(current: Current, scenario: Scenario, show: Show, patient: bool) -> None:
    trace = _trace(scenario)
    try:
        answer = runs.shared().first(scenario, trace)
        if answer is None or (patient and not answer.final):
            _stale(current, scenario, trace, show, patient)
            return
    except ScenarioError as error:
        parts.headline("This can't run as it is.")
        parts.problems(error.problems)
        _way_out(current)
        return
    except TraceError as error:
        parts.headline("This trace can't be replayed.")
        st.error(str(error), icon=":material/error:")
        _way_out(current)
        return
    st.session_state[_SHOWN] = (answer, scenario)
    pinned = _pinned()
    status = st.empty()
    show(answer, scenario, current, trace, pinned)
    if not answer.final:
        _refine(scenario, trace, status, "First answer, from the beginning of each run; the whole run follows ({}).")
    elif pinned is not None and not pinned.final:
        _refine(
            pinned.scenario, _trace(pinned.scenario), status, "A is its first answer yet; its whole run follows ({})."
        )


def _trace(scenario: Scenario) -> Trace | None:
    kept = traces.shared().get(scenario.traffic.trace.source)
    return kept.trace if kept is not None else None


def _pinned() -> Pinned | None:
    """A with the best answer that there is by now; None without A, or when its answer is lost and would take long."""
    pinned = session.pinned()
    if pinned is None:
        return None
    known = runs.shared().known(pinned.scenario)
    if known is None and pinned.story is None:
        known = runs.shared().first(pinned.scenario, _trace(pinned.scenario))
    if known is not None and (known.final or pinned.story is None):
        pinned.story, pinned.final = known.story, known.final
    return pinned if pinned.story is not None else None


def _stale(current: Current, scenario: Scenario, trace: Trace | None, show: Show, patient: bool) -> None:
    """Nothing to show within a moment: the last answer, greyed, until this one is there."""
    status = st.empty()
    last = st.session_state.get(_SHOWN)
    if last is not None and patient and not last[0].final:
        last = None
    if last is not None:
        with st.container(key="stale"):
            show(Answer(last[0].story, final=False), last[1], current, trace, None)
    before = " Below, greyed, is the answer to the settings before." if last is not None else ""
    _refine(scenario, trace, status, f"Computing the whole run ({{}}).{before}")


def _refine(scenario: Scenario, trace: Trace | None, status: st.delta_generator.DeltaGenerator, text: str) -> None:
    """Wait for the whole answer, saying so, then draw the page anew. Any change of the inputs ends the waiting."""
    store = runs.shared()
    status.info(text.format(f"0{NBSP}s"), icon=_WAIT)
    time.sleep(_FIRST_THINGS_FIRST_S)
    while True:
        found = store.whole(scenario, trace)
        if isinstance(found, Answer):
            session.run_again()
        if found.error is not None:
            store.jobs.forget(found.key)
            status.error(f"The whole run failed: {plain(sentence(str(found.error)))} Change a setting to try again.")
            return
        ahead = store.jobs.ahead(found)
        waiting = f"busy, {ahead} ahead" if ahead else f"{found.running_s:.0f}{NBSP}s"
        status.info(text.format(waiting), icon=_WAIT)
        time.sleep(0.1)
