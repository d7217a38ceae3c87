"""The three figures of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from engine.outcome.story import Story
from ui import against
from ui.scaling_tiles import lag_tile
from ui.words import METRICS, REASONS, SHORT, listed, percent, seconds

_WORTH_SAYING = 0.02  # share without an answer from which on a percentile of the others needs a warning beside it


def tiles(story: Story, final: bool, pinned: Story | None = None) -> None:
    """Three tiles, and with an autoscaler the lag; with A, each says how far it is from A's."""
    promise, tail = story.promise, story.tail
    word, term = SHORT[tail.metric], METRICS[tail.metric][1]
    first, second, third, *more = st.columns(3 if story.relief is None else 4)
    promised = f"promise {seconds(promise.objective.threshold_s)}" if promise else "nothing promised"
    missing = tail.unanswered / (tail.answered + tail.unanswered) if final and tail.unanswered else 0.0
    if missing > _WORTH_SAYING and (promise is None or "unfinished" in promise.objective.failures):
        promised = f"{promised}, but {_missing(missing)} got no answer"
    first.metric(
        f"{word[:1].upper()}{word[1:]}, slowest 5 % ({term} p95)",
        seconds(tail.p95) if tail.p95 is not None else "–",
        against.tail(pinned, story) if pinned else promised,
        delta_color="off", delta_arrow="off", border=True, height="stretch",
        help=f"Of the {tail.answered:,} requests that were answered in full; {tail.unanswered:,} were not."
        + _interval(tail.p95_ci, seconds),
    )  # fmt: skip
    kept = promise.attainment.attainment if promise else None
    target = f"target {percent(promise.objective.target)}" if promise else "nothing promised"
    interval = promise.attainment.ci95 if promise else None
    second.metric(
        "Kept the promise",
        percent(kept) if kept is not None else "–",
        against.kept(pinned, story) if pinned else target,
        help="Share of requests in time." + _failures(story) + _interval(interval, percent),
        delta_color="off", delta_arrow="off", border=True, height="stretch",
    )  # fmt: skip
    why = listed([REASONS[reason] for reason in story.reasons][:2]) if story.reasons else "nobody"
    third.metric(
        "Turned away",
        percent(story.turned_away) if story.turned_away is not None else "–",
        against.turned_away(pinned, story) if pinned else why,
        help="Share of requests that were refused." + _interval(story.turned_away_ci, percent),
        delta_color="off", delta_arrow="off", border=True, height="stretch",
    )  # fmt: skip
    if story.relief is not None:
        lag_tile(more[0], story.relief, pinned.relief if pinned else None)


def _interval(ends: Sequence[float] | None, words: Callable[[float], str]) -> str:
    return "" if ends is None else f" 95 % interval from the spread over runs: {words(ends[0])} to {words(ends[1])}."


def _failures(story: Story) -> str:
    states = story.promise.objective.failures if story.promise else ()
    words = listed([state.replace("_", " ") for state in states])
    return f" By this promise, requests that are {words} count as broken." if words else ""


def _missing(share: float) -> str:
    return "all" if share == 1.0 else percent(share, 2)
