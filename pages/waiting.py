"""Who waits: where a request's seconds go, what a long prompt does to people mid-sentence, and fan-out."""

from __future__ import annotations

import streamlit as st

from engine import Scenario, ScenarioError  # the whole engine first: two visitors at once would import it from two ends
from engine.study import LONG_PROMPT, cached_shares, interference
from engine.traffic import Trace
from ui import (
    answering,
    fan_out_words,
    interference_chart,
    parts,
    policy_words,
    reading_charts,
    session,
    waiting_charts,
    waiting_studies,
    waiting_tables,
    waiting_words,
)
from ui.assumptions import machines
from ui.controls import controls
from ui.engine_settings import engine_settings
from ui.inputs import row
from ui.runs import Answer
from ui.session import Current, Pinned
from ui.settings import FAN_OUT
from ui.waiting_studies import APART, LOAD
from ui.waiting_words import HALF

SLUG = "waiting"
READING = {
    "batching.policy": "Prompts and answers",
    "batching.max_num_batched_tokens": "Tokens a step",
    "batching.max_num_seqs": "Seats",
    FAN_OUT: "Calls an action",
}
_ASSUMED = (
    "**Stalls** are what others' prompts add to the steps in which a request writes; **writing** is what those steps "
    "take without them. A request that is **put back** (preempted) lost its memory to others and reads again."
)
_NOT_YET = "Follows with the studies above."


def show(answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None) -> None:
    """The answer, whole or first."""
    story = answer.story
    parts.begin(current, scenario)
    parts.opening(waiting_words.headline(story), waiting_words.explanation(story), scenario, pinned)
    st.caption(machines(story, scenario))
    _controls(current)
    waiting_studies.progress(scenario, answer, trace)
    _where(scenario)
    _long_prompt(scenario)
    _load(scenario)
    _chunks(scenario)
    _policies(scenario)
    _cached(scenario)
    _fan_out(scenario)
    parts.assumed(story, scenario, _ASSUMED)


def _controls(current: Current) -> None:
    """What this page studies, and the rest of the engine's settings."""
    drawn = {key: control for key, control in controls(current.base).items() if key in READING}
    with st.container(border=True, gap="small", key="reading"):
        row(drawn, READING)
    engine_settings(current, above=drawn)


def _where(scenario: Scenario) -> None:
    st.markdown("#### Where the seconds go")
    if scenario.parallelism.pp > 1:
        st.markdown(waiting_words.PIPELINE_PARTS)
        return
    found = waiting_studies.known(scenario, APART)
    if found is None or found.result is None:
        st.caption(_NOT_YET if found is None else "It couldn't be taken apart.")
        return
    every, _ = found.result
    by = st.segmented_control(
        "Seconds to the",
        list(waiting_words.WORD),
        default="e2e",
        required=True,
        format_func=lambda key: waiting_words.WORD[key],
        key="where-by",
        persist_state="session",
    )
    where = every[by]
    if not where.levels:
        st.markdown("No answer is complete, so there is nothing to take apart.")
        return
    parts.chart(
        "where",
        waiting_words.where_sentence(where),
        waiting_charts.where_figure(where),
        lambda: waiting_tables.where_table(where),
    )


def _long_prompt(scenario: Scenario) -> None:
    st.markdown("#### A long prompt among people mid-sentence")
    if scenario.batching.policy == "disaggregated":
        st.markdown("Prompts are read by replicas of their own: nobody who writes pauses for one.")
        return
    if scenario.parallelism.pp > 1:
        st.markdown(waiting_words.PIPELINE_PROMPT)
        return
    tokens = st.number_input(
        "Length of the long prompt (tokens)",
        min_value=100,
        max_value=1_000_000,
        value=LONG_PROMPT,
        step=5_000,
        key="long-prompt-tokens",
        help="It comes while others write; nobody else is there. This changes the chart, not the scenario.",
        persist_state="session",
        width=300,
    )
    try:
        found = interference(scenario, tokens)
    except ScenarioError as error:
        parts.problems(error.problems)
        return
    parts.chart(
        "interference",
        waiting_words.interference_sentence(found),
        interference_chart.interference_figure(found),
        lambda: waiting_tables.interference_table(found),
    )


