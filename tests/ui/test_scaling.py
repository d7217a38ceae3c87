"""The scaling page as a visitor's session, without a browser."""

from __future__ import annotations

import time

import pytest

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.outcome.scaled import SCENARIO
from tests.ui.test_start import address, said, scenario, visit
from ui import rules, traces

PAGE = "pages/scaling.py"
SMALL = SCENARIO.replace(
    {"run.horizon_s": 300, "fleet.routing.policy": "round_robin", "autoscaler.interval_s": 60, "slo.0.threshold_s": 3.0}
)


def test_a_link_shows_the_lag() -> None:
    app = visit(SMALL.to_link(), PAGE)
    assert said(app).replace("\u00a0", " ") == "Help arrives 49 s late: 9 s to decide and 40 s to start."
    assert [tile.label for tile in app.metric] == [
        "Help arrives after (lag)", "Requests harmed", "Cost of the fleet, an hour", "Spare that bridges it, an hour",
    ]  # fmt: skip
    assert len(app.get("plotly_chart")) == 2
    assert not app.warning


def test_a_control_of_the_page_changes_the_answer_and_the_address() -> None:
    app = visit(SMALL.to_link(), PAGE)
    before = said(app)
    app.number_input(key="autoscaler.startup.provision_s").set_value(70.0).run()
    assert said(app) != before
    assert "40" not in said(app)
    assert scenario(app) == SMALL.replace({"autoscaler.startup.provision_s": 70.0})


def test_the_rule_and_the_switch_are_lists() -> None:
    app = visit(SMALL.to_link(), PAGE)
    app.selectbox(key="autoscaler.policy").set_value("keda").run()
    app.selectbox(key="autoscaler.count_starting").set_value("no").run()
    said(app)
    assert scenario(app) == SMALL.replace({"autoscaler.policy": "keda", "autoscaler.count_starting": False})


def test_without_an_autoscaler_it_says_what_to_switch_on() -> None:
    app = visit(SMALL.replace({"autoscaler.policy": "none"}).to_link(), PAGE)
    assert said(app).startswith("The fleet is fixed: for ")
    app.button(key="switch-on").click().run()
    assert said(app).startswith("Help arrives ")
    assert scenario(app).autoscaler.policy == "hpa"


def test_users_who_wait_for_their_answers_have_no_switch() -> None:
    app = visit("p=one-read", PAGE)
    said(app)
    assert not [button for button in app.button if button.key == "switch-on"]


def test_nothing_arrives() -> None:
    app = visit(SMALL.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}}).to_link(), PAGE)
    assert said(app) == "Nothing arrives, so no help is needed."


def test_a_metric_that_saturates_is_warned_of() -> None:
    app = visit(SMALL.replace({"autoscaler.metric": "utilization", "autoscaler.target": 0.95}).to_link(), PAGE)
    said(app)
    assert "saturates below the target" in app.warning[0].value


def test_without_a_promise_there_is_no_spare_to_find() -> None:
    app = visit(SMALL.replace({"slo": []}).to_link(), PAGE)
    said(app)
    assert app.metric[3].value == "–"


@pytest.mark.parametrize("link", ["s=nonsense", "p=mondy"])
def test_a_bad_link_offers_the_nearest_valid_scenario(link: str) -> None:
    app = visit(link, PAGE)
    assert said(app) == "This link can't be opened as it is."
    app.button[0].click().run()
    said(app)


def test_a_model_that_does_not_fit() -> None:
    too_large = preset("nine-minutes").scenario.replace({"model.name": "Llama-3.1-405B"})
    app = visit(too_large.to_link(), PAGE)
    assert said(app) == "This can't run as it is."


def test_an_uploaded_trace_can_be_scaled() -> None:
    rows = "".join(f"{t},1,1\n" for t in [*range(0, 100, 2), *range(100, 300)])
    content = f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode()
    kept = traces.shared().put(content, "mine.csv")
    app = visit(traces.replaying(SMALL, kept.trace).to_link(), PAGE)
    assert said(app)
    assert scenario(app).traffic.process == "trace"


def test_the_rules_and_the_spare_come_one_by_one() -> None:
    mine = Scenario.from_dict(SMALL.to_dict()).replace({"name": "rules", "run.horizon_s": 200})
    deadline = time.monotonic() + 120
    wanted = ("spare", "hpa", "keda", "knative", "ray_serve", "aibrix", "schedule", "fixed")
    while any(rules.known(mine, piece) is None for piece in wanted) and time.monotonic() < deadline:
        rules.go_on(mine, 1.0, None)
        time.sleep(0.05)
    app = visit(mine.to_link(), PAGE)
    said(app)
    found = rules.known_spare(mine)
    assert found is not None
    assert found.spare
    assert any("would have bridged it" in text for text in app.markdown.values)
    assert len(app.dataframe[0].value) == 7
    app.button(key="use-schedule").click().run()
    assert scenario(app).autoscaler.policy == "schedule"
    assert said(app)
    assert address(app)


def test_the_start_page_has_the_lag_tile_only_with_an_autoscaler() -> None:
    app = visit(SMALL.to_link())
    said(app)
    assert [tile.label for tile in app.metric][-1] == "Help arrives after (lag)"
    assert app.metric[3].value.replace("\u00a0", " ") == "49 s"
    assert any("what the ready replicas can serve" in text for text in app.markdown.values)
