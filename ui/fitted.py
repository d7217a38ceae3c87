"""What resembles an uploaded trace: worked out in another process, with buttons that use it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from engine.scenario import Scenario
from engine.traffic import Fit, Trace, scenario_changes
from ui import parts, runs, session, traffic_charts, traffic_tables, traffic_words, work
from ui.following import follow

_SEEDS = 8
_MOST_REQUESTS = 400_000
"""Of the scenario that a button makes, all repetitions together."""
_BLOCKS = 10
"""A trace is cut into at least so many."""
_BLOCK_S = 60.0


def known(trace: Trace) -> Fit | None:
    """The fit of a trace, if it was worked out and there is one."""
    found = runs.shared().known_aside(_key(trace))
    return found.result if found is not None else None


def fitted(scenario: Scenario, trace: Trace | None) -> None:
    """The fit and its buttons; what to do for one where no trace is replayed."""
    with st.container(key="fitted", gap="small"):
        st.markdown("#### Traffic like a trace")
        if trace is None or scenario.traffic.process != "trace":
            st.caption("Upload a trace in the sidebar: a process and lengths are fitted to it here, and judged.")
            return
        found = runs.shared().known_aside(_key(trace))
        if found is None:
            follow(lambda: go_on(trace), _to_come)
        elif found.result is None:
            st.markdown(traffic_words.no_fit())
        else:
            _show(found.result, scenario, trace)


def go_on(trace: Trace) -> bool:
    """Ask for it, so that it is worked out; whether it is there."""
    return runs.shared().aside(_key(trace), work.fit_of, trace) is not None


def _key(trace: Trace) -> str:
    return f"fit {trace.sha256}"


def _to_come(_: float) -> None:
    st.caption(":material/hourglass_top: Fitting a process and lengths to the trace.")


def _show(found: Fit, scenario: Scenario, trace: Trace) -> None:
    parts.chart(
        "fit",
        traffic_words.fit_sentence(found),
        traffic_charts.fit_figure(found),
        lambda: traffic_tables.fit_table(found),
    )
    ways = {"resample": "Draw blocks of the trace", "fitted": "Use the fitted process and lengths"}
    changes = {"resample": resampling(scenario, trace), "fitted": fitting(found, scenario)}
    order = ("resample", "fitted") if found.resample else ("fitted", "resample")
    with st.container(horizontal=True, gap="small", key="ways-to-use"):
        for way in order:
            kind = "primary" if way == order[0] else "secondary"
            disabled = way == "resample" and scenario.traffic.trace.resample == "blocks"
            st.button(
                ways[way], key=f"use-{way}", type=kind, disabled=disabled, on_click=session.change, args=(changes[way],)
            )
    st.caption("Each process is drawn five times, as long as the trace, and counted in the same windows.")


def fitting(found: Fit, scenario: Scenario) -> dict[str, Any]:
    """From the trace to what resembles it, several runs long as the trace."""
    changes = scenario_changes(found, scenario.traffic.trace.speed)
    return changes | _repeated(found.measured.requests, changes["run.horizon_s"], scenario)


def resampling(scenario: Scenario, trace: Trace) -> dict[str, Any]:
    """From the trace as recorded to several runs of blocks of it."""
    last_s = float(trace.arrival_s[-1])
    horizon = max(1.0, float(round(last_s / scenario.traffic.trace.speed)))
    block = min(_BLOCK_S, max(1.0, float(round(last_s / _BLOCKS))))
    changes = {"traffic.trace.resample": "blocks", "traffic.trace.block_s": block, "run.horizon_s": horizon}
    return changes | _repeated(len(trace), horizon, scenario)


def _repeated(requests: float, horizon_s: float, scenario: Scenario) -> dict[str, Any]:
    seeds = int(min(_SEEDS, max(1, _MOST_REQUESTS // max(requests, 1))))
    return {"run.seeds": seeds, "run.warmup_s": min(scenario.run.warmup_s, horizon_s / 4)}
