"""What is drawn: the right numbers, few and small, in colours of the theme."""

from __future__ import annotations

import dataclasses
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.elements.lib.streamlit_plotly_theme import BG_COLOR

from engine import Scenario, simulate
from engine.outcome.story import Story, story
from ui import axes, charts
from ui.words import NBSP

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = Scenario.from_dict(
    {
        "traffic": {"rate_rps": 6.0},
        "admission": {"max_outstanding": 20},
        "batching": {"max_num_seqs": 8},
        "performance": {"kind": "linear", "overhead_s": 0.02},
        "run": {"seeds": 3, "horizon_s": 300.0},
    }
)


@pytest.fixture(scope="module")
def told() -> Story:
    return story(simulate(SCENARIO))


def figures(told: Story) -> dict[str, Any]:
    return {
        "arrivals": charts.arrivals_figure(told.arrivals, 300.0, 60.0),
        "latency": charts.latency_figure(told.latencies, 300.0, 60.0, "first word (TTFT)", 2.0),
        "refusals": charts.refusals_figure(told.refusals, 300.0, 60.0),
    }


def test_traces_are_small_and_begin_at_zero(told: Story) -> None:
    for figure in figures(told).values():
        assert len(figure.data) > 0
        for trace in figure.data:
            assert trace.y.dtype == np.float32
            assert trace.y.size <= 2000
        assert figure.layout.yaxis.range[0] == 0
        assert figure.layout.xaxis.range[1] == 5.0
        assert figure.layout.xaxis.title.text == "minutes"
        assert not figure.layout.showlegend
        assert "yaxis2" not in figure.layout  # one axis a chart


def test_lines_and_labels_take_the_theme_s_colours(told: Story) -> None:
    for figure in figures(told).values():
        used = [t.line.color for t in figure.data if t.type == "scatter" and t.line.color]
        used += [a.font.color for a in figure.layout.annotations]
        assert used
        assert {colour[:4] for colour in used} == {"#000"}


def test_every_line_is_told_apart_without_colour(told: Story) -> None:
    lines = [t for t in figures(told)["latency"].data if t.name]
    assert {t.name for t in lines} == {"p50", "p95", "p99", "promise"}
    assert len({(t.line.dash, t.line.width) for t in lines}) == 4
    named = {a.text.replace("\u00a0", " ") for a in figures(told)["latency"].layout.annotations}
    assert named == {"p50", "p95", "p99", "promise 2 s"}


def test_the_shaded_part_is_what_exceeds_capacity(told: Story) -> None:
    drawn = figures(told)["arrivals"]
    low, high = (t for t in drawn.data if t.hoverinfo == "skip" and t.fill != "tozeroy")
    capacity = np.float32(told.arrivals.capacity_rps)
    assert (low.y == capacity).all()
    rate = told.arrivals.rate_rps
    assert high.y[:-1] == pytest.approx(np.maximum(rate, capacity), rel=1e-6)


def test_refusals_add_up(told: Story) -> None:
    drawn = figures(told)["refusals"]
    assert told.reasons.keys() == {"queue_full"}
    assert drawn.data[0].name == "queue full"
    assert drawn.data[0].y.max() == pytest.approx(100 * np.nanmax(told.refusals.shares["queue_full"]), rel=1e-6)
    assert drawn.layout.yaxis.range[1] <= 100


def test_a_far_capacity_is_said_and_not_drawn(told: Story) -> None:
    far = dataclasses.replace(told.arrivals, capacity_rps=1000.0)
    drawn = charts.arrivals_figure(far, 300.0, 0.0)
    assert drawn.layout.yaxis.range[1] < 100
    assert any("far above" in a.text for a in drawn.layout.annotations)
    assert not drawn.layout.shapes  # no warm-up, no veil


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, 1.0), (0.87, 1.0), (1.0, 1.0), (1.01, 1.2), (47.0, 50.0), (120.0, 120.0), (999.0, 1000.0)],
)
def test_axes_end_at_round_numbers(value: float, expected: float) -> None:
    assert charts.nice_top(value) == pytest.approx(expected)


