"""Will it hold? Who waits, how long, and who is turned away: a verdict, three tiles, three charts."""

from __future__ import annotations

import math

import plotly.graph_objects as go
import streamlit as st

from engine import Scenario  # the whole engine first: two visitors at once would import it from two ends
from engine.outcome.story import Story
from engine.traffic import Trace
from ui import answering, charts, parts, tables, verdict
from ui.assumptions import machines
from ui.engine_settings import engine_settings
from ui.gallery import gallery
from ui.runs import Answer
from ui.session import Current, Pinned
from ui.tiles import tiles
from ui.try_this import try_this
from ui.words import METRICS, SHORT

SLUG = "start"


def show(answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None) -> None:
    """The answer, whole or first, beside A's."""
    story = answer.story
    parts.begin(current, scenario)
    a = parts.opening(verdict.headline(story, scenario), verdict.explanation(story), scenario, pinned)
    tiles(story, answer.final, a)
    st.caption(machines(story, scenario))
    engine_settings(current)
    horizon = parts.horizon_s(story, scenario)
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
    parts.assumed(story, scenario)


def _waits_and_refusals(story: Story, horizon_s: float, warmup_s: float, a: Story | None) -> None:
    waited, refused = not math.isnan(story.latencies.worst_s), bool(story.refusals.shares)
    refused = refused or bool(a and a.refusals.shares)

    def latency() -> go.Figure:
        threshold = story.promise.objective.threshold_s if story.promise else None
        axis = f"{SHORT[story.tail.metric]} ({METRICS[story.tail.metric][1]})"
        same = a.latencies if a and a.tail.metric == story.tail.metric else None
        return charts.latency_figure(story.latencies, horizon_s, warmup_s, axis, threshold, same)

    def refusals() -> go.Figure:
        return charts.refusals_figure(story.refusals, horizon_s, warmup_s, a.refusals if a else None)

    parts.beside(
        parts.Part(
            "latency",
            verdict.latency_sentence(story),
            latency if waited else None,
            lambda: tables.latency_table(story),
        ),
        parts.Part(
            "refusals",
            verdict.refusals_sentence(story),
            refusals if refused else None,
            lambda: tables.refusals_table(story),
        ),
    )


if __name__ == "__main__":
    answering.page(SLUG, show)
