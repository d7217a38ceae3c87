"""Split or copy: every layout of so many chips, simulated in another process, shown as they come."""

from __future__ import annotations

from functools import lru_cache
from math import inf

import numpy as np
import streamlit as st

from engine.scenario import Linear, Scenario, ScenarioError
from engine.study import MOST_ACCELERATORS, Layout, LayoutOutcome, frontier, layout_changes, layouts, present, recommend
from engine.study.layouts import SEEDS
from ui import parts, runs, session, split_charts, split_words, traces, work
from ui.following import follow
from ui.words import count

_BETWEEN = 4
_AHEAD = 2
"""Pieces of work that are asked for at a time: the next can begin as soon as one is done."""


def split_or_copy(scenario: Scenario) -> None:
    """The headline, the choice of how many chips, the chart, and what can't be used."""
    if isinstance(scenario.performance, Linear):
        parts.headline("A measured profile can't be split.")
        st.markdown("It says how long a step lasts on the machine that it was measured on, not why. Choose a model.")
        return
    top = st.container()
    chips = st.number_input(
        "Chips", 1, MOST_ACCELERATORS, min(present(scenario), MOST_ACCELERATORS), key=f"split {present(scenario)}",
        width=154, persist_state="session", help="How many accelerators there are for this model, all copies together.",
    )  # fmt: skip
    try:
        _refuse_too_large(scenario)
        tried = _layouts(scenario, int(chips), _traced(scenario))
    except ScenarioError as error:
        with top:
            parts.headline("This can't be laid out as it is.")
            parts.problems(error.problems)
        return
    possible = sum(one.problem is None for one in tried)
    if _done(scenario, tried):
        found = known(scenario, tried)
        with top:
            _verdict(scenario, tried, found, int(chips))
        _chart(scenario, found)
    else:
        with top:
            parts.headline(f"Trying {count(possible, 'layout')} of {count(int(chips), 'chip')}.")
        follow(lambda: go_on(scenario, tried), lambda _: _to_come(scenario, tried))
    _rest(scenario, tried)


def _refuse_too_large(scenario: Scenario) -> None:
    kept = traces.shared().get(scenario.traffic.trace.source)
    seeds = min(scenario.run.seeds, SEEDS)
    runs.refuse_too_large(scenario.replace({"run.seeds": seeds}), kept.trace if kept else None)


def _traced(scenario: Scenario) -> int:
    """Requests of the trace that come in a run; 0 without one."""
    kept = traces.shared().get(scenario.traffic.trace.source)
    end_s = (scenario.run.horizon_s or inf) * scenario.traffic.trace.speed
    return 0 if kept is None else int(np.searchsorted(kept.trace.arrival_s, end_s))


@lru_cache(maxsize=64)
def _layouts(scenario: Scenario, chips: int, traced: int) -> tuple[Layout, ...]:
    return layouts(scenario, chips, traced)


def known(scenario: Scenario, tried: tuple[Layout, ...]) -> list[LayoutOutcome]:
    """The outcomes that were worked out already, in the order in which they were tried."""
    store = runs.shared()
    kept = [store.known_aside(_key(scenario, piece)) for piece in _pieces(tried)]
    found = {one.layout: one for piece in kept if piece is not None and piece.result for one in piece.result}
    return [found[layout] for layout in tried if layout in found]


def _pieces(tried: tuple[Layout, ...]) -> list[tuple[Layout, ...]]:
    """What is simulated at a time: layouts with as many stages, those without first, for they take the least."""
    possible = [one for one in tried if one.problem is None]
    return [tuple(one for one in possible if one.pp == stages) for stages in sorted({one.pp for one in possible})]


def go_on(scenario: Scenario, tried: tuple[Layout, ...]) -> bool:
    """Ask for what comes next, so that it is worked out; whether all is there."""
    kept = traces.shared().get(scenario.traffic.trace.source)
    store = runs.shared()
    missing = [piece for piece in _pieces(tried) if store.known_aside(_key(scenario, piece)) is None]
    for piece in reversed(missing[:_AHEAD]):  # the newest is begun first
        store.aside(_key(scenario, piece), work.laid_out, scenario, piece, kept.trace if kept else None)
    return _done(scenario, tried)


def _done(scenario: Scenario, tried: tuple[Layout, ...]) -> bool:
    store = runs.shared()
    return all(store.known_aside(_key(scenario, piece)) is not None for piece in _pieces(tried))


def _key(scenario: Scenario, piece: tuple[Layout, ...]) -> str:
    """By what is simulated: once a layout is used, the comparison is the same."""
    return f"layouts {' '.join(scenario.replace(layout_changes(scenario, layout)).token for layout in piece)}"


def _to_come(scenario: Scenario, tried: tuple[Layout, ...]) -> None:
    possible, found = sum(one.problem is None for one in tried), known(scenario, tried)
    st.progress(len(found) / max(possible, 1), f"{len(found)} of {possible} simulated with the same requests.")
    if len(found) > 1:
        _chart(scenario, found)


def _verdict(scenario: Scenario, tried: tuple[Layout, ...], found: list[LayoutOutcome], chips: int) -> None:
    advice = recommend(scenario, tried, found)
    parts.headline(split_words.headline(advice, chips, any(one.capacity_rps for one in found)))
    if advice is None:
        return
    st.markdown(f"{split_words.pressure(advice, scenario)} {split_words.price(advice)}")
    changes = layout_changes(scenario, advice.best.layout)
    if scenario.replace(changes) != scenario:
        st.button("Use this layout", key="use-layout", type="primary", on_click=session.change, args=(changes,))


def _chart(scenario: Scenario, found: list[LayoutOutcome]) -> None:
    p = scenario.parallelism
    now = Layout(p.tp, p.pp, p.cp, scenario.replicas, ep=1 if p.ep == p.tp else p.ep) if p.sp == "none" else None
    best = frontier(found)
    figure = split_charts.layouts_figure(found, best, now)
    sentence = (
        f"{split_words.frontier_sentence(best, len(found))} {split_words.without_name(split_charts.nameless(figure))}"
    )
    parts.chart("layouts", sentence.strip(), figure, lambda: split_words.outcomes_table(found))


def _rest(scenario: Scenario, tried: tuple[Layout, ...]) -> None:
    found = {one.layout for one in known(scenario, tried)}
    lost = [one for one in tried if one.problem is None and one not in found] if _done(scenario, tried) else []
    lines = split_words.impossible(tried, lost)
    if lines:
        st.markdown("#### Layouts that aren't in the chart")
        st.markdown("\n".join(f"- {line}" for line in lines))
    st.markdown("#### What each split costs in traffic")
    st.markdown(split_words.sent_sentence(scenario, _BETWEEN))
    table = split_words.sent_table(scenario, _BETWEEN)
    number = st.column_config.NumberColumn(format="localized")
    st.dataframe(table, hide_index=True, column_config={split_words.SENT: number})
    st.markdown("**Sequence parallel** is the name of three things:")
    st.markdown("\n".join(f"- {line}" for line in split_words.MEANINGS))
    st.markdown("#### What this assumes")
    st.markdown("\n".join(f"- {line}" for line in split_words.assumed(scenario)))