def test_labels_keep_apart_in_their_order() -> None:
    placed = charts.spread_apart([0.0, 0.1, 5.0, 9.9, 10.0], 1.0, 10.0)
    assert placed == sorted(placed)
    assert min(b - a for a, b in pairwise(placed)) >= 1.0 - 1e-12
    assert placed[0] >= 0.0
    assert placed[-1] <= 10.0
    assert charts.spread_apart([3.0], 1.0, 10.0) == [3.0]


@pytest.mark.parametrize(
    ("horizon_s", "unit"), [(120.0, "seconds"), (900.0, "minutes"), (3600.0, "minutes"), (86400.0, "hours")]
)
def test_time_has_the_unit_that_fits(horizon_s: float, unit: str) -> None:
    assert charts.clock(horizon_s)[1] == unit


def test_a_is_drawn_over_pale_dashed_and_named(told: Story) -> None:
    """On the axis of both, so that neither is cut off."""
    slower = story(simulate(SCENARIO.replace({"performance.overhead_s": 0.03, "admission.max_outstanding": 60})))
    drawn = {
        "A can serve": charts.arrivals_figure(told.arrivals, 300.0, 60.0, slower.arrivals),
        "A p95": charts.latency_figure(told.latencies, 300.0, 60.0, "first word (TTFT)", 2.0, slower.latencies),
        "A": charts.refusals_figure(told.refusals, 300.0, 60.0, slower.refusals),
    }
    for name, figure in drawn.items():
        line = next(t for t in figure.data if t.name == name)
        assert line.line.dash == "6px,4px"
        assert len(line.line.color) == 9, "pale: a colour with opacity"
        assert any(a.text.replace("\u00a0", " ").startswith(name) for a in figure.layout.annotations)
    counted = slower.latencies.bins.start_s >= 60.0
    assert drawn["A p95"].layout.yaxis.range[1] >= np.nanmax(slower.latencies.figures["p95"][counted])


def test_of_a_with_the_same_arrivals_only_the_capacity_is_drawn(told: Story) -> None:
    figure = charts.arrivals_figure(told.arrivals, 300.0, 60.0, told.arrivals)
    assert not [t for t in figure.data if t.name and t.name.startswith("A ")]


def test_short_times_are_in_milliseconds(told: Story) -> None:
    short = dataclasses.replace(
        told.latencies,
        **{k: {n: v / 1e3 for n, v in getattr(told.latencies, k).items()} for k in ("figures", "low", "high")},
    )
    figure = charts.latency_figure(short, 300.0, 60.0, "gap between words (TPOT)", 0.05)
    assert figure.layout.yaxis.title.text == "gap between words (TPOT), ms"
    promise = next(t for t in figure.data if t.name == "promise")
    assert promise.y[0] == pytest.approx(50.0)


def test_ticks_of_long_times_are_whole_minutes_and_hours() -> None:
    def texts(low: float, high: float) -> list[str]:
        return [text.replace(NBSP, " ") for text in axes.log_ticks(low, high)["ticktext"]]

    assert texts(4.0, 400.0) == ["5 s", "10 s", "20 s", "60 s", "2 min", "5 min"]
    assert texts(4.0, 55.0) == ["5 s", "10 s", "20 s", "50 s"]
    assert texts(1000.0, 8000.0) == ["20 min", "1 h", "2 h"]
    assert texts(0.4, 5000.0) == ["1 s", "10 s", "60 s", "10 min", "1 h"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_on_a_bar_has_contrast_in_both_themes(theme: str) -> None:
    """WCAG 2.1: the ratio of relative luminances, 0.05 added to both, is at least 4.5."""
    colours = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())["theme"][theme]
    assert charts.INSIDE["color"] == BG_COLOR, "the stand-in for the theme's background"

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    ground = luminance(colours["backgroundColor"])
    for colour in colours["chartCategoricalColors"][:7]:
        low, high = sorted((ground, luminance(colour)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, colour


def test_a_log_axis_of_many_powers_has_few_ticks() -> None:
    assert charts.log_ticks(-1.0, 1.0)["tickvals"] == pytest.approx([0.1, 0.2, 0.5, 1, 2, 5, 10])
    assert charts.log_ticks(-1.3, 2.3)["tickvals"] == pytest.approx([0.1, 1, 10, 100])
