"""The sidebar: the scenario's controls, its link, what was changed, and the upload of a trace."""

from __future__ import annotations

import streamlit as st

from engine.scenario import Scenario, ScenarioError
from engine.scenario.presets import preset, presets
from engine.traffic import TraceError
from ui import session, traces
from ui.control import Control
from ui.controls import POLICY, POOLS, controls
from ui.differences import bullets, differences
from ui.frame import TITLE
from ui.inputs import pair, slider
from ui.session import Current
from ui.words import count, digits, listed, moment, plain, rate, seconds, sentence

_MOST_CHANGES = 3


def sidebar(current: Current) -> None:
    """Draw the sidebar. With a link that couldn't be opened only the presets: no other values are the link's."""
    with st.sidebar:
        st.markdown(f"### {TITLE}")
        st.caption("What if? For serving a model to many people.")
        _presets(current)
        if current.trouble is not None:
            return
        drawn = controls(current.base)
        with st.container(gap="small"):
            st.markdown("##### Traffic")
            _traffic(current.base, drawn)
        with st.container(gap="small"):
            st.markdown("##### Machines")
            pair(drawn["model.name"], drawn["model.weight_dtype"])
            pair(drawn["hardware.accelerator"], drawn["parallelism.tp"])
            apart = st.session_state[POLICY] == "disaggregated"
            for key in POOLS if apart else ("fleet.replicas",):
                slider(drawn[key])
        if "slo.0.threshold_s" in drawn:
            with st.container(gap="small"):
                st.markdown("##### Promise")
                pair(drawn["slo.0.threshold_s"], drawn["target_percent"])
        _keep(current)
        _link(current)
        _changed(current)
        _upload()


def _presets(current: Current) -> None:
    titles = {entry.name: entry.title for entry in presets()}
    st.selectbox(
        "Start from",
        list(titles),
        format_func=lambda name: titles[name],
        index=None,
        placeholder="a scenario of its own",
        key=session.PRESET,
        on_change=_start_from,
        persist_state="session",
    )


def _start_from() -> None:
    name = st.session_state[session.PRESET]
    if name is None:  # the cross in the list: there is no such thing as no scenario
        st.session_state[session.PRESET] = session.state().preset
    else:
        session.load(preset(name).scenario, name)


def _traffic(base: Scenario, drawn: dict[str, Control]) -> None:
    if base.traffic.process == "trace":
        _replayed(base)
        return
    for key in ("traffic.rate_rps", "traffic.closed.users", "burstiness"):
        if key in drawn:
            slider(drawn[key])
            if key == "traffic.rate_rps" and base.traffic.shape.kind == "spike":
                shape = base.traffic.shape
                st.caption(f"{digits(shape.factor)} times as many for {seconds(shape.hold_s)}, {moment(shape.at_s)}")
    for key, control in drawn.items():
        if ".prompt_tokens." in key or ".output_tokens." in key:
            slider(control)


def _replayed(base: Scenario) -> None:
    kept = traces.shared().get(base.traffic.trace.source)
    if kept is not None:
        span = float(kept.trace.arrival_s[-1])
        st.markdown(
            f"Replaying **{plain(kept.name)}**: {count(len(kept.trace), 'request')} in {seconds(span)}, "
            f"{rate(len(kept.trace) / span)} on average."
            if span
            else f"Replaying **{plain(kept.name)}**: {count(len(kept.trace), 'request')} at once."
        )
    st.button("Stop replaying", on_click=_stop_replaying, width="stretch")


def _stop_replaying() -> None:
    session.load(traces.without(session.state().base), None)


# -- below the controls ------------------------------------------------------------------------------------------------


def _keep(current: Current) -> None:
    """Keep the present scenario to compare with, and go back and forth in what was tried."""
    history, pinned = session.state().history, session.pinned()
    with st.container(horizontal=True, gap="small"):
        if pinned is None:
            st.button(
                "Pin as A",
                key="pin",
                on_click=session.pin,
                disabled=current.scenario is None,
                help="Keeps this scenario and its answer as A; whatever you change is then shown beside it. A stays in "
                "this browser tab: it isn't part of the link.",
            )
        else:
            st.button("Unpin A", key="pin", on_click=session.unpin)
        for name, able, step in (("undo", history.can_undo, session.undo), ("redo", history.can_redo, session.redo)):
            st.button(name.capitalize(), key=name, on_click=step, disabled=not able)


def _link(current: Current) -> None:
    if current.scenario is None:
        return
    st.markdown(":small[Copy link]", help="Opens this scenario, with every setting, in any browser.")
    if current.link is None:
        st.caption("This scenario doesn't fit a link. Save it as a file with the command line instead.")
        return
    address = (st.context.url or "").rstrip("/") or "/"
    st.code(f"{address}?{current.link}" if current.link else address, language=None)
    if current.scenario.traffic.process == "trace":
        st.caption("The link names the trace, it doesn't carry it: it works as long as this server keeps the upload.")


def _changed(current: Current) -> None:
    """What differs from the preset, or from the base when there is none, and a way back."""
    if current.scenario is None:
        return
    start = preset(current.preset).scenario if current.preset else current.base
    found = differences(start, current.scenario)
    if not found:
        return
    words = found[:_MOST_CHANGES] + ([f"{len(found) - _MOST_CHANGES} more"] if len(found) > _MOST_CHANGES else [])
    st.caption(f"Changed: {listed(words)}.", help=bullets(found) if len(found) > _MOST_CHANGES else None)
    st.button("Reset", on_click=session.load, args=(start, current.preset), width="stretch")


def _upload() -> None:
    state = session.state()
    with st.expander("Replay a trace of your own"):
        st.caption(
            "A CSV file with the columns arrival_s, prompt_tokens, output_tokens, or an Azure trace with TIMESTAMP, "
            "ContextTokens, GeneratedTokens. It stays in this server's memory."
        )
        key = f"trace {state.loads}"  # a new box once the file is taken: it isn't needed any more
        st.file_uploader("Trace", key=key, label_visibility="collapsed", on_change=_take_file, args=(key,))
    if state.upload_error:
        st.error(f"{plain(sentence(state.upload_error))} The scenario is as before.", icon=":material/error:")


def _take_file(key: str) -> None:
    """Replay an uploaded file, or say what is wrong with it and change nothing."""
    file, state = st.session_state[key], session.state()
    state.upload_error = ""
    if file is None:
        return
    try:
        kept = traces.shared().put(file.getvalue(), file.name)
        session.load(traces.replaying(session.present(), kept.trace), None)
    except (TraceError, ScenarioError) as error:
        state.upload_error = str(error)
