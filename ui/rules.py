"""The same traffic under each autoscaler's rule, and the spare capacity: worked out in another process, shown as it
comes."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.scenario import Scenario
from engine.study import RULES, RuleOutcome, Spare
from engine.traffic import Trace
from ui import runs, scaling_tables, scaling_tiles, scaling_words, session, work
from ui.following import follow
from ui.runs import Answer, Aside
from ui.words import count

_AHEAD = 2
"""Pieces that are asked for at a time: the next can begin as soon as one is done."""
_SPARE = "spare"


def known(scenario: Scenario, piece: str) -> Aside | None:
    """One rule's outcome, or the spare capacity, if it was worked out already."""
    return runs.shared().known_aside(_key(scenario, piece))


def known_spare(scenario: Scenario) -> Spare | None:
    """The spare capacity, if it was worked out and there is such a thing."""
    found = known(scenario, _SPARE)
    return found.result if found is not None else None


def go_on(scenario: Scenario, each_rps: float | None, trace: Trace | None) -> frozenset[str]:
    """Ask for what comes next, so that it is worked out; names of the pieces that are there."""
    pieces = [*([_SPARE] if scenario.slo else []), *_rules(scenario)]
    missing = [piece for piece in pieces if known(scenario, piece) is None][:_AHEAD]
    for piece in reversed(missing):  # the newest is begun first
        if piece == _SPARE:
            runs.shared().aside(_key(scenario, piece), work.spare_of, scenario, each_rps, trace)
        else:
            runs.shared().aside(_key(scenario, piece), work.ruled, scenario, piece, each_rps, trace)
    return frozenset(piece for piece in pieces if known(scenario, piece) is not None)


def _rules(scenario: Scenario) -> tuple[str, ...]:
    """Without a promise no fixed fleet keeps it."""
    return RULES if scenario.slo else RULES[:-1]


def _each(answer: Answer) -> float | None:
    """What one replica can serve, so that it needn't be measured again."""
    found: float | None = answer.story.summary["replica"]["capacity_rps"]
    return found


def _key(scenario: Scenario, piece: str) -> str:
    return f"scaling {piece} {scenario.token}"


def spare(place: DeltaGenerator, scenario: Scenario, answer: Answer, trace: Trace | None) -> None:
    """The tile with the spare capacity that bridges the lag."""
    with place:
        if answer.final and scenario.slo and known(scenario, _SPARE) is None:
            follow(
                lambda: _SPARE in go_on(scenario, _each(answer), trace),
                lambda _: scaling_tiles.spare_tile(st.container(), False, None, True),
            )
            return
        found = known(scenario, _SPARE)
        scaling_tiles.spare_tile(st.container(), found is not None, found and found.result, bool(scenario.slo))


def keep_spare(scenario: Scenario) -> None:
    """A button that keeps the spare replicas, once their number is known."""
    found = known_spare(scenario)
    if found is not None and found.spare:
        words = f"Keep {count(found.spare, 'spare replica')}"
        st.button(words, key="keep-spare", on_click=session.change, args=(found.changes,))


def rules_side_by_side(scenario: Scenario, answer: Answer, trace: Trace | None) -> None:
    """The table, as far as it is; it goes on while the page is open and the scenario is the same."""
    with st.container(key="rules", gap="small"):
        st.markdown("#### The same traffic, every rule")
        if not answer.final:
            st.caption("Follows the whole answer.")
        elif all(known(scenario, rule) is not None for rule in _rules(scenario)):
            _table(scenario)
            _buttons(scenario)
        else:
            follow(
                lambda: go_on(scenario, _each(answer), trace).issuperset(_rules(scenario)),
                lambda _: _to_come(scenario),
            )


def _to_come(scenario: Scenario) -> None:
    wanted = _rules(scenario)
    done = sum(known(scenario, rule) is not None for rule in wanted)
    st.progress(done / len(wanted), f"{done} of {len(wanted)} rules simulated with the same requests.")
    if done > 1:
        _table(scenario)


def _found(scenario: Scenario) -> list[RuleOutcome]:
    asides = [known(scenario, rule) for rule in _rules(scenario)]
    return [aside.result for aside in asides if aside is not None and aside.result is not None]


def _table(scenario: Scenario) -> None:
    found = _found(scenario)
    if not found:
        st.markdown("None of the rules could be simulated for this scenario.")
        return
    st.markdown(scaling_words.rules_sentence(found, scenario.slo[0].target if scenario.slo else None))
    number = st.column_config.NumberColumn
    st.dataframe(
        scaling_tables.rules_table(found),
        hide_index=True,
        column_config={
            "late or lost a run": number(format="%.0f"),
            "in time (%)": number(format="%.1f"),
            "replica-hours a run": number(format="%.2f"),
            "$ an hour": number(format="%.2f"),
        },
    )


def _buttons(scenario: Scenario) -> None:
    """One for each rule that is another than the present one."""
    found = _found(scenario)
    with st.container(horizontal=True, gap="small", key="use-rules"):
        for outcome in found:
            if outcome.changes:
                st.button(
                    scaling_words.rule_button(outcome),
                    key=f"use-{outcome.rule}",
                    on_click=session.change,
                    args=(outcome.changes,),
                )
    st.caption(scaling_words.rules_source(found, scenario))
