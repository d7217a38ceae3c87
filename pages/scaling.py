"""When help arrives: what happens between a burst and the new replica being useful, and what spare capacity costs."""

from __future__ import annotations

import streamlit as st

from engine import Scenario  # the whole engine first: two visitors at once would import it from two ends
from engine.outcome.relief import Relief
from engine.outcome.story import Story
from engine.traffic import Trace
from ui import answering, charts, parts, rules, scaling_charts, scaling_tables, scaling_words, tables, verdict
from ui.assumptions import machines
from ui.controls import controls
from ui.engine_settings import engine_settings
from ui.gallery import gallery
from ui.inputs import row
from ui.runs import Answer
from ui.scaling_tiles import tiles
from ui.session import Current, Pinned, change
from ui.settings import COUNT_STARTING, POLICY

SLUG = "scaling"
RULE = {
    POLICY: "Rule",
    "autoscaler.metric": "Metric",
    "autoscaler.target": "Target",
    "autoscaler.min_replicas": "Fewest replicas",
    "autoscaler.max_replicas": "Most replicas",
    "autoscaler.interval_s": "Decides every (s)",
    COUNT_STARTING: "Counts starting ones",
}
START = {
    "autoscaler.startup.provision_s": "Machine (s)",
    "autoscaler.startup.image_pull_s": "Image (s)",
    "autoscaler.startup.weights_load_s": "Weights (s)",
    "autoscaler.startup.warmup_s": "Warm-up (s)",
    "autoscaler.startup.cv": "Variation (CV)",
}
_ASSUMED = (
    "**Help:** a replica is paid for from its order on, takes nothing until its start is over, and finishes what it "
    "has before it goes. **Demand** is the work that came in the last 30 s, against what saturated replicas can do."
)


def show(answer: Answer, scenario: Scenario, current: Current, trace: Trace | None, pinned: Pinned | None) -> None:
    """The answer, whole or first, beside A's."""
    story = answer.story
    parts.begin(current, scenario)
    if story.relief is None:
        _without_an_autoscaler(story, scenario, current)
        return
    r = story.relief
    explanation = scaling_words.explanation(r, story.promise, rules.known_spare(scenario))
    a = parts.opening(scaling_words.headline(r), explanation, scenario, pinned)
    rules.spare(tiles(story, r, a), scenario, answer, trace)
    rules.keep_spare(scenario)
    st.caption(machines(story, scenario))
    for trap in r.traps:
        st.warning(scaling_words.trap(trap, scenario), icon=":material/warning:")
    _controls(current)
    horizon = parts.horizon_s(story, scenario)
    parts.chart(
        "course",
        scaling_words.course_sentence(r),
        scaling_charts.course_figure(r, horizon, scenario.run.warmup_s),
        lambda: scaling_tables.course_table(r),
    )
    _waterfall(r)
    rules.rules_side_by_side(scenario, answer, trace)
    parts.assumed(story, scenario, _ASSUMED)


def _waterfall(r: Relief) -> None:
    if not r.parts:
        st.markdown(scaling_words.waterfall_sentence(r))
        return
    parts.chart(
        "waterfall",
        scaling_words.waterfall_sentence(r),
        scaling_charts.waterfall_figure(r),
        lambda: scaling_tables.waterfall_table(r),
    )


def _controls(current: Current) -> None:
    """What this page studies, and the rest of the engine's settings."""
    drawn = {key: control for key, control in controls(current.base).items() if key in RULE or key in START}
    with st.container(border=True, gap="small", key="helping"):
        st.markdown(":small[**The rule** that orders replicas; an empty box is the rule's own]")
        row(drawn, RULE)
        st.markdown(":small[**The start** of a replica, one stage after the other]")
        row(drawn, START)
    engine_settings(current, above=drawn)


def _without_an_autoscaler(story: Story, scenario: Scenario, current: Current) -> None:
    """Nobody orders help: what to switch on, and what the fleet does by itself."""
    parts.headline(scaling_words.switched_off(story, scenario))
    alone = {
        "Two pools of replicas": scenario.batching.policy == "disaggregated",
        "Users who wait for their answers": scenario.traffic.process == "closed",
        "Pipelines": scenario.parallelism.pp > 1,
    }
    who = next((name for name, so in alone.items() if so), None)
    if who is not None:
        st.markdown(f"{who} can't be combined with an autoscaler yet. Open another story:")
        engine_settings(current)
        gallery(current)
        return
    st.markdown("Switch an autoscaler on to see how long help takes, whom that harms, and what it costs.")
    st.button("Switch on Kubernetes' HPA", key="switch-on", type="primary", on_click=change, args=(_on(scenario),))
    st.caption(machines(story, scenario))
    _controls(current)
    parts.chart(
        "arrivals",
        verdict.arrivals_sentence(story, scenario),
        charts.arrivals_figure(
            story.arrivals,
            parts.horizon_s(story, scenario),
            scenario.run.warmup_s,
        ),
        lambda: tables.arrivals_table(story),
    )
    parts.assumed(story, scenario, _ASSUMED)


def _on(scenario: Scenario) -> dict[str, object]:
    """The HPA, never below the fleet that there is, and with room for twice as many."""
    have, a = scenario.fleet.replicas, scenario.autoscaler
    return {
        POLICY: "hpa",
        "autoscaler.min_replicas": max(a.min_replicas, have),
        "autoscaler.max_replicas": max(a.max_replicas, 2 * have, a.min_replicas),
    }


if __name__ == "__main__":
    answering.page(SLUG, show)
