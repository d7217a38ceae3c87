"""The sidebar: the scenario's controls, its link, what was changed, and the upload of a trace."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from engine.scenario import Scenario, ScenarioError, describe
from engine.scenario.paths import changes
from engine.scenario.presets import preset, presets
from engine.traffic import TraceError
from ui import session, traces
from ui.controls import Control, burstiness_word, controls, position
from ui.frame import TITLE
from ui.session import Current
from ui.words import count, digits, listed, moment, plain, rate, seconds, sentence

_MOST_CHANGES = 3
_BOX_PX = 104


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
            _pair(drawn["model.name"], drawn["model.weight_dtype"])
            _pair(drawn["hardware.accelerator"], drawn["parallelism.tp"])
            _slider(drawn["fleet.replicas"])
        if "slo.0.threshold_s" in drawn:
            with st.container(gap="small"):
                st.markdown("##### Promise")
                _pair(drawn["slo.0.threshold_s"], drawn["target_percent"])
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
    for key in ("traffic.rate_rps", "burstiness"):
        if key in drawn:
            _slider(drawn[key])
            if key == "traffic.rate_rps" and base.traffic.shape.kind == "spike":
                shape = base.traffic.shape
                st.caption(f"{digits(shape.factor)} times as many for {seconds(shape.hold_s)}, {moment(shape.at_s)}")
    for key, control in drawn.items():
        if ".prompt_tokens." in key or ".output_tokens." in key:
            _slider(control)


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


# -- single controls ---------------------------------------------------------------------------------------------------


def _slider(control: Control) -> None:
    """A slider with a box to type in: the box has the exact value, the slider its nearest position."""
    with st.container(gap="xxsmall"):
        word = f" · {burstiness_word(float(st.session_state[control.key]))}" if control.key == "burstiness" else ""
        st.markdown(f":small[{control.label}{word}]", help=control.help)
        with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small"):
            st.select_slider(
                control.label,
                control.stops,
                format_func=position,
                key=session.slider_key(control.key),
                label_visibility="collapsed",
                on_change=_follow_slider,
                args=(control.key, control.whole),
                persist_state="session",
            )
            _box(control, width=_BOX_PX, hidden=True)


def _follow_slider(key: str, whole: bool) -> None:
    position = st.session_state[session.slider_key(key)]
    st.session_state[key] = int(position) if whole else float(position)


def _follow_box(control: Control) -> None:
    if control.stops:
        st.session_state[session.slider_key(control.key)] = control.nearest_stop(float(st.session_state[control.key]))


def _box(control: Control, width: int | Literal["stretch"] = "stretch", hidden: bool = False) -> None:
    number = int if control.whole else float
    st.number_input(
        control.label,
        min_value=number(control.low) if control.low is not None else None,
        max_value=number(control.high) if control.high is not None else None,
        step=number(control.step),
        format="%d" if control.whole else "%g",
        key=control.key,
        help=None if hidden else control.help,
        label_visibility="collapsed" if hidden else "visible",
        on_change=_follow_box,
        args=(control,),
        persist_state="session",
        width=width,
    )


def _choice(control: Control, width: int | Literal["stretch"] = "stretch") -> None:
    assert control.choices is not None
    words = control.choices
    st.selectbox(
        control.label,
        list(words),
        format_func=lambda value: words.get(value, str(value)),
        key=control.key,
        help=control.help,
        persist_state="session",
        width=width,
    )


def _pair(one: Control, other: Control) -> None:
    """A wide control and a narrow one in a row."""
    with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small"):
        for control, width in ((one, "stretch"), (other, _BOX_PX)):
            _choice(control, width) if control.kind == "choice" else _box(control, width)


# -- below the controls ------------------------------------------------------------------------------------------------


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
    found = changes(start.to_dict(), current.scenario.to_dict())
    if not found:
        return
    words = [f"{describe(path).label.lower()} {_show(value)}" for path, value in list(found.items())[:_MOST_CHANGES]]
    more = len(found) - len(words)
    words += [f"{more} more"] if more > 0 else []
    st.caption(f"Changed: {listed(words)}.")
    st.button("Reset", on_click=session.load, args=(start, current.preset), width="stretch")


def _show(value: object) -> str:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return digits(float(value), 4)
    return plain(value) if isinstance(value, str) and len(value) < 30 else "…" if isinstance(value, str) else ""


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
