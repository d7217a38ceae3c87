"""The scaling page's figures; the lag's is the start page's, too."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.outcome.relief import Relief
from engine.outcome.story import Story
from engine.study import Spare
from ui import scaling_words
from ui.words import count, digits, money, percent

_NOTHING = "–"
_LOOK = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}


def lag_tile(place: DeltaGenerator, r: Relief, a: Relief | None = None) -> None:
    """When help arrives."""
    below = scaling_words.lag_below(r) if a is None else f"A: {scaling_words.lag(a)}"
    place.metric("Help arrives after (lag)", scaling_words.lag(r), below, help=scaling_words.lag_help(r), **_LOOK)


def tiles(story: Story, r: Relief, a: Story | None) -> DeltaGenerator:
    """Three tiles, and the place of the fourth; with A, each says what it is there."""
    first, second, third, fourth = st.columns(4)
    other = a.relief if a is not None else None
    lag_tile(first, r, other)
    share = percent(r.harmed / r.offered, 2) if r.offered else _NOTHING
    second.metric(
        "Requests harmed",
        digits(r.harmed) if r.offered else _NOTHING,
        f"{share} of a run's {digits(r.offered)}" if other is None else f"A: {digits(other.harmed)}",
        help="Requests that came between demand above capacity and a drained queue, and broke the promise (without "
        "one: got no answer). Mean over runs.",
        **_LOOK,
    )
    cost = story.summary["cost"]["per_hour"]
    span = f"{r.fewest_ready} to {r.most_ready}" if r.fewest_ready < r.most_ready else str(r.most_ready)
    before = None if a is None else a.summary["cost"]["per_hour"]
    third.metric(
        "Cost of the fleet, an hour",
        _NOTHING if cost is None else money(cost),
        f"{span} replicas ready" if before is None else f"A: {money(before)}",
        help=f"Replicas cost from the order until they are gone: {digits(r.mean_paid)} on average after the warm-up, "
        f"{digits(r.replica_hours)} replica-hours a run.",
        **_LOOK,
    )
    return fourth


def spare_tile(place: DeltaGenerator, known: bool, spare: Spare | None, promised: bool) -> None:
    """What the spare capacity that bridges it costs; a place for it until that is known."""
    text = (
        "The fewest replicas more, there from the start and never removed, with which the promise's target is reached: "
        "found by simulating the same requests with more and fewer."
    )
    value, below = "…", "trying it out"
    if not promised:
        value, below = _NOTHING, "nothing promised"
    elif known and spare is None:
        value, below = _NOTHING, "replicas alone don't keep it"
    elif spare is not None and not spare.spare:
        value, below = "none", "the promise is kept"
    elif spare is not None:
        value = _NOTHING if spare.price is None else money(spare.price)
        below = f"{count(spare.spare, 'replica')} more: {percent(spare.attainment)} in time"
        if spare.attainment_with_fewer is not None:
            text += f" With one fewer, {percent(spare.attainment_with_fewer)} are in time."
        if spare.more_per_hour is not None:
            text += f" In this hour the bill grows by {money(max(spare.more_per_hour, 0.0))}: fewer are ordered later."
    place.metric("Spare that bridges it, an hour", value, below, help=text.replace("$", "\\$"), **_LOOK)
