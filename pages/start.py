"""Will it hold? Who waits, how long, and who is turned away: a verdict, three tiles, three charts."""

from __future__ import annotations

import math
import time

import streamlit as st

from engine.outcome.story import Story
from engine.scenario import Scenario, ScenarioError
from engine.scenario.presets import FIRST, preset
from engine.traffic import Trace, TraceError
from ui import against, charts, frame, parts, runs, session, tables, traces, verdict
from ui.assumptions import assumptions, footer, machines
from ui.engine_settings import engine_settings
from ui.gallery import gallery, to_top
from ui.runs import Answer
from ui.session import Current, Pinned
from ui.tiles import tiles
from ui.try_this import try_this
from ui.widgets import sidebar
from ui.words import METRICS, NBSP, SHORT, plain, sentence

SLUG = "start"
_SHOWN = "last shown"
_WAIT = ":material/hourglass_top:"
_FIRST_THINGS_FIRST_S = 0.15  # the browser draws the first answer before its processor is taken


def page() -> None:
    """The whole page."""
    frame.prepare()
    current = session.current(SLUG)
    sidebar(current)
    if current.trouble is not None:
        parts.trouble(current)
    elif current.scenario is None:
        parts.headline("These settings don't go together.")
        parts.problems(current.problems)
        _way_out(current)
    else:
        _answer(current, current.scenario)


def _way_out(current: Current) -> None:
    """Without an answer: where settings that the sidebar doesn't have can be put right, and other stories."""
    engine_settings(current)
    gallery(current)


def _answer(current: Current, scenario: Scenario) -> None:
    trace = _trace(scenario)
    try:
        answer = runs.shared().first(scenario, trace)
        if answer is None:
            _stale(current, scenario, trace)
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
    st.session_state[_SHOWN] = (answer.story, scenario)
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


def _stale(current: Current, scenario: Scenario, trace: Trace | None) -> None:
    """Nothing to show within a moment: the last answer, greyed, until this one is there."""
    status = st.empty()
    last = st.session_state.get(_SHOWN)
    if last is not None:
        with st.container(key="stale"):
            show(Answer(last[0], final=False), last[1], current, trace, None)
    before = " Below, greyed, is the answer to the settings before." if last is not None else ""
    _refine(scenario, trace, status, f"Computing a large run ({{}}).{before}")


def _refine(scenario: Scenario, trace: Trace | None, status: st.delta_generator.DeltaGenerator, text: str) -> None:
    """Wait for the whole answer, saying so, then draw the page anew. Any change of the inputs ends the waiting."""
    store = runs.shared()
    status.info(text.format(f"0{NBSP}s"), icon=_WAIT)
    time.sleep(_FIRST_THINGS_FIRST_S)
    while True:
        found = store.whole(scenario, trace)
        if isinstance(found, Answer):
            st.rerun()
        if found.error is not None:
            store.jobs.forget(found.key)
            status.error(f"The whole run failed: {plain(sentence(str(found.error)))} Change a setting to try again.")
            return
        ahead = store.jobs.ahead(found)
        waiting = f"busy, {ahead} ahead" if ahead else f"{found.running_s:.0f}{NBSP}s"
        status.info(text.format(waiting), icon=_WAIT)
        time.sleep(0.1)


def show(
    answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None = None
) -> None:
    """The answer, whole or first, beside A's."""
    story = answer.story
    to_top()
    told = preset(current.preset) if current.preset else None
    if told is not None and told.name != FIRST and told.scenario == scenario:  # the first one's verdict is its story
        st.caption(f"**{plain(told.title)}.** {plain(told.story)}")
    parts.headline(verdict.headline(story, scenario))
    st.markdown(verdict.explanation(story))
    if pinned is not None:
        st.markdown(against.changed(pinned.scenario, scenario))
    a = pinned.story if pinned is not None and pinned.scenario != scenario else None
    tiles(story, answer.final, a)
    st.caption(machines(story, scenario))
    engine_settings(current)
    horizon = scenario.run.horizon_s or float(story.summary["run"]["horizon_s"])
    warmup = scenario.run.warmup_s
    parts.chart(
        "arrivals",
        verdict.arrivals_sentence(story, scenario),
        charts.arrivals_figure(story.arrivals, horizon, warmup, a.arrivals if a else None),
        lambda: tables.arrivals_table(story),
    )
    try_this(scenario, trace, answer.final)
    _waits_and_refusals(story, horizon, warmup, a)
    gallery(current)
    st.markdown("#### What this assumes")
    st.markdown("\n".join(f"- {line}" for line in assumptions(scenario)))
    for note in story.summary["notes"]:
        st.caption(f":material/info: {plain(note)}")
    st.caption(footer(story, scenario))


def _waits_and_refusals(story: Story, horizon_s: float, warmup_s: float, a: Story | None) -> None:
    """Two charts side by side; one that would be empty gives its place to the other, and is a sentence."""
    waited, refused = not math.isnan(story.latencies.worst_s), bool(story.refusals.shares)
    refused = refused or bool(a and a.refusals.shares)
    left, right = st.columns(2, gap="large") if waited and refused else (st.container(), st.container())
    with left:
        if waited:
            threshold = story.promise.objective.threshold_s if story.promise else None
            axis = f"{SHORT[story.tail.metric]} ({METRICS[story.tail.metric][1]})"
            same = a.latencies if a and a.tail.metric == story.tail.metric else None
            parts.chart(
                "latency",
                verdict.latency_sentence(story),
                charts.latency_figure(story.latencies, horizon_s, warmup_s, axis, threshold, same),
                lambda: tables.latency_table(story),
            )
        else:
            st.markdown(verdict.latency_sentence(story))
    with right:
        if refused:
            parts.chart(
                "refusals",
                verdict.refusals_sentence(story),
                charts.refusals_figure(story.refusals, horizon_s, warmup_s, a.refusals if a else None),
                lambda: tables.refusals_table(story),
            )
        else:
            st.markdown(verdict.refusals_sentence(story))


if __name__ == "__main__":
    page()
