"""The same traffic under each way of saying no: tried one after the other in another process, shown as they come."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from engine.scenario import Scenario
from engine.study import Tried, Way
from engine.traffic import Trace
from ui import overload_charts, overload_words, parts, runs, session, tables, work
from ui.following import follow
from ui.runs import Answer

_AHEAD = 2
"""Ways that are asked for at a time: the next can begin as soon as one is done."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far it is. `ways` is None until it is known which there are."""

    ways: tuple[Way, ...] | None
    found: tuple[Tried, ...]
    failed: int

    @property
    def done(self) -> bool:
        """Whether every way has been tried."""
        return self.ways is not None and len(self.found) + self.failed == len(self.ways)


def ways_of_saying_no(scenario: Scenario, trace: Trace | None, answer: Answer) -> None:
    """The comparison, as far as it is; it goes on while the page is open and the scenario is the same."""
    with st.container(key="ways", gap="small"):
        st.markdown("#### The same traffic, every way of saying no")
        known = known_so_far(scenario)
        if known.done:
            _show(known, scenario)
        elif answer.final:
            each_rps = answer.story.summary["replica"]["capacity_rps"]
            follow(lambda: go_on(scenario, trace, each_rps).done, lambda _: _working(scenario))
        else:
            st.caption("Follows the whole answer.")


def known_so_far(scenario: Scenario) -> Comparison:
    """What was worked out already, without asking for more."""
    store = runs.shared()
    listed = store.known_aside(f"ways {scenario.token}")
    if listed is None:
        return Comparison(None, (), 0)
    ways: tuple[Way, ...] = listed.result or ()
    known = [store.known_aside(_key(scenario, way)) for way in ways]
    found = tuple(
        replace(one.result, way=way)  # by another name it may have been tried for the scenario before
        for one, way in zip(known, ways, strict=True)
        if one is not None and one.result is not None
    )
    return Comparison(ways, found, sum(one is not None and one.result is None for one in known))


def go_on(scenario: Scenario, trace: Trace | None, each_rps: float | None) -> Comparison:
    """Ask for what comes next, so that it is worked out; what is known by now. `each_rps`: what a replica can serve."""
    store = runs.shared()
    store.aside(f"ways {scenario.token}", work.ways_of, scenario, trace)
    known = known_so_far(scenario)
    open_ = [way for way in known.ways or () if store.known_aside(_key(scenario, way)) is None][:_AHEAD]
    for way in reversed(open_):  # the newest is begun first
        store.aside(_key(scenario, way), work.tried, scenario, way, each_rps, trace)
    return known_so_far(scenario)


def _key(scenario: Scenario, way: Way) -> str:
    """By what is simulated: once a way is used, the comparison is the same but for what is called the present."""
    return f"way {scenario.replace(way.changes).token}"


def _working(scenario: Scenario) -> None:
    known = known_so_far(scenario)
    total = len(known.ways) if known.ways else 1
    tried = len(known.found) + known.failed
    said = overload_words.progress(tried, total) if known.ways else "Looking for the ways that there are."
    st.progress(tried / total, said)
    if len(known.found) > 1:
        _bars(known, scenario)


def _show(known: Comparison, scenario: Scenario) -> None:
    if not known.found or not known.found[0].fates.total:
        st.markdown("Nobody comes, so there is nothing to compare.")
        return
    _bars(known, scenario)
    _buttons(known)
    st.caption(overload_words.source(known.found))
    caps = overload_words.caps(known.found)
    if len(caps) > 2:
        rows = [_cap_row(tried) for tried in caps]
        parts.chart(
            "caps",
            overload_words.caps_sentence(known.found),
            overload_charts.caps_figure(rows),
            lambda: tables.ways_table(caps),
        )


def _cap_row(tried: Tried) -> tuple[str, dict[str, float]]:
    name = f"{tried.way.value:,.0f}" if tried.way.kind == "cap" else "no cap"
    return name, tried.fates.shares


def _bars(known: Comparison, scenario: Scenario) -> None:
    shown = overload_words.shown(known.found)
    rows = [(overload_words.name(tried.way), tried.fates.shares) for tried in shown]
    sentence = overload_words.ways_sentence(known.found, scenario)
    parts.chart("ways", sentence, overload_charts.ways_figure(rows), lambda: tables.ways_table(shown))


def _buttons(known: Comparison) -> None:
    """One for each way that is another than the present one, the best first."""
    st.markdown(":small[Use one of them:]")
    with st.container(horizontal=True, gap="small", key="use-ways"):
        for tried in overload_words.shown(known.found):
            if tried.way.kind != "now":
                st.button(
                    overload_words.button(tried.way),
                    key=f"use-{tried.way.kind}",
                    on_click=session.change,
                    args=(tried.way.changes,),
                )
