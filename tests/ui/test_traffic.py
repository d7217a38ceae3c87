"""The traffic page as a visitor's session, without a browser."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.study.test_sized import CALM
from tests.ui.visitor import press, said, scenario, visit
from ui import fitted, sized, traces

PAGE = "pages/traffic.py"


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def uploaded() -> tuple[Scenario, traces.Kept]:
    rows = "".join(f"{t / 2},{100 + t % 7},{50 + t % 11}\n" for t in range(600))
    kept = traces.shared().put(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode(), "mine.csv")
    return traces.replaying(CALM, kept.trace), kept


def test_a_deep_link_shows_the_worst_minute_and_the_charts() -> None:
    app = visit("p=average-lies", PAGE)
    assert said(app).startswith("The worst minute ")
    assert [tile.label for tile in app.metric] == [
        "On average", "Worst minute", "Clumps (index of dispersion)", "Variation of gaps (CV)",
    ]  # fmt: skip
    assert len(app.get("plotly_chart")) == 4


def test_the_same_rate_arrives_in_another_way() -> None:
    app = visit(CALM.to_link(), PAGE)
    press(app, "arrive-mmpp")
    assert said(app)
    assert scenario(app) == CALM.replace({"traffic.process": "mmpp"})
    app.number_input(key="traffic.mmpp.burst_ratio").set_value(6.0).run()
    assert scenario(app) == CALM.replace({"traffic.process": "mmpp", "traffic.mmpp.burst_ratio": 6.0})
    press(app, "arrive-gamma")
    assert scenario(app).traffic.process == "gamma"
    assert scenario(app).traffic.cv == 3.0
    press(app, "arrive-deterministic")
    assert scenario(app).traffic.process == "deterministic"


def test_fixed_users_have_no_peak_to_size_for() -> None:
    app = visit("p=one-read", PAGE)
    assert said(app).replace("\u00a0", " ").startswith("64 users bring ")
    assert not [button for button in app.button if (button.key or "").startswith("arrive-")]
    assert any("no peak to size for" in text for text in app.markdown.values)


def test_nobody_comes() -> None:
    silent = CALM.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})
    assert said(visit(silent.to_link(), PAGE)) == "Nothing arrives."


def test_a_fleet_is_sized_and_taken() -> None:
    mine = CALM.replace({"name": "sized"})
    wait_for(lambda: sized.go_on(mine, None))
    app = visit(mine.to_link(), PAGE)
    assert said(app)
    assert any("sized for the average" in text for text in app.markdown.values)
    press(app, "size-worst")
    assert said(app)
    assert scenario(app).fleet.replicas in (4, 5, 6)


def test_an_uploaded_trace_is_fitted_and_its_fit_can_be_used() -> None:
    replayed, kept = uploaded()
    wait_for(lambda: fitted.go_on(kept.trace))
    app = visit(replayed.to_link(), PAGE)
    assert said(app)
    assert any("recorded shares" in text for text in app.markdown.values)
    press(app, "use-fitted")
    assert said(app)
    assert scenario(app).traffic.process in ("poisson", "gamma")
    assert scenario(app).traffic.classes[0].name == "fitted"


def test_blocks_of_an_uploaded_trace_can_be_drawn() -> None:
    replayed, kept = uploaded()
    wait_for(lambda: fitted.go_on(kept.trace))
    app = visit(replayed.to_link(), PAGE)
    press(app, "use-resample")
    assert said(app)
    assert scenario(app).traffic.trace.resample == "blocks"
    assert scenario(app).run.seeds == 8
    app.number_input(key="traffic.trace.block_s").set_value(20.0).run()
    assert scenario(app).traffic.trace.block_s == 20.0


def test_a_pinned_scenario_is_shown_in_the_tiles() -> None:
    app = visit(CALM.to_link(), PAGE)
    said(app)
    press(app, "pin")
    press(app, "arrive-gamma")
    assert said(app)
    assert all(tile.delta.startswith("A: ") for tile in app.metric)


@pytest.mark.parametrize("link", ["s=nonsense", "p=mondy"])
def test_a_bad_link_offers_the_nearest_valid_scenario(link: str) -> None:
    assert said(visit(link, PAGE)) == "This link can't be opened as it is."


def test_the_first_preset_has_its_minute() -> None:
    app = visit("", PAGE)
    assert said(app).startswith("The worst minute brings ")
    assert scenario(app) == preset("monday").scenario
