"""The promise page as a visitor's session, without a browser."""

from __future__ import annotations

import time

import pytest

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.outcome.promises.build import BUSY
from tests.ui.test_start import said, scenario, visit
from ui import fewest, traces

PAGE = "pages/promise.py"
SMALL = BUSY.replace({"traffic.client.max_retries": 0, "run.seeds": 2, "slo.0.threshold_s": 1.0})
"""Computed whole within the visit."""


def test_a_link_shows_what_can_be_signed() -> None:
    app = visit(SMALL.to_link(), PAGE)
    assert "have the first word within" in said(app)
    assert [tile.label.replace("\u00a0", " ") for tile in app.metric] == [
        "Strictest kept for 60 %",
        "In time, at the gateway",
        "Error budget (burn rate)",
        "Fewest machines that keep it",
    ]
    assert len(app.get("plotly_chart")) == 4, "attainment, choices, budget, histogram"
    assert app.dataframe[0].value["burn rate"].tolist() == ["14.4", "6", "1"]


def test_every_part_of_the_promise_is_a_control() -> None:
    app = visit(SMALL.to_link(), PAGE)
    before = app.metric[1].value
    app.selectbox(key="slo.0.measured_at").set_value("client").run()
    assert app.metric[1].value != before
    assert "at the client" in app.metric[1].label
    app.selectbox(key="slo.0.metric").set_value("e2e").run()
    assert "last word" in said(app)
    app.selectbox(key="slo.0.failures").set_value("timed_out").run()
    app.selectbox(key="slo.0.window").set_value("calendar").run()
    app.number_input(key="slo.0.window_s").set_value(30.0).run()
    app.number_input(key="traffic.client.network_rtt_s").set_value(0.5).run()
    app.number_input(key="slo.0.threshold_s twin").set_value(4.0).run()
    app.number_input(key="target_percent twin").set_value(50.0).run()
    said(app)
    assert app.number_input(key="slo.0.threshold_s").value == 4.0, "the sidebar's box follows"
    assert scenario(app) == SMALL.replace(
        {
            "slo.0.measured_at": "client", "slo.0.metric": "e2e", "slo.0.failures": ["timed_out"],
            "slo.0.window": "calendar", "slo.0.window_s": 30.0, "traffic.client.network_rtt_s": 0.5,
            "slo.0.threshold_s": 4.0, "slo.0.target": 0.5,
        }
    )  # fmt: skip


def test_without_a_promise_there_is_one_to_begin_with() -> None:
    app = visit(SMALL.replace({"slo": []}).to_link(), PAGE)
    assert said(app) == "Nothing is promised."
    app.button(key="promise").click().run()
    assert said(app) != "Nothing is promised."
    assert scenario(app).slo[0].threshold_s == 2.0


def test_nothing_arrives() -> None:
    app = visit(SMALL.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}}).to_link(), PAGE)
    assert said(app) == "Nothing counts, so there is nothing to promise."
    assert not app.get("plotly_chart")


def test_everything_allowed_and_nothing_allowed() -> None:
    for target in (0.0, 1.0):
        app = visit(SMALL.replace({"slo.0.target": target}).to_link(), PAGE)
        assert said(app)


@pytest.mark.parametrize("metric", ["tpot", "max_itl", "queue"])
def test_other_metrics(metric: str) -> None:
    app = visit(SMALL.replace({"slo.0.metric": metric, "slo.0.threshold_s": 0.2}).to_link(), PAGE)
    assert said(app)


@pytest.mark.parametrize("link", ["s=nonsense", "p=mondy"])
def test_a_bad_link_offers_the_nearest_valid_scenario(link: str) -> None:
    app = visit(link, PAGE)
    assert said(app) == "This link can't be opened as it is."
    app.button[0].click().run()
    said(app)


def test_a_model_that_does_not_fit() -> None:
    too_large = preset("promise").scenario.replace({"model.name": "Llama-3.1-405B"})
    assert said(visit(too_large.to_link(), PAGE)) == "This can't run as it is."


def test_an_uploaded_trace_can_be_promised() -> None:
    rows = "".join(f"{t},1,1\n" for t in range(0, 300, 2))
    kept = traces.shared().put(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode(), "mine.csv")
    app = visit(traces.replaying(SMALL, kept.trace).to_link(), PAGE)
    assert said(app)
    assert scenario(app).traffic.process == "trace"


def test_a_is_shown_beside() -> None:
    app = visit(SMALL.to_link(), PAGE)
    app.button(key="pin").click().run()
    app.number_input(key="slo.0.threshold_s").set_value(2.0).run()
    said(app)
    assert app.metric[1].delta.startswith("A: ")


def test_the_fewest_machines_come_and_can_be_used() -> None:
    mine = Scenario.from_dict(SMALL.to_dict()).replace({"name": "fewest", "slo.0.target": 0.9})
    deadline = time.monotonic() + 120
    while fewest.known(mine) is None and time.monotonic() < deadline:
        fewest.go_on(mine, 1.0, None)
        time.sleep(0.05)
    number = fewest.found(mine)
    assert number is not None
    assert number.replicas > 2
    app = visit(mine.to_link(), PAGE)
    said(app)
    assert app.metric[3].value.startswith(str(number.replicas))
    assert any("The fewest machines that keep it" in text for text in app.markdown.values)
    app.button(key="use-fewest").click().run()
    assert scenario(app).fleet.replicas == number.replicas
    assert "can be signed" in said(app).replace("probably ", "").replace("can probably", "can")


def test_what_no_number_keeps_is_said() -> None:
    mine = SMALL.replace({"name": "never", "slo.0.metric": "e2e", "slo.0.threshold_s": 0.05, "run.seeds": 1})
    deadline = time.monotonic() + 120
    while fewest.known(mine) is None and time.monotonic() < deadline:
        fewest.go_on(mine, 1.0, None)
        time.sleep(0.05)
    app = visit(mine.to_link(), PAGE)
    said(app)
    assert app.metric[3].value == "–"
    assert any("No number of replicas keeps" in text for text in app.markdown.values)
