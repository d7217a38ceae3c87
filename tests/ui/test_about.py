"""The About page as a visitor's session, without a browser."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from engine.machine import how_far_off, published
from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.ui.test_start import QUICK, address, scenario, visit
from ui.words import NBSP

PAGE = "pages/about.py"
MONDAY = preset("monday").scenario


def about(link: str = "") -> AppTest:
    app = visit(link, PAGE)
    assert not app.exception
    assert app.title[0].value == "How this works"
    return app


def texts(app: AppTest) -> str:
    """All that is said, non-breaking spaces plain."""
    assert not app.exception
    return "\n".join([*app.markdown.values, *app.caption.values]).replace(NBSP, " ")


def shown(app: AppTest) -> int:
    """How many measurements the scatter has."""
    found = re.search(r"\| Measurements \| ([\d,]+) \|", texts(app))
    return int(found[1].replace(",", "")) if found else 0


def pick(app: AppTest, **filters: str) -> AppTest:
    for key, value in filters.items():
        app.selectbox(key=f"about {key}").set_value(value)
    return app.run()


def test_a_cold_open_has_everything() -> None:
    app = about()
    text = texts(app)
    for section in ("What is assumed", "Predicted against measured", "Two real servers", "The equations", "Versions"):
        assert f"#### {section}" in text
    assert "Goodput" in text
    assert "NumPy" in text
    assert len(app.get("plotly_chart")) == 2
    assert address(app) == ""


def test_filters_choose_what_the_scatter_and_its_figures_are_of() -> None:
    app = about()
    for filters in ({"metric": "tpot", "kind": "dense", "family": "hopper"}, {"kind": "moe", "engine": "tensorrt_llm"}):
        pick(app, **filters)
        chosen = [
            p
            for p in published()
            if p.known
            and all(
                app.selectbox(key=f"about {key}").value in ("all", getattr(p, key))
                for key in ("metric", "kind", "family", "engine")
            )
        ]
        off = how_far_off(chosen)
        assert off is not None
        assert shown(app) == len(chosen)
        assert f"**{off.median:.1f} %**" in texts(app)
    everything = pick(app, metric="output_tok_s", kind="all", family="all", engine="all")
    assert shown(everything) > 400


def test_a_choice_without_measurements_says_so() -> None:
    app = pick(about(), metric="batch_latency", kind="moe", family="ada", engine="sglang")
    assert "No published measurement of this choice" in texts(app)


def test_filters_begin_at_the_scenario_s_class() -> None:
    mixture = MONDAY.replace({"model.name": "Qwen3-30B-A3B", "hardware.accelerator": "H100-SXM-80GB"})
    app = about(mixture.to_link())
    assert app.selectbox(key="about kind").value == "moe"
    assert app.selectbox(key="about family").value == "hopper"


def test_the_other_run_is_shown_on_request() -> None:
    app = about()
    before = texts(app)
    app.segmented_control(key="about run").set_value("Qwen3-32B on two RTX PRO 6000").run()
    assert "The real server was done after" in texts(app)
    assert texts(app) != before


def test_one_measurement_corrects_the_scenario_and_can_be_undone() -> None:
    app = about()
    app.number_input(key="own point value").set_value(0.2)
    app.button(key="own-point-apply").click().run()
    scale = scenario(app).performance.scale  # type: ignore[union-attr]
    assert scale.tpot == scale.prefill != 1.0
    assert "times as long as predicted" in texts(app)
    assert "Your measurement corrects them" in texts(app)
    assert "Changed: gap between words (TPOT) correction" in texts(app)
    app.button(key="undo").click().run()
    assert scenario(app) == MONDAY
    app.button(key="redo").click().run()
    app.button(key="own-point-remove").click().run()
    assert scenario(app) == MONDAY


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [("value", None, "is not a number"), ("value", 900.0, "times as slow"), ("output", 1.0, "below 2")],
)
def test_a_measurement_that_can_t_be_is_said_and_changes_nothing(key: str, value: float | None, said: str) -> None:
    app = about()
    app.number_input(key="own point value").set_value(0.2)
    app.number_input(key=f"own point {key}").set_value(value)
    app.button(key="own-point-apply").click().run()
    assert any(said in error.value.replace("\\", "") for error in app.error)
    assert scenario(app) == MONDAY


def test_a_constant_can_be_replaced_and_taken_back() -> None:
    app = about()
    app.selectbox(key="override name").set_value("eta_m")
    app.number_input(key="override value").set_value(0.5)
    app.button(key="override-apply").click().run()
    assert dict(scenario(app).performance.overrides) == {"eta_m": 0.5}  # type: ignore[union-attr]
    assert "Replaced: `eta_m` 0.5" in texts(app)
    app.number_input(key="override value").set_value(7.0)
    app.button(key="override-apply").click().run()
    assert any("not a share of a peak" in error.value for error in app.error)
    app.button(key="override-remove").click().run()
    assert scenario(app) == MONDAY


@pytest.mark.parametrize(
    "other",
    [
        QUICK,
        MONDAY.replace({"model.name": "Llama-3.1-405B"}),
        Scenario.from_dict({"performance": {"kind": "analytic", "engine": "sglang"}}),
    ],
    ids=["profile", "doesn't fit", "another engine"],
)
def test_scenarios_of_other_kinds(other: Scenario) -> None:
    app = about(other.to_link())
    assert "#### Two real servers" in texts(app)


def test_a_damaged_link_is_said_and_the_rest_stays() -> None:
    app = visit("p=mondy", PAGE)
    assert not app.exception
    assert "mondy" in app.error[0].value
    assert "Goodput" in texts(app)
