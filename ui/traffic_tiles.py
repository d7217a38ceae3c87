"""The traffic page's figures."""

from __future__ import annotations

import streamlit as st

from engine.outcome import Arriving
from engine.traffic import Clumps
from ui.traffic_words import SLICES
from ui.words import digits, rate

_NOTHING = "–"
_LOOK = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}


def tiles(a: Arriving, pinned: Arriving | None) -> None:
    """Average, worst minute, clumps and gaps; with A, each says what it is there."""
    word = SLICES[a.clumps.slice_s]
    labels = ("On average", f"Worst {word}", "Clumps (index of dispersion)", "Variation of gaps (CV)")
    helps = (
        "Requests that arrive, retries left out; mean of all runs.",
        f"Arrivals of a run's worst {word} over those of its average one; mean of all runs.",
        "Variance over mean of counts in windows; 1 for people who don't know of each other (Poisson).",
        "Standard deviation over mean of the time between two arrivals; 1 for independent ones.",
    )
    below = _below(a.clumps)
    if pinned is not None:
        below = tuple(f"A: {text}" for text in _figures(pinned.clumps))
    for place, label, text, under, more in zip(st.columns(4), labels, _figures(a.clumps), below, helps, strict=True):
        place.metric(label, text, under, help=more, **_LOOK)


def _figures(c: Clumps) -> tuple[str, str, str, str]:
    known = [value for value in c.dispersion.values() if value is not None]
    return (
        rate(c.rate_rps),
        _NOTHING if c.worst is None else f"{digits(c.worst, 3)} times",
        digits(known[-1], 3) if known else _NOTHING,
        _NOTHING if c.gap_cv is None else digits(c.gap_cv, 3),
    )


def _below(c: Clumps) -> tuple[str, str, str, str]:
    known = [width for width, value in c.dispersion.items() if value is not None]
    worst, cv = c.worst_rps, c.gap_cv
    gaps = "1 is independent" if cv is None or 0.85 < cv < 1.25 else "clumped" if cv > 1.25 else "rather even"
    return (
        f"{digits(c.requests, 3)} a run",
        "nothing arrives" if worst is None else rate(worst),
        f"in windows of {known[-1]:g} s; 1 is independent" if known else "the run is too short",
        gaps if cv is not None else "not known",
    )
