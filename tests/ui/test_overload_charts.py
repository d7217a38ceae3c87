"""The overload page's figures: the right numbers, in colours of the theme, told apart without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome.overload import Spent
from engine.outcome.story import Story, story
from ui import overload_charts, tables
from ui.overload_words import FATES

SCENARIO = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 3.0,
            "client": {"ttft_timeout_s": 2.5, "on_timeout": "ignore", "max_retries": 2, "backoff_s": 2.5},
        },
        "batching": {"max_num_seqs": 8},
        "performance": {"kind": "linear", "overhead_s": 0.02},
        "fleet": {"replicas": 1},
        "run": {"seeds": 2, "horizon_s": 200.0},
    }
)
ROWS = [("as it is now", {"in_time": 0.05, "late": 0.95}), ("refuse", {"in_time": 0.9, "late": 0.01, "refused": 0.09})]


@pytest.fixture(scope="module")
def told() -> Story:
    return story(simulate(SCENARIO))


def named(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data if trace.name}


def test_first_attempts_and_retries_are_stacked(told: Story) -> None:
    o = told.overload
    figure = overload_charts.load_figure(o.load, o.fleet_rps, 200.0, 60.0)
    lines = named(figure)
    assert lines.keys() == {"first attempts", "with retries", "in time", "can be served"}
    assert lines["first attempts"].y[:-1] == pytest.approx(o.load.first_rps, rel=1e-6)
    assert lines["with retries"].y[:-1] == pytest.approx(o.load.first_rps + o.load.retries_rps, rel=1e-6)
    assert lines["in time"].y[:-1] == pytest.approx(o.load.in_time_rps, rel=1e-6)
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.yaxis.range[1] >= lines["with retries"].y.max()
    assert len({(line.line.dash, line.line.width) for line in lines.values()}) == 4
    assert all(trace.y.dtype == np.float32 for trace in figure.data)


def test_a_is_drawn_over(told: Story) -> None:
    load = told.overload.load
    assert "A in time" in named(overload_charts.load_figure(load, 1.0, 200.0, 60.0, load))
    assert "A" in named(overload_charts.amplification_figure(load, 200.0, 60.0, load))


def test_attempts_per_request_begin_at_one(told: Story) -> None:
    lines = named(overload_charts.amplification_figure(told.overload.load, 200.0, 60.0))
    assert lines["attempts"].y[0] == 1.0
    assert np.nanmax(lines["attempts"].y) > 1.5


@pytest.mark.parametrize("across", [True, False])
def test_fates_are_stacked_to_a_hundred_and_told_apart(across: bool) -> None:
    figure = (overload_charts.ways_figure if across else overload_charts.caps_figure)(ROWS)
    bars = named(figure)
    assert bars.keys() == {"in time", "late", "refused"}
    total = np.sum([bar.x if across else bar.y for bar in bars.values()], axis=0)
    assert total == pytest.approx([100.0, 100.0])
    assert figure.layout.barmode == "stack"
    assert len({bar.marker.pattern.shape for bar in bars.values()}) == 3
    assert {bar.marker.color[:4] for bar in bars.values()} == {"#000"}
    assert list((figure.layout.xaxis if across else figure.layout.yaxis).range) == [0, 100]


def test_every_fate_has_a_colour_and_a_pattern() -> None:
    assert set(FATES) == set(overload_charts.COLOURS) == set(overload_charts.PATTERNS)


def test_work_is_stacked_to_a_hundred() -> None:
    figure = overload_charts.spent_figure([("now", Spent(1, 1, 2)), ("A", Spent(4, 0, 0))])
    assert {name: list(bar.x) for name, bar in named(figure).items()} == {
        "in time": [25.0, 100.0], "late": [25.0, 0.0], "for callers who had left": [50.0, 0.0]
    }  # fmt: skip


def test_tables_have_what_is_drawn(told: Story) -> None:
    table = tables.load_table(told.overload)
    assert table["first attempts per second"].to_numpy() == pytest.approx(told.overload.load.first_rps)
    spent = tables.spent_table([("now", Spent(1, 2, 3))])
    assert spent.iloc[0].to_list() == ["now", 1, 2, 3]
