"""How this works: what is assumed, how near predictions come to measurements, the equations, the words."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from engine import Scenario, ScenarioError  # the whole package first: another page may be importing it at this moment
from engine.machine import (
    Off,
    Published,
    held_out_table,
    how_far_off,
    published,
    replica_evidence,
    replica_memory,
    worked_example,
)
from engine.scenario import Analytic
from engine.study import recorded_runs
from ui import about_charts, about_words, confidence, frame, parts, session
from ui.assumptions import assumptions
from ui.overrides import overrides
from ui.own_point import own_point
from ui.session import Current
from ui.widgets import sidebar
from ui.words import NBSP

SLUG = "about"
_DOCS = Path(__file__).resolve().parents[1] / "docs"
_GUIDES = {
    "engine.md": "How the engine works",
    "accuracy.md": "How near it comes to real servers",
    "scenario-fields.md": "Every field of a scenario",
}
_ALL = "all"


def page() -> None:
    """The whole page."""
    frame.prepare()
    current = session.current(SLUG)
    sidebar(current)
    parts.headline("How this works")
    st.markdown(
        "Every request is served step by step, as an engine like vLLM does it: let in, read, written word by word, "
        "held back when memory or the step is full. How long a step lasts comes from the figures of model and "
        "accelerator and from constants fitted to published measurements. The page shows how far that carries."
    )
    if current.trouble is not None or current.scenario is None:
        (parts.trouble(current) if current.trouble else parts.problems(current.problems))
        _without_a_scenario()
        return
    _assumed(current.scenario)
    _accuracy(current, current.scenario)
    _replayed()
    _equations(current.scenario)
    _constants(current)
    _words()
    _versions()


def _without_a_scenario() -> None:
    _replayed()
    _words()
    _versions()


# -- sections ----------------------------------------------------------------------------------------------------------


def _assumed(scenario: Scenario) -> None:
    st.markdown("#### What is assumed, and what isn't modelled")
    st.markdown("\n".join(f"- {line}" for line in assumptions(scenario)[:-1]))
    with st.expander("What isn't modelled"):
        st.markdown("\n".join(f"- {line}" for line in about_words.NOT_MODELLED))


def _accuracy(current: Current, scenario: Scenario) -> None:
    st.markdown("#### Predicted against measured")
    st.markdown(f":small[{about_words.sources_sentence()}]")
    chosen = _chosen(scenario)
    off = how_far_off(chosen)
    found = replica_evidence(scenario)
    band = (found.median_ape if found is not None else off.median if off is not None else 0.0) / 100
    if off is None:
        st.markdown(about_words.scatter_sentence(None, band))
    else:
        left, right = st.columns((3, 2), gap="large")
        with left:
            parts.chart(
                "published",
                about_words.scatter_sentence(off, band),
                about_charts.scatter(chosen, band),
                lambda: about_charts.scatter_table(chosen),
            )
        with right:
            _figures(off)
    table = held_out_table()
    if table:
        with st.expander("Every class of measurement, and what was asked for"):
            st.dataframe(about_words.classes_table(table), hide_index=True)
    with st.expander("When a verdict says probably"):
        st.markdown(about_words.PROBABLY)
    own_point(current)


def _figures(off: Off) -> None:
    st.markdown(
        _table(
            ("error", "of what is shown"),
            (
                ("Half within", f"**{off.median:.1f}{NBSP}%**"),
                ("Nine in ten within", f"**{off.p90:.0f}{NBSP}%**"),
                ("Middle, signed", f"**{off.signed:+.1f}{NBSP}%**".replace("-", "−")),
                ("Deployments", f"{off.deployments:,}"),
                ("Measurements", f"{off.points:,}"),
            ),
        )
    )
    st.caption(
        "Every deployment (source, model, accelerator, engine, devices) counts the same, however many measurements it "
        "has. Above zero, predictions are too high."
    )


def _chosen(scenario: Scenario) -> list[Published]:
    """The points that the filters leave; they begin at the scenario's class, as far as it was measured."""
    points = [p for p in published() if p.known]
    found = replica_evidence(scenario)
    kinds = {_ALL: "all models", **confidence.KINDS}
    families = _options([p.family for p in points], confidence.FAMILIES)
    engines = _options([p.engine for p in points], {p.engine: confidence.engine_word(p.engine) for p in points})
    metrics = about_charts.METRICS
    start = {
        "about metric": "tpot",
        "about kind": found.kind if found else _ALL,
        "about family": found.family if found and found.family in families else _ALL,
        "about engine": _ALL,
    }
    for key, value in start.items():
        st.session_state.setdefault(key, value)
    lists = (
        ("Metric", "about metric", metrics),
        ("Models", "about kind", kinds),
        ("Accelerators", "about family", families),
        ("Engine", "about engine", engines),
    )
    for column, (label, key, words) in zip(st.columns(len(lists)), lists, strict=True):
        with column:
            st.selectbox(label, list(words), format_func=words.__getitem__, key=key, persist_state="session")
    picked = {key: st.session_state[f"about {key}"] for key in ("metric", "kind", "family", "engine")}
    return [p for p in points if all(value in (_ALL, getattr(p, key)) for key, value in picked.items())]


