"""The batching page's figures: the formula, one tile a term."""

from __future__ import annotations

import streamlit as st

from engine.study import Group
from ui import batching_words
from ui.words import seconds

_NOTHING = "–"
_LOOK = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}


def tiles(g: Group, size: int | None, a: tuple[Group, int | None] | None) -> None:
    """Seconds a word = shared work / group + own work; with A, each says what it is there."""
    labels = ("Shared work, a step", "÷ group, on average", "+ own work, a word", "= replica's time, a word")
    helps = (
        "What a step takes whoever is in it: reading the weights, the fixed work of host and links.",
        "Conversations that a busy replica works on at once: simulated, averaged over its busy time.",
        "What each conversation adds to a step, for one word (token): reading its KV, its arithmetic, its bookkeeping.",
        "Shared work divided by the group, and own work. Everybody in the group waits a whole step for a word.",
    )
    mine, below = _terms(g, size), _below(g, size)
    if a is not None:
        below = tuple(f"A: {text}" for text in _terms(*a))
    for place, label, text, under, more in zip(st.columns(4), labels, mine, below, helps, strict=True):
        place.metric(label, text, under, help=more, **_LOOK)


def _terms(g: Group, size: int | None) -> tuple[str, str, str, str]:
    s = g.sharing
    if size is None:
        return seconds(s.shared_s), _NOTHING, seconds(float(s.own_s[0])), _NOTHING
    at = s.at(size)
    return seconds(s.shared_s), f"{size:,}", seconds(float(s.own_s[at])), seconds(float(s.word_s[at]))


def _below(g: Group, size: int | None) -> tuple[str, str, str, str]:
    s = g.sharing
    at = s.at(size or 1)
    return (
        batching_words.shared_parts(s),
        "nothing arrives" if size is None else f"of {batching_words.seats_of(g.record)} seats",
        batching_words.own_parts(s, at),
        f"a step of {seconds(float(s.step_s[at]))}",
    )
