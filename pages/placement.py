"""What fits where: models onto a stock of chips, what each chip holds, and what is ruled out before any packing."""

from __future__ import annotations

import streamlit as st

from engine import Scenario, ScenarioError  # the whole engine first: two visitors at once would import it from two ends
from engine.placement import Question
from ui import (
    answering,
    packing,
    packing_charts,
    packing_inputs,
    packing_tables,
    packing_words,
    parts,
    session,
    splitting,
)
from ui.packing import Placed
from ui.session import Current
from ui.words import NBSP, count, money, percent, plain, sentence

SLUG = "placement"
_SPLIT = "split-or-copy"
_PACK, _COPY = "Many models, one stock", "One model: split or copy"
_EVERY_S = 0.5
_LOOK = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}
_ASSUMED = (
    "**Memory:** a replica needs room for its weights, the activations of its largest step, its runtime, and the KV of "
    "the conversations asked for. Chips may be shared; every replica brings its own runtime.",
    "**A split replica** lies on so many *different* chips of one type, with a part of the weights on each; the links "
    "between them must exist, but aren't fought over here.",
    "**Not modelled:** how fast replicas that share a chip are. Prices are an hour of each chip in use.",
)


def show(scenario: Scenario, current: Current) -> None:
    """Two questions: which chips for these models, and how to spread one model over its chips."""
    parts.begin(current, scenario)
    shared = _shared(scenario)
    split = current.preset == _SPLIT and not shared
    view = st.segmented_control(
        "Question", [_PACK, _COPY], default=_COPY if split else _PACK, required=True, persist_state="session",
        key=f"placement view {split}", label_visibility="collapsed",
    )  # fmt: skip
    if view == _COPY:
        splitting.split_or_copy(scenario)
    else:
        _pack(scenario, current.link)


def _shared(scenario: Scenario) -> bool:
    """Whether the address brings a packing; says what is wrong with it."""
    try:
        return packing_inputs.open_shared(scenario)
    except ScenarioError as error:
        parts.problems(error.problems)
        return False


def _pack(scenario: Scenario, link: str | None) -> None:
    """The answer above, what it was asked below, then the charts."""
    top = st.container()
    try:
        asked = packing_inputs.inputs(scenario, link)
        placed = packing.answer(asked)
    except ScenarioError as error:
        with top:
            parts.headline("This can't be placed as it is.")
            parts.problems(error.problems)
        return
    with top:
        _verdict(placed)
    if not placed.final:
        _wait(asked)
    if placed.best is not None and placed.best.used:
        best = placed.best
        parts.chart(
            "chips",
            packing_words.packing_sentence(placed.needs, best),
            packing_charts.chips_figure(placed.needs, best),
            lambda: packing_tables.chips_table(placed.needs, best),
        )
    _ruled_out(placed)
    _seats(placed)
    _one_more(asked, placed)
    st.markdown("#### What this assumes")
    st.markdown("\n".join(f"- {line}" for line in _ASSUMED))


def _verdict(placed: Placed) -> None:
    solution, best = placed.solution, placed.best
    parts.headline(packing_words.headline(placed.needs, solution, best))
    if solution.packing is not None and best is not None:
        st.markdown(f"{packing_words.bought(solution, best)}. {packing_words.proof(solution)}")
    elif placed.why:
        st.markdown(plain(sentence(placed.why)).replace(" GB", f"{NBSP}GB"))
    if placed.needs.problem.chips:
        st.markdown(packing_words.glance(placed.needs))
    if best is not None and best.used:
        _tiles(placed)


def _tiles(placed: Placed) -> None:
    solution, best = placed.solution, placed.best
    assert best is not None
    first, second, third = st.columns(3)
    gap = "" if solution.gap is None else "no packing costs less" if solution.proven_optimal else "not proven least"
    first.metric(
        "Cost of the chips in use, an hour", money(best.cost), gap or "of what finds a place",
        help="Median of on-demand list prices unless you give one.", **_LOOK,
    )  # fmt: skip
    stock = [chip.max for chip in solution.problem.chips if chip.max is not None]
    second.metric(
        "Chips in use", f"{len(best.used):,}", f"of {sum(stock):,} in stock" if stock else "of any number", **_LOOK
    )
    held = sum(used.gb for used in best.used)
    usable = sum(solution.problem.usable(used.chip) for used in best.used)
    third.metric(
        "Of their memory needed", percent(held / usable, 2), f"{packing_words.gb(usable - held)} stay free",
        help="Of what engines may use and isn't kept free, on the chips in use.", **_LOOK,
    )  # fmt: skip


@st.fragment(run_every=_EVERY_S)
def _wait(asked: Question) -> None:
    st.caption(":material/hourglass_top: Looking for something better, for two seconds at most.")
    if packing.answer(asked).final:
        session.run_again()


def _ruled_out(placed: Placed) -> None:
    st.markdown("#### Ruled out before any packing")
    lines = packing_words.ruled_out_lines(placed.needs)
    if lines:
        st.markdown("\n".join(f"- {line}" for line in lines))
    else:
        st.markdown("Nothing: every model fits every type of chip.")


def _seats(placed: Placed) -> None:
    items = placed.needs.problem.items
    if not items or not placed.needs.problem.chips:
        return
    st.markdown("#### One model, every chip")
    names = [item.model for item in items]
    chosen = st.selectbox("Model", range(len(items)), format_func=lambda i: names[i], key=f"packing seats {len(items)}")
    parts.chart(
        "seats",
        packing_words.seats_sentence(placed.needs, chosen),
        packing_charts.seats_figure(placed.needs, chosen),
        lambda: packing_tables.seats_table(placed.needs, chosen),
    )


def _one_more(asked: Question, placed: Placed) -> None:
    if placed.solution.packing is None or not placed.final:
        return
    st.markdown("#### And one more?")
    names = [item.model for item in placed.needs.problem.items]
    chosen = st.selectbox(
        "One more replica of", range(len(names)), index=None, format_func=lambda i: names[i],
        placeholder="choose a model", key=f"packing more {len(names)}",
    )  # fmt: skip
    if chosen is None:
        st.caption(f"{count(placed.solution.problem.replicas, 'replica')} are placed. Another costs what its chips do.")
    elif packing.one_more(asked, placed, chosen) is None:
        _wait_for_more(asked, placed, chosen)
    else:
        more = packing.one_more(asked, placed, chosen)
        assert more is not None
        st.markdown(packing_words.one_more(placed.needs, more, chosen, placed.solution.packing.cost))


@st.fragment(run_every=_EVERY_S)
def _wait_for_more(asked: Question, placed: Placed, item: int) -> None:
    st.caption(":material/hourglass_top: Packing everything anew, for two seconds at most.")
    if packing.one_more(asked, placed, item) is not None:
        session.run_again()


if __name__ == "__main__":
    answering.standing(SLUG, show)
