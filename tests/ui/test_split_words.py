"""What the page says of splitting or copying, and its chart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.scenario import Problem, preset
from engine.study import Layout, frontier, recommend
from tests.study.test_layouts import ALL, COPIES, FOUR, SMALL, TWO, outcome
from ui import split_charts, split_words
from ui.words import NBSP

TRIED = [one.layout for one in ALL]


def flat(text: str) -> str:
    return text.replace(NBSP, " ")


@pytest.mark.parametrize(
    ("layout", "name", "short"),
    [
        (Layout(1, 1, 1, 8), "8 copies of one chip", "8 copies"),
        (Layout(2, 1, 1, 4), "4 copies of 2 chips (TP2)", "TP2 × 4"),
        (Layout(4, 1, 2, 1), "1 copy of 8 chips (TP4·CP2)", "TP4·CP2"),
        (Layout(1, 1, 1, 1), "1 copy of one chip", "1 chip"),
        (Layout(1, 1, 1, 2, ep=8), "2 copies of 8 chips (EP8)", "EP8 × 2"),
    ],
)
def test_names(layout: Layout, name: str, short: str) -> None:
    assert (flat(split_words.name(layout)), split_words.short(layout)) == (name, short)


def test_the_recommendation_names_pressure_and_price() -> None:
    broken = [outcome(1, 40.0, 500.0, met=False), TWO, FOUR]
    pace = SMALL.replace({"slo.0.metric": "tpot", "slo.0.threshold_s": 0.02})
    advice = recommend(pace, TRIED, broken)
    assert advice is not None
    assert flat(split_words.headline(advice, 8)) == "Use 4 copies of 2 chips (TP2)."
    assert flat(split_words.pressure(advice, pace)) == (
        "**The pressure is the pace:** on 8 copies of one chip a user sees 40 tokens a second, and a gap between words "
        "of 20 ms is promised (50 % of requests keep the promise)."
    )
    assert flat(split_words.price(advice)) == (
        "The price: it gives up 10 % of the throughput of 8 copies of one chip and the pace of 2 copies of 4 chips "
        "(TP4), 90 tokens a second for each user instead of 70."
    )


def test_nothing_presses_nothing_is_possible_nothing_is_kept() -> None:
    calm = recommend(SMALL, TRIED, ALL)
    assert calm is not None
    assert split_words.pressure(calm, SMALL).startswith("Nothing presses: 8")
    assert split_words.pressure(calm, SMALL.replace({"slo": []})) == "Nothing is promised, so nothing presses."
    assert flat(split_words.headline(None, 8)) == "No layout of 8 chips can serve this."
    assert split_words.headline(None, 8, could=True).startswith("No answer of two tokens or more comes")
    lost = recommend(SMALL, TRIED, [outcome(1, 40.0, 500.0, met=False)])
    assert flat(split_words.headline(lost, 8)) == (
        "No layout of 8 chips keeps the promise; 8 copies of one chip come nearest."
    )
    one = recommend(SMALL, TRIED, [outcome(8, 40.0, 500.0, met=False)])
    assert flat(split_words.headline(one, 8)).endswith("; 1 copy of 8 chips (TP8) comes nearest.")


def test_layouts_whose_simulation_broke_off_are_named() -> None:
    (said,) = split_words.impossible(TRIED, [TWO.layout, FOUR.layout])
    assert flat(said) == "**TP2 × 4, TP4 × 2:** the simulation broke off; change a setting to try again."


def test_layouts_that_cannot_be_used_are_told_by_reason() -> None:
    pipeline = Problem("autoscaler.policy", '"hpa"', "is not available yet", "use none")
    heads = Problem("parallelism.tp", "3", "doesn't divide the 32 attention heads", "")
    lines = split_words.impossible(
        [Layout(1, 2, 1, 4, pipeline), Layout(2, 2, 1, 2, pipeline), Layout(3, 1, 1, 2, heads), COPIES.layout]
    )
    assert lines == [
        '**PP2 × 4, TP2·PP2 × 2:** pipelines aren\'t simulated with autoscaler.policy "hpa" yet.'.replace("-", "\\-"),
        "**TP3 × 2:** 3 doesn't divide the 32 attention heads.",
    ]


def test_the_chart_draws_the_frontier_and_hollows_the_others() -> None:
    best = frontier(ALL)
    figure = split_charts.layouts_figure(ALL, best, Layout(2, 1, 1, 4))
    assert list(figure.data[0].x) == [90.0, 70.0, 40.0]
    symbols: dict[str, str] = {}
    for trace in figure.data[1:]:
        symbols |= dict(zip(trace.text, trace.marker.symbol, strict=True))
    assert {flat(text): symbol for text, symbol in symbols.items()} == {
        "8 copies": "square", "TP2 × 4 (now)": "circle", "TP4 × 2": "circle", "TP8": "circle-open",
    }  # fmt: skip
    assert split_charts.nameless(figure) == 0
    crowd = split_charts.layouts_figure([replace(COPIES, layout=Layout(1, 1, 1, n)) for n in range(1, 7)], [], None)
    assert split_words.without_name(split_charts.nameless(crowd)).startswith("2 stand too close")
    assert split_words.without_name(0) == ""
    assert figure.layout.xaxis.range[0] == figure.layout.yaxis.range[0] == 0
    table = split_words.outcomes_table(ALL)
    assert list(table["tokens/s/GPU at most"]) == [500.0, 450.0, 300.0, 200]
    assert "pace is traded for throughput" in split_words.frontier_sentence(best, 4)
    assert flat(split_words.frontier_sentence(best[:1], 4)).startswith("**2 copies of 4 chips (TP4) beat every")
    assert flat(split_words.frontier_sentence(best[:1], 1)) == "**Only 2 copies of 4 chips (TP4) can be used.**"
    assert split_words.frontier_sentence((), 0) == "No layout produced a word."


def test_every_kind_of_split_has_a_look_of_its_own() -> None:
    kinds = {(1, 1, 1, 1): "copies", (2, 1, 1, 1): "tensor", (2, 2, 1, 1): "pipeline", (1, 8, 1, 1): "pipeline",
             (2, 1, 2, 1): "context", (1, 1, 1, 8): "experts"}  # fmt: skip
    for (tp, pp, cp, ep), kind in kinds.items():
        assert split_charts.kind(Layout(tp, pp, cp, 1, ep=ep)) == kind


def test_what_each_split_sends() -> None:
    table = split_words.sent_table(preset("split-or-copy").scenario, 4)
    sent = dict(zip(table["split"], table[split_words.SENT], strict=True))
    # Qwen3-32B: 64 layers of 5,120, 64 heads and 8 KV heads of 128; 6,000 tokens at 2 bytes.
    assert (
        sent["tensor (TP)"]
        == sent["sharded activations (SP megatron)"]
        == pytest.approx(64 * 3 * 6000 * 5120 * 2e-6, abs=0.5)
    )
    assert sent["context in a ring (CP)"] == pytest.approx(64 * 3 * 1500 * 2048 * 2e-6, abs=0.5)
    assert sent["pipeline (PP)"] == pytest.approx(6000 * 5120 * 2e-6, abs=0.5)
    assert "for a prompt of 6,000 tokens" in split_words.sent_sentence(preset("split-or-copy").scenario, 4)
    assert sent["operators (SP operators)"] == pytest.approx(64 * 6000 * 5120 * 2e-6, abs=0.5), (
        "one way: others send it back"
    )


def test_experts_are_spoken_of_where_there_are_some() -> None:
    assert not any("Experts" in line for line in split_words.assumed(SMALL))
    assert any("Experts" in line for line in split_words.assumed(SMALL.replace({"model.name": "Mixtral-8x7B"})))