def _chunks(scenario: Scenario) -> None:
    st.markdown("#### How much of a prompt a step may read")
    if scenario.batching.policy != "chunked":
        st.markdown("Only chunked prefill cuts prompts: with this policy a step reads whole prompts.")
        return
    found = waiting_studies.reads(scenario, "chunks")
    own = scenario.batching.max_num_batched_tokens
    if not found or all(read.value != own for read in found):
        st.caption(_NOT_YET if found is None else "No answer is complete, so there is nothing to compare.")
        return
    parts.chart(
        "chunks",
        waiting_words.chunks_sentence(found, own),
        reading_charts.chunks_figure(found, own),
        lambda: waiting_tables.chunks_table(found),
    )
    with st.container(horizontal=True, gap="small", key="use-chunks"):
        for read in found:
            if read.value != own:
                size = int(read.value)
                st.button(f"Use {size:,}", key=f"use-chunk-{size}", on_click=session.change, args=(read.changes,))
    st.caption(waiting_words.source(found))


def _policies(scenario: Scenario) -> None:
    st.markdown("#### How prompts and answers share the machines")
    compared = waiting_studies.policies(scenario)
    if compared is None or not compared[0]:
        st.caption(_NOT_YET if compared is None else "No answer is complete, so there is nothing to compare.")
        return
    found, refused = compared
    parts.chart(
        "policies",
        policy_words.policies_sentence(found),
        reading_charts.policies_figure([policy_words.NAMES[one.policy] for one in found], found),
        lambda: waiting_tables.policies_table(found),
    )
    with st.container(horizontal=True, gap="small", key="use-policies"):
        for one in found:
            if one.policy != scenario.batching.policy:
                words = f"Use {policy_words.NAMES[one.policy]}"
                st.button(words, key=f"use-{one.policy}", on_click=session.change, args=(one.changes,))
    st.caption(policy_words.source(found, refused))


def _load(scenario: Scenario) -> None:
    st.markdown("#### How the wait grows with the load")
    if scenario.batching.policy == "disaggregated":
        st.markdown("Requests of two pools wait twice, for a reader and for a writer: there is no one curve.")
        return
    found = waiting_studies.known(scenario, LOAD)
    if found is None or found.result is None:
        st.caption(_NOT_YET if found is None else "There is no curve: none of these requests fits a replica.")
        return
    curve = found.result
    parts.chart(
        "wait-by-load",
        waiting_words.load_sentence(curve),
        waiting_charts.load_figure(curve),
        lambda: waiting_tables.load_table(curve),
    )
    st.caption(waiting_words.load_source(curve))


def _cached(scenario: Scenario) -> None:
    st.markdown("#### What a cached prefix saves")
    found = waiting_studies.reads(scenario, "cached")
    if not cached_shares(scenario):
        st.markdown("These prompts have no mean length of which a share could be cached.")
        return
    if not found or found[0].value > 0.0 or all(read.value != HALF for read in found):
        st.caption(_NOT_YET if found is None else "No answer is complete, so there is nothing to compare.")
        return
    parts.chart(
        "cached",
        waiting_words.cached_sentence(found),
        reading_charts.cached_figure(found),
        lambda: waiting_tables.cached_table(found),
    )
    st.caption(waiting_words.source(found))


def _fan_out(scenario: Scenario) -> None:
    st.markdown("#### Actions of several calls (fan-out)")
    found = waiting_studies.known(scenario, APART)
    if found is None or found.result is None:
        st.caption(_NOT_YET if found is None else "It couldn't be simulated.")
        return
    _, fan = found.result
    if fan.median_as_call is None:
        st.markdown(fan_out_words.fan_out_sentence(fan))
        return
    parts.chart(
        "fan-out",
        fan_out_words.fan_out_sentence(fan, FAN_OUT in controls(scenario)),
        waiting_charts.fan_out_figure(fan),
        lambda: waiting_tables.fan_out_table(fan),
    )
    st.caption(fan_out_words.fan_out_source(fan))


if __name__ == "__main__":
    answering.page(SLUG, show)
