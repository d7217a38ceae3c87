"""Will it hold? Who waits, how long, and who is turned away: a verdict, three tiles, three charts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from engine.outcome.story import Story
from engine.scenario import Scenario, ScenarioError
from engine.traffic import Trace, TraceError
from ui import charts, frame, parts, runs, session, traces, verdict
from ui.assumptions import assumptions, footer, machines
from ui.runs import Answer
from ui.session import Current
from ui.widgets import sidebar
from ui.words import METRICS, NBSP, REASONS, listed, percent, plain, seconds, sentence

SLUG = "start"
_SHOWN = "last shown"
_WAIT = ":material/hourglass_top:"
_FIRST_THINGS_FIRST_S = 0.15  # the browser draws the first answer before its processor is taken
_WORTH_SAYING = 0.02  # share without an answer from which on a percentile of the others needs a warning beside it


def page() -> None:
    """The whole page."""
    frame.prepare()
    current = session.current(SLUG)
    sidebar(current)
    if current.trouble is not None:
        parts.trouble(current)
    elif current.scenario is None:
        parts.headline("These settings don't go together.")
        parts.problems(current.problems)
    else:
        _answer(current, current.scenario)


def _answer(current: Current, scenario: Scenario) -> None:
    kept = traces.shared().get(scenario.traffic.trace.source)
    trace = kept.trace if kept is not None else None
    try:
        answer = runs.shared().first(scenario, trace)
        if answer is None:
            _stale(scenario, trace)
            return
    except ScenarioError as error:
        parts.headline("This can't run as it is.")
        parts.problems(error.problems)
        return
    except TraceError as error:
        parts.headline("This trace can't be replayed.")
        st.error(str(error), icon=":material/error:")
        return
    st.session_state[_SHOWN] = (answer.story, scenario)
    status = st.empty()
    show(answer, scenario)
    if not answer.final:
        _refine(scenario, trace, status, "First answer, from the beginning of each run; the whole run follows ({}).")


def _stale(scenario: Scenario, trace: Trace | None) -> None:
    """Nothing to show within a moment: the last answer, greyed, until this one is there."""
    status = st.empty()
    last = st.session_state.get(_SHOWN)
    if last is not None:
        with st.container(key="stale"):
            show(Answer(last[0], final=True), last[1])
    before = " Below, greyed, is the answer to the settings before." if last is not None else ""
    _refine(scenario, trace, status, f"Computing a large run ({{}}).{before}")


def _refine(scenario: Scenario, trace: Trace | None, status: st.delta_generator.DeltaGenerator, text: str) -> None:
    """Wait for the whole answer, saying so, then draw the page anew. Any change of the inputs ends the waiting."""
    store = runs.shared()
    status.info(text.format(f"0{NBSP}s"), icon=_WAIT)
    time.sleep(_FIRST_THINGS_FIRST_S)
    while True:
        found = store.whole(scenario, trace)
        if isinstance(found, Answer):
            st.rerun()
        if found.error is not None:
            store.jobs.forget(found.key)
            status.error(f"The whole run failed: {plain(sentence(str(found.error)))} Change a setting to try again.")
            return
        ahead = store.jobs.ahead(found)
        waiting = f"busy, {ahead} ahead" if ahead else f"{found.running_s:.0f}{NBSP}s"
        status.info(text.format(waiting), icon=_WAIT)
        time.sleep(0.1)


def show(answer: Answer, scenario: Scenario) -> None:
    """The answer, whole or first."""
    story = answer.story
    parts.headline(verdict.headline(story, scenario))
    st.markdown(verdict.explanation(story))
    _tiles(story, answer.final)
    st.caption(machines(story, scenario))
    horizon = scenario.run.horizon_s or float(story.summary["run"]["horizon_s"])
    warmup = scenario.run.warmup_s
    parts.chart(
        "arrivals",
        verdict.arrivals_sentence(story, scenario),
        charts.arrivals_figure(story.arrivals, horizon, warmup),
        lambda: arrivals_table(story),
    )
    _waits_and_refusals(story, horizon, warmup)
    st.markdown("#### What this assumes")
    st.markdown("\n".join(f"- {line}" for line in assumptions(scenario)))
    for note in story.summary["notes"]:
        st.caption(f":material/info: {plain(note)}")
    st.caption(footer(story, scenario))


def _waits_and_refusals(story: Story, horizon_s: float, warmup_s: float) -> None:
    """Two charts side by side; one that would be empty gives its place to the other, and is a sentence."""
    waited, refused = not math.isnan(story.latencies.worst_s), bool(story.refusals.shares)
    left, right = st.columns(2, gap="large") if waited and refused else (st.container(), st.container())
    with left:
        if waited:
            threshold = story.promise.objective.threshold_s if story.promise else None
            axis = "{} ({})".format(*METRICS[story.tail.metric])
            parts.chart(
                "latency",
                verdict.latency_sentence(story),
                charts.latency_figure(story.latencies, horizon_s, warmup_s, axis, threshold),
                lambda: latency_table(story),
            )
        else:
            st.markdown(verdict.latency_sentence(story))
    with right:
        if refused:
            parts.chart(
                "refusals",
                verdict.refusals_sentence(story),
                charts.refusals_figure(story.refusals, horizon_s, warmup_s),
                lambda: refusals_table(story),
            )
        else:
            st.markdown(verdict.refusals_sentence(story))


def _tiles(story: Story, final: bool) -> None:
    promise, tail = story.promise, story.tail
    word, term = METRICS[tail.metric]
    first, second, third = st.columns(3)
    against = f"promise {seconds(promise.objective.threshold_s)}" if promise else "nothing promised"
    missing = tail.unanswered / (tail.answered + tail.unanswered) if final and tail.unanswered else 0.0
    first.metric(
        f"{word[:1].upper()}{word[1:]}, slowest 5 % ({term} p95)",
        seconds(tail.p95) if tail.p95 is not None else "–",
        f"{against}, but {_missing(missing)} got no answer" if missing > _WORTH_SAYING else against,
        delta_color="off", delta_arrow="off", border=True,
        help=f"Of the {tail.answered:,} requests that were answered in full; {tail.unanswered:,} were not."
        + _interval(tail.p95_ci, seconds),
    )  # fmt: skip
    kept = promise.attainment.attainment if promise else None
    interval = promise.attainment.ci95 if promise else None
    second.metric(
        "Kept the promise",
        percent(kept) if kept is not None else "–",
        f"target {percent(promise.objective.target)}" if promise else "nothing promised",
        help="Share of requests in time. Whoever got no answer counts as broken, as the promise says."
        + _interval(interval, percent),
        delta_color="off", delta_arrow="off", border=True,
    )  # fmt: skip
    why = listed([REASONS[reason] for reason in story.reasons][:2]) if story.reasons else "nobody"
    third.metric(
        "Turned away",
        percent(story.turned_away) if story.turned_away is not None else "–",
        why, delta_color="off", delta_arrow="off", border=True,
    )  # fmt: skip


def _interval(ends: Sequence[float] | None, words: Callable[[float], str]) -> str:
    return "" if ends is None else f" 95 % interval from the spread over runs: {words(ends[0])} to {words(ends[1])}."


def _missing(share: float) -> str:
    return "all" if share == 1.0 else percent(share, 2)


def arrivals_table(story: Story) -> pd.DataFrame:
    """What the first chart shows."""
    a = story.arrivals
    return pd.DataFrame(
        {"from (s)": a.bins.start_s, "arrivals per second": a.rate_rps, "can be served per second": a.capacity_rps}
    ).dropna(subset=["arrivals per second"])


def latency_table(story: Story) -> pd.DataFrame:
    """What the second chart shows."""
    c = story.latencies
    columns: dict[str, object] = {"from (s)": c.bins.start_s}
    for name in c.figures:
        columns |= {f"{name} (s)": c.figures[name], f"{name} low": c.low[name], f"{name} high": c.high[name]}
    return pd.DataFrame(columns).dropna(subset=["p50 (s)"])


def refusals_table(story: Story) -> pd.DataFrame:
    """What the third chart shows."""
    r = story.refusals
    columns = {f"{REASONS[reason]} (%)": 100 * share for reason, share in r.shares.items()}
    return pd.DataFrame({"from (s)": r.bins.start_s, **columns})


if __name__ == "__main__":
    page()
