"""Fleets sized for the average and for the worst minute: simulated in another process, shown when they are there."""

from __future__ import annotations

import streamlit as st

from engine.scenario import Scenario
from engine.study import Sized
from engine.traffic import Trace
from ui import parts, runs, session, traffic_charts, traffic_tables, traffic_words, work
from ui.following import follow
from ui.runs import Answer
from ui.words import count


def sized_for_the_average(scenario: Scenario, trace: Trace | None, answer: Answer) -> None:
    """What becomes of a service that is sized for the average."""
    with st.container(key="sized", gap="small"):
        st.markdown("#### A service sized for the average")
        found = runs.shared().known_aside(_key(scenario))
        if scenario.traffic.process == "closed":
            st.markdown("Users who wait for their answers bring no more than is served: there is no peak to size for.")
        elif scenario.batching.policy == "disaggregated":
            st.markdown("Two pools are sized by their own work: the start page says what each of them can serve.")
        elif not answer.final:
            st.caption("Follows the whole answer.")
        elif found is None:
            follow(lambda: go_on(scenario, trace), _to_come)
        elif found.result is None:
            st.markdown("Nothing arrives, or nothing of it fits on a replica: there is nothing to size.")
        else:
            _show(found.result, scenario)


def go_on(scenario: Scenario, trace: Trace | None) -> bool:
    """Ask for it, so that it is worked out; whether it is there."""
    return runs.shared().aside(_key(scenario), work.sized_of, scenario, trace) is not None


def _key(scenario: Scenario) -> str:
    return f"sized {scenario.token}"


def _to_come(waited_s: float) -> None:
    st.caption(f":material/hourglass_top: Simulating both fleets ({waited_s:.0f} s).")


def _show(found: Sized, scenario: Scenario) -> None:
    parts.chart(
        "sized",
        traffic_words.sized_sentence(found, scenario),
        traffic_charts.sized_figure(found, scenario.slo[0].target if scenario.slo else None),
        lambda: traffic_tables.sized_table(found),
    )
    with st.container(horizontal=True, gap="small", key="use-sized"):
        for what, fleet in (("average", found.average), ("worst", found.worst)):
            if fleet.replicas != scenario.fleet.replicas and (what == "average" or fleet is not found.average):
                words = f"Use {count(fleet.replicas, 'replica')}"
                changes = {"fleet.replicas": fleet.replicas}
                st.button(words, key=f"size-{what}", on_click=session.change, args=(changes,))
    st.caption(f"{count(found.runs, 'run')} each, of the whole length, without an autoscaler.")
