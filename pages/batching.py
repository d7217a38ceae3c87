"""Who shares the reading: how many conversations ride one read of the weights, and what caps the group."""

from __future__ import annotations

import streamlit as st

from engine import Scenario  # the whole engine first: two visitors at once would import it from two ends
from engine.outcome.story import Story
from engine.study import Group, group, in_flight
from engine.traffic import Trace
from ui import answering, batching_charts, batching_tables, batching_words, parts
from ui.assumptions import machines
from ui.batching_tiles import tiles
from ui.controls import controls
from ui.engine_settings import engine_settings
from ui.grouped import groups_in_time
from ui.inputs import row
from ui.runs import Answer
from ui.session import Current, Pinned

SLUG = "batching"
GROUPING = {
    "batching.policy": "Grouping",
    "batching.max_num_seqs": "Seats",
    "batching.max_num_batched_tokens": "Tokens a step",
}
MEMORY = {
    "batching.gpu_memory_utilization": "Memory share",
    "batching.kv_policy": "A conversation's KV",
    "batching.kv_capacity_tokens": "KV tokens",
    "batching.reserve_output_tokens": "Reserved answer",
}
_SHARING = (
    "**The formula** is about steps that only write. A step that reads prompts, too, lasts longer. Reading weights and "
    "arithmetic overlap in part: the chart gives each its share of the time that they take together, so the weights' "
    "share falls as arithmetic grows. The knee is where doubling the group no longer adds more than a third."
)


def show(answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None) -> None:
    """The answer, whole or first, beside A's."""
    story = answer.story
    parts.begin(current, scenario)
    size = batching_words.size_of(story)
    found = group(scenario, trace, size or 1)
    if found is None:
        parts.headline("Nobody shares the reading: no request of this mix fits on a replica.")
        _controls(current)
        parts.assumed(story, scenario, _SHARING)
        return
    explanation = "" if size is None else batching_words.explanation(found, size, story)
    parts.opening(batching_words.headline(found, size), explanation, scenario, pinned)
    tiles(found, size, _a(pinned, scenario))
    st.caption(machines(story, scenario))
    if scenario.parallelism.pp > 1:
        st.caption(batching_words.PIPELINE.format(scenario.parallelism.pp))
    _controls(current)
    parts.chart(
        "sharing",
        batching_words.sharing_sentence(found),
        batching_charts.sharing_figure(found, size),
        lambda: batching_tables.sharing_table(found),
    )
    _memory_and_seats(found, story, scenario, trace, size)
    groups_in_time(scenario, trace, answer)
    parts.assumed(story, scenario, _SHARING)


def _a(pinned: Pinned | None, scenario: Scenario) -> tuple[Group, int | None] | None:
    """A's group, where A is another scenario without a trace of its own."""
    if pinned is None or pinned.story is None or pinned.scenario == scenario:
        return None
    if pinned.scenario.traffic.process == "trace":
        return None
    size = batching_words.size_of(pinned.story)
    found = group(pinned.scenario, None, size or 1)
    return None if found is None else (found, size)


def _controls(current: Current) -> None:
    """What this page studies, and the rest of the engine's settings."""
    drawn = {key: control for key, control in controls(current.base).items() if key in GROUPING or key in MEMORY}
    with st.container(border=True, gap="small", key="grouping"):
        st.markdown(":small[**The group:** who may share a step]")
        row(drawn, GROUPING)
        st.markdown(":small[**Memory** for conversations; an empty box is computed]")
        row(drawn, MEMORY)
    engine_settings(current, above=drawn)


def _memory_and_seats(found: Group, story: Story, scenario: Scenario, trace: Trace | None, size: int | None) -> None:
    """What memory there is, and how many conversations it holds, by their length."""
    memory, rate = found.memory, batching_words.flight_rate(story, scenario)
    left, right = st.columns(2, gap="large") if memory is not None else (st.container(), st.container())
    if memory is not None:
        word_s = batching_words.pace(found, story, size)
        flight = in_flight(scenario, rate, word_s, trace) if rate and found.kv_capacity_tokens else None
        with left:
            parts.chart(
                "memory",
                batching_words.memory_sentence(found, memory, flight),
                batching_charts.memory_figure(memory),
                lambda: batching_tables.memory_table(memory),
            )
    with right:
        parts.chart(
            "seats",
            batching_words.seats_sentence(found),
            batching_charts.seats_figure(found, size),
            lambda: batching_tables.seats_table(found),
        )


if __name__ == "__main__":
    answering.page(SLUG, show)
