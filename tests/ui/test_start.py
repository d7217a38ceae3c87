"""The start page as a visitor's session, without a browser."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from engine.scenario.presets import preset, presets
from tests.ui.visitor import QUICK, address, go, press, said, scenario, visit

SLIDER = "traffic.rate_rps slider"
BOX = "traffic.rate_rps"


def test_the_first_visit_needs_no_input_and_has_a_plain_address() -> None:
    app = visit()
    assert said(app).startswith("In the busiest minutes, 1 in ")
    assert "On average it looks fine" in app.markdown.values[-1] or any("looks fine" in m for m in app.markdown.values)
    assert [tile.label for tile in app.metric][1:] == ["Kept the promise", "Turned away"]
    assert "first word, slowest 5 % (ttft p95)" in app.metric[0].label.lower()
    assert address(app) == ""
    assert len(app.get("plotly_chart")) == 2
    assert app.selectbox(key="preset").value == "monday"


@pytest.mark.parametrize("entry", presets(), ids=lambda entry: entry.name)
def test_every_preset_opens_by_its_name_and_in_the_list(entry: object) -> None:
    name = entry.name  # type: ignore[attr-defined]
    by_link = visit(f"p={name}")
    by_list = visit(QUICK.to_link())
    by_list.selectbox(key="preset").set_value(name).run()
    assert said(by_link) == said(by_list)
    assert scenario(by_list) == preset(name).scenario
    assert address(by_list) == ("" if name == "monday" else f"p={name}")


def test_a_link_sets_the_controls_and_keeps_what_they_don_t_show() -> None:
    shared = QUICK.replace({"traffic.rate_rps": 1.37, "admission.max_outstanding": 17})
    app = visit(shared.to_link())
    said(app)
    assert app.number_input(key=BOX).value == 1.37
    assert app.select_slider(key=SLIDER).value == 1.37
    app.number_input(key="fleet.replicas").set_value(3).run()
    assert scenario(app) == shared.replace({"fleet.replicas": 3})


def test_slider_and_box_follow_each_other() -> None:
    app = visit(QUICK.to_link())
    app.select_slider(key=SLIDER).set_value(2.0).run()
    assert app.number_input(key=BOX).value == 2.0
    assert scenario(app).traffic.rate_rps == 2.0
    app.number_input(key=BOX).set_value(3.3).run()
    assert app.select_slider(key=SLIDER).value in (3.0, 3.5)
    assert scenario(app).traffic.rate_rps == 3.3
    assert said(app)


def test_the_address_can_be_changed_from_outside_again_and_again() -> None:
    app = visit(QUICK.to_link())
    first = address(app)
    app.number_input(key=BOX).set_value(2.5).run()
    second = address(app)
    assert second != first
    app.run()  # the browser asks for something with the new address: it has arrived there
    for link, rate in ((first, 1.0), (second, 2.5), (first, 1.0)):
        go(app, link)
        assert app.number_input(key=BOX).value == rate
        assert address(app) == link
    go(app, "")
    assert app.number_input(key=BOX).value == preset("monday").scenario.traffic.rate_rps


def test_a_move_that_meets_its_own_link_on_the_way_wins() -> None:
    app = visit(QUICK.to_link())
    old = address(app)
    app.number_input(key=BOX).set_value(2.0).run()
    for key, values in parse_qs(old).items():  # the browser hasn't yet put the new link into its address
        app.query_params[key] = values[0]
    app.number_input(key=BOX).set_value(2.2).run()
    assert app.number_input(key=BOX).value == 2.2
    assert scenario(app).traffic.rate_rps == 2.2


def test_reset_goes_back_to_the_preset() -> None:
    app = visit("p=average-lies")
    app.number_input(key="fleet.replicas").set_value(30).run()
    assert any("replicas 30" in caption.value for caption in app.caption)
    next(button for button in app.button if button.label == "Reset").click().run()
    assert address(app) == "p=average-lies"
    assert not any("Changed" in caption.value for caption in app.caption)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("s=AQApSRzQdn6rRi8e!HXmDDA6ckT34wxQ", "damaged"),
        (f"s={QUICK.to_link()[2:-6]}", "cut short"),
        (f"s={'A' * 7000}", "too long"),
        ("p=mondy", "did you mean monday"),
    ],
)
def test_a_link_that_can_t_be_opened_says_why_and_offers_the_nearest(link: str, message: str) -> None:
    app = visit(link)
    assert said(app) == "This link can't be opened as it is."
    assert message in app.error[0].value.replace("\\", "").lower()
    assert not app.metric
    assert address(app) == link, "nothing is opened silently"
    app.button[0].click().run()
    assert said(app) != "This link can't be opened as it is."
    assert app.metric


def test_a_trace_that_the_server_doesn_t_have_is_said() -> None:
    lost = QUICK.replace(
        {"traffic.process": "trace", "traffic.trace.source": f"sha256:{'0' * 64}", "traffic.rate_rps": 4.0}
    )
    app = visit(lost.to_link())
    assert "no longer has" in app.error[0].value
    app.button[0].click().run()
    assert scenario(app).traffic.process == "poisson"
    assert said(app)


def test_a_model_that_doesn_t_fit_is_said_and_the_controls_stay() -> None:
    app = visit()
    app.selectbox(key="model.name").set_value("Llama-3.1-405B").run()
    assert said(app) == "This can't run as it is."
    assert "GB for its weights" in app.error[0].value
    app.selectbox(key="model.name").set_value("Llama-3.1-8B").run()
    assert app.metric
    assert said(app)


def test_settings_that_clash_are_said_and_the_controls_stay() -> None:
    app = visit(QUICK.to_link())
    app.number_input(key=BOX).set_value(100_000.0).run()
    assert app.error
    app.number_input(key=BOX).set_value(1.0).run()
    assert not app.error
    assert app.metric


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"admission.max_outstanding": 0}, "Nobody is served"),
        ({"traffic.rate_rps": 1e-6}, "Nothing arrives"),
        ({"traffic.rate_rps": 15.0, "batching.max_num_seqs": 1}, "More arrives than can be served"),
    ],
)
def test_extremes(changes: dict[str, object], headline: str) -> None:
    app = visit(QUICK.replace(changes).to_link())
    assert said(app).startswith(headline)


def test_the_data_are_there_as_tables() -> None:
    app = visit(QUICK.replace({"admission.max_outstanding": 2}).to_link())
    for toggle in app.toggle:
        toggle.set_value(True)
    app.run()
    assert len(app.dataframe) == len(app.get("plotly_chart"))
    assert list(app.dataframe[0].value.columns) == ["from (s)", "arrivals per second", "can be served per second"]


def test_the_frame_runs_the_page() -> None:
    app = visit("p=average-lies", script="app.py")
    assert said(app)


def test_undo_and_redo_go_through_what_was_tried() -> None:
    app = visit(QUICK.to_link())
    assert app.button(key="undo").disabled
    for replicas in (3, 4):
        app.number_input(key="fleet.replicas").set_value(replicas).run()
    press(app, "undo")
    assert app.number_input(key="fleet.replicas").value == 3
    assert scenario(app) == QUICK.replace({"fleet.replicas": 3})
    press(app, "undo")
    assert scenario(app) == QUICK
    assert app.button(key="undo").disabled
    press(app, "redo")
    press(app, "redo")
    assert scenario(app) == QUICK.replace({"fleet.replicas": 4})
    assert app.button(key="redo").disabled


def test_undo_takes_back_a_preset_and_what_came_by_the_address() -> None:
    app = visit(QUICK.to_link())
    app.selectbox(key="preset").set_value("average-lies").run()
    press(app, "undo")
    assert scenario(app) == QUICK
    assert app.selectbox(key="preset").value is None
    press(app, "redo")
    assert app.selectbox(key="preset").value == "average-lies"
    go(app, QUICK.replace({"fleet.replicas": 6}).to_link())
    press(app, "undo")
    assert address(app) == "p=average-lies"


def test_engine_settings_and_the_link_follow_each_other() -> None:
    app = visit(QUICK.replace({"admission.max_outstanding": 17}).to_link())
    assert app.number_input(key="admission.max_outstanding").value == 17
    assert app.number_input(key="batching.max_model_len").value is None
    app.number_input(key="batching.max_model_len").set_value(4096).run()
    app.number_input(key="admission.max_outstanding").set_value(None).run()
    app.selectbox(key="batching.kv_policy").set_value("reserve").run()
    assert scenario(app) == QUICK.replace({"batching.max_model_len": 4096, "batching.kv_policy": "reserve"})


def test_a_pinned_scenario_stays_and_differences_are_said() -> None:
    app = visit(QUICK.replace({"performance.overhead_s": 0.1, "batching.max_num_seqs": 8}).to_link())
    press(app, "pin")
    assert any(m.startswith("**This is A.**") for m in app.markdown.values)
    assert not any("against A" in str(tile.delta) for tile in app.metric)
    app.number_input(key="fleet.replicas").set_value(1).run()
    assert said(app)
    assert any("replicas 1 instead of 2" in m for m in app.markdown.values)
    assert any("A" in str(tile.delta) for tile in app.metric)
    app.selectbox(key="preset").set_value("one-read").run()
    assert said(app)
    assert any(m.startswith("**Against A:**") for m in app.markdown.values)
    press(app, "pin")
    assert not any("Against A" in m for m in app.markdown.values)


def test_the_gallery_opens_a_story() -> None:
    app = visit(QUICK.to_link())
    press(app, "open-average-lies")
    assert address(app) == "p=average-lies"
    assert said(app)
    assert app.button(key="open-average-lies").disabled
    assert any(preset("average-lies").title in caption.value for caption in app.caption)


def test_a_setting_without_a_control_is_among_the_changes() -> None:
    grown = preset("average-lies").scenario.replace({"traffic.growth": {"prompt_factor": 1.5}})
    app = visit(grown.to_link("average-lies"))
    assert any(caption.value.startswith("Changed:") and "set" in caption.value for caption in app.caption)
    next(button for button in app.button if button.label == "Reset").click().run()
    assert scenario(app) == preset("average-lies").scenario
