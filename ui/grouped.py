"""The simulated part of the batching page: worked out in another process, shown when it is there."""

from __future__ import annotations

import streamlit as st

from engine.scenario import Scenario
from engine.scenario.presets import preset
from engine.study import Grouped
from engine.traffic import Trace
from ui import batching_tables, batching_words, grouped_charts, parts, runs, session, work
from ui.following import follow
from ui.runs import Answer

WORDY = "wordy"


def groups_in_time(scenario: Scenario, trace: Trace | None, answer: Answer) -> None:
    """The group over the run and both ways of grouping; or that they are worked out."""
    with st.container(key="grouped", gap="small"):
        st.markdown("#### When traffic gets wordier")
        _wordier(scenario)
        found = runs.shared().known_aside(_key(scenario))
        if scenario.parallelism.pp > 1:
            st.markdown("A pipeline (PP) has a group in every stage; they aren't drawn over time here.")
        elif not answer.final:
            st.caption("Follows the whole answer.")
        elif found is None:
            follow(lambda: go_on(scenario, trace), _to_come)
        elif found.result is None:
            st.markdown("The groups of this scenario couldn't be simulated.")
        else:
            _show(found.result, scenario)


def go_on(scenario: Scenario, trace: Trace | None) -> bool:
    """Ask for it, so that it is worked out; whether it is there."""
    return runs.shared().aside(_key(scenario), work.grouped_of, scenario, trace) is not None


def _key(scenario: Scenario) -> str:
    return f"grouped {scenario.token}"


def _wordier(scenario: Scenario) -> None:
    """A button that makes lengths grow, or opens the story about it."""
    entry = preset(WORDY)
    told = entry.scenario.traffic.growth
    assert told is not None
    if scenario.traffic.growth is not None:
        none = {"traffic.growth": None}
        st.button("Keep lengths as they are", key="no-growth", on_click=session.change, args=(none,))
    elif scenario.traffic.process == "closed" or scenario.run.horizon_s is None:  # nothing can grow there
        st.button(f"Open “{entry.title}”", key="open-wordy-here", on_click=_open)
    else:
        words = f"Let prompts grow to {told.prompt_factor:g} times their length"
        changes = {"traffic.growth": told.model_dump(mode="json")}
        st.button(words, key="grow", on_click=session.change, args=(changes,))


def _open() -> None:
    session.load(preset(WORDY).scenario, WORDY)
    session.state().to_top = True


def _to_come(waited_s: float) -> None:
    st.caption(f":material/hourglass_top: Simulating the groups ({waited_s:.0f} s).")


def _show(found: Grouped, scenario: Scenario) -> None:
    course = found.course
    horizon = scenario.run.horizon_s or float(course.start_s[-1] + course.width_s)
    parts.chart(
        "group",
        batching_words.course_sentence(course, scenario),
        grouped_charts.course_figure(course, horizon, scenario.run.warmup_s, scenario.batching.max_num_seqs),
        lambda: batching_tables.course_table(course),
    )
    st.markdown("#### Joining at any step, or groups that end together")
    parts.chart(
        "ways",
        batching_words.ways_sentence(found),
        grouped_charts.ways_figure(found),
        lambda: batching_tables.ways_table(found),
    )
    st.caption(batching_words.ways_source(found))