def _options(present: list[str], words: dict[str, str]) -> dict[str, str]:
    return {_ALL: _ALL} | {key: word for key, word in words.items() if key in present}


def _replayed() -> None:
    st.markdown("#### Two real servers, served again")
    st.markdown(
        ":small[Two runs of vLLM 0.19 were recorded request by request: 300 conversations each, all within 29 seconds, "
        "several times what the server can take. The same requests go through this engine.]"
    )
    runs = recorded_runs()
    titles = [run.title for run in runs]
    picked = st.segmented_control(
        "Run", titles, default=titles[0], key="about run", label_visibility="collapsed", required=True
    )
    run = runs[titles.index(picked or titles[0])]
    parts.chart(
        "replayed",
        about_words.run_sentence(run),
        about_charts.curves(run),
        lambda: about_charts.curves_table(run),
    )
    st.dataframe(about_words.run_table(run), hide_index=True)
    st.caption(
        "Fitted: six step-time coefficients were fitted to the run, so it shows that the rules (who is let in, who "
        "waits, who is preempted) make the queues that a real server had. Nothing fitted: only the server's settings."
    )


def _equations(scenario: Scenario) -> None:
    st.markdown("#### The equations, with this scenario's numbers")
    try:
        worked = worked_example(scenario)
    except ScenarioError as error:
        parts.problems(error.problems)
        return
    st.latex(r"\text{step} = \text{base}(T) + s\,R + k\,C + a\,A")
    st.caption(
        "T tokens of R conversations with C tokens of context, and A pairs of prompt tokens of which one attends to "
        "the other. Matrix products and reading the weights overlap in part; the rest comes one after the other."
    )
    if worked is None:
        st.markdown("A trace brings the lengths of this scenario: its steps differ too much for an example.")
    else:
        st.markdown(about_words.steps_sentence(worked))
        if isinstance(scenario.performance, Analytic):
            st.dataframe(about_words.step_table(worked), hide_index=True)
    if isinstance(scenario.performance, Analytic):
        held = replica_memory(scenario)
        st.markdown(about_words.memory_sentence(held))
        with st.expander("Memory of one device"):
            st.dataframe(about_words.memory_table(held), hide_index=True)
    with st.expander("How latencies are defined"):
        st.markdown(_table(("latency", "is"), about_words.LATENCIES))
        st.caption(
            "Percentiles are over all requests of all runs together that arrived after the warm-up and were answered: "
            "the smallest value with at least that share at or below it."
        )


def _constants(current: Current) -> None:
    scenario = current.scenario
    if scenario is None or not isinstance(scenario.performance, Analytic):
        return
    st.markdown("#### The constants")
    try:
        table = about_words.constants_table(scenario)
    except ScenarioError as error:
        parts.problems(error.problems)
        return
    st.markdown(
        "What the equations can't know, for this deployment. Any of them can be replaced, here or in a scenario's file "
        'under `performance.overrides`: `{"eta_m": 0.8}`. It is kept in the link.'
    )
    overrides(scenario)
    with st.expander(f"All {len(table)} constants and where they are from"):
        st.dataframe(table, hide_index=True, height=420)


def _words() -> None:
    st.markdown("#### Words")
    with st.expander("Glossary"):
        st.markdown(_table(("word", "is"), about_words.GLOSSARY))


def _versions() -> None:
    st.markdown("#### Versions, and more to read")
    st.markdown(" · ".join(f"{name} {number}" for name, number in about_words.versions()))
    with st.container(horizontal=True):
        for name, title in _GUIDES.items():
            path = _DOCS / name
            if path.exists():
                st.download_button(title, path.read_bytes(), name, "text/markdown", key=f"guide {name}")


def _table(head: tuple[str, str], rows: tuple[tuple[str, str], ...]) -> str:
    return "\n".join(f"| {one} | {other} |" for one, other in (head, ("---", "---"), *rows))


if __name__ == "__main__":
    page()
