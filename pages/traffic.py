"""What arrives: how far the worst minute is from the average one, and how wordy it is."""

from __future__ import annotations

import streamlit as st

from engine import Scenario  # the whole engine first: two visitors at once would import it from two ends
from engine.outcome import Arriving
from engine.traffic import Trace
from ui import answering, parts, traffic_charts, traffic_tables, traffic_words
from ui.assumptions import machines
from ui.controls import controls
from ui.engine_settings import engine_settings
from ui.fitted import fitted, known
from ui.inputs import row
from ui.runs import Answer
from ui.session import Current, Pinned, change
from ui.settings import ARRIVALS
from ui.sized import sized_for_the_average
from ui.traffic_tiles import tiles
from ui.words import plain

SLUG = "traffic"
WAYS: dict[str, tuple[str, dict[str, object]]] = {
    "deterministic": ("Like clockwork", {"traffic.process": "deterministic"}),
    "poisson": ("Independently", {"traffic.process": "poisson"}),
    "gamma": ("In clumps", {"traffic.process": "gamma", "traffic.cv": 3.0}),
    "mmpp": ("Calm and bursts by turns", {"traffic.process": "mmpp"}),
}
"""Ways to arrive, each a button."""
LABELS = {
    "traffic.mmpp.burst_ratio": "Height of bursts",
    "traffic.mmpp.burst_fraction": "Time in bursts",
    "traffic.mmpp.mean_burst_s": "A burst (s)",
    "traffic.trace.speed": "Speed",
    "traffic.trace.resample": "Resampling",
    "traffic.trace.block_s": "A block (s)",
}
_COUNTED = (
    "**Clumps:** the index of dispersion is the variance of counts over their mean, in whole windows of 1, 10 and "
    "60 s; the CV of gaps their standard deviation over their mean. Retries aren't counted. One request is one call."
)


def show(answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None) -> None:
    """The answer, whole or first, beside A's."""
    story = answer.story
    a = story.arriving
    parts.begin(current, scenario)
    before = parts.opening(
        traffic_words.headline(a, scenario), traffic_words.explanation(a, scenario), scenario, pinned
    )
    other = before.arriving if before is not None else None
    tiles(a, other)
    st.caption(machines(story, scenario))
    _controls(current, scenario)
    horizon = parts.horizon_s(story, scenario)
    parts.chart(
        "arriving",
        traffic_words.arrivals_sentence(story),
        traffic_charts.arrivals_figure(a, story.fleet_rps, horizon, scenario.run.warmup_s, other),
        lambda: traffic_tables.arrivals_table(a, story.fleet_rps),
    )
    parts.chart(
        "clumps",
        traffic_words.clumps_sentence(a.clumps),
        traffic_charts.clumps_figure(a.clumps, other.clumps if other else None),
        lambda: traffic_tables.clumps_table(a.clumps),
    )
    st.caption(plain(traffic_words.real_source()))
    sized_for_the_average(scenario, trace, answer)
    _lengths(a, scenario, trace)
    fitted(scenario, trace)
    parts.assumed(story, scenario, _COUNTED)


def _controls(current: Current, scenario: Scenario) -> None:
    """How requests arrive, and the settings of that way; the rest of the engine's settings."""
    process = current.base.traffic.process
    keys = ARRIVALS.get(process, ())
    drawn = {key: control for key, control in controls(current.base).items() if key in keys}
    if process not in ("trace", "closed") or drawn:
        with st.container(border=True, gap="small", key="arriving"):
            if process not in ("trace", "closed"):
                st.markdown(":small[**The same rate, arriving** in another way]")
                with st.container(horizontal=True, gap="small", key="ways-to-arrive"):
                    for name, (words, changes) in WAYS.items():
                        now = name == scenario.traffic.process
                        st.button(words, key=f"arrive-{name}", disabled=now, on_click=change, args=(changes,))
            if drawn:
                what = "The trace" if process == "trace" else "Bursts"
                st.markdown(f":small[**{what}**]")
                row(drawn, LABELS)
    engine_settings(current, above=drawn)


def _lengths(a: Arriving, scenario: Scenario, trace: Trace | None) -> None:
    """Prompts and answers, each and together."""
    if a.prompt is None or a.output is None or a.joint is None:
        return
    prompt, output, joint = a.prompt, a.output, a.joint
    st.markdown("#### How wordy")
    found = known(trace) if trace is not None and scenario.traffic.process == "trace" else None
    left, right = st.columns(2, gap="large")
    with left:
        more = " Dotted: the lognormal fitted below." if found is not None else ""
        parts.chart(
            "lengths",
            traffic_words.lengths_sentence(prompt, output, scenario) + more,
            traffic_charts.lengths_figure(prompt, output, (found.prompt, found.output) if found else None),
            lambda: traffic_tables.lengths_table(prompt, output),
        )
    with right:
        if joint.rank_correlation is None:
            st.markdown(traffic_words.joint_sentence(joint))
            return
        parts.chart(
            "joint",
            traffic_words.joint_sentence(joint),
            traffic_charts.joint_figure(joint),
            lambda: traffic_tables.joint_table(joint),
        )


if __name__ == "__main__":
    answering.page(SLUG, show)
