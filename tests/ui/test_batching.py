"""The batching page as a visitor's session, without a browser."""

from __future__ import annotations

import time

import pytest

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.study.test_grouped import SMALL
from tests.ui.visitor import QUICK, press, said, scenario, visit
from ui import grouped, traces

PAGE = "pages/batching.py"


def test_a_deep_link_shows_the_formula_and_the_charts() -> None:
    app = visit("p=one-read", PAGE)
    assert said(app) == "64 conversations share each read of the weights; the setting caps the group at 128."
    assert [tile.label for tile in app.metric] == [
        "Shared work, a step", "÷ group, on average", "+ own work, a word", "= replica's time, a word",
    ]  # fmt: skip
    assert len(app.get("plotly_chart")) == 3
    assert any(text.startswith("**1 to 8: 7.2 times the words a second; 64 to 128: 1.3 times.**") for text in
               app.markdown.values)  # fmt: skip


def test_a_control_of_the_page_changes_the_cap_and_the_address() -> None:
    app = visit("p=one-read", PAGE)
    before = said(app)
    app.number_input(key="batching.max_num_seqs").set_value(32).run()
    assert said(app) != before
    assert said(app).endswith("the setting caps the group at 32.")
    assert scenario(app) == preset("one-read").scenario.replace({"batching.max_num_seqs": 32})


def test_a_measured_profile_has_no_memory_to_show() -> None:
    app = visit(SMALL.to_link(), PAGE)
    assert said(app).endswith("the setting caps the group at 16.")
    assert len(app.get("plotly_chart")) == 2


def test_an_empty_box_says_what_it_stands_for_in_words_that_fit() -> None:
    app = visit("p=monday", PAGE)
    held = {box.key: box.placeholder for box in app.number_input}
    assert held["batching.kv_capacity_tokens"] == "computed from …"
    assert held["batching.reserve_output_tokens"] == "the answer's …"


def test_a_button_makes_prompts_grow_and_takes_it_back() -> None:
    app = visit(SMALL.to_link(), PAGE)
    press(app, "grow")
    assert said(app)
    assert scenario(app) == SMALL.replace({"traffic.growth": {"prompt_factor": 4.0}})
    press(app, "no-growth")
    assert scenario(app) == SMALL


def test_where_nothing_can_grow_the_story_about_it_opens() -> None:
    app = visit("p=one-read", PAGE)
    press(app, "open-wordy-here")
    assert said(app).endswith("memory caps the group at 30, and at 8.5 in the end.")
    assert scenario(app) == preset("wordy").scenario


def test_nobody_comes_and_nothing_fits() -> None:
    silent = SMALL.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})
    assert said(visit(silent.to_link(), PAGE)).startswith("Nobody shares the read of the weights now;")
    tiny = SMALL.replace({"batching.max_model_len": 2})
    assert said(visit(tiny.to_link(), PAGE)).startswith("Nobody shares the reading: no request of this mix fits")


def test_an_uploaded_trace_has_its_own_lengths() -> None:
    rows = "".join(f"{t},100,50\n" for t in range(120))
    kept = traces.shared().put(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode(), "mine.csv")
    app = visit(traces.replaying(SMALL, kept.trace).to_link(), PAGE)
    assert said(app).endswith("the setting caps the group at 16.")
    assert [button.key for button in app.button if button.key in ("grow", "open-wordy-here")] == ["open-wordy-here"]


def test_a_pinned_scenario_is_shown_in_the_tiles() -> None:
    app = visit("p=one-read", PAGE)
    said(app)
    press(app, "pin")
    app.number_input(key="batching.max_num_seqs").set_value(32).run()
    assert said(app)
    assert [tile.delta for tile in app.metric][1] == "A: 64"


@pytest.mark.parametrize("link", ["s=nonsense", "p=mondy"])
def test_a_bad_link_offers_the_nearest_valid_scenario(link: str) -> None:
    app = visit(link, PAGE)
    assert said(app) == "This link can't be opened as it is."


def test_the_simulated_groups_follow() -> None:
    mine = Scenario.from_dict(SMALL.to_dict()).replace({"name": "groups", "run.horizon_s": 100})
    deadline = time.monotonic() + 120
    while not grouped.go_on(mine, None):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    app = visit(mine.to_link(), PAGE)
    assert said(app)
    assert len(app.get("plotly_chart")) == 4
    assert any("continuous batching" in text for text in app.markdown.values)


def test_a_pipeline_has_several_groups_at_a_time() -> None:
    app = visit(QUICK.replace({"parallelism.pp": 2}).to_link(), PAGE)
    said(app)
    assert any("Up to 2 are under way at a time" in text for text in app.caption.values)
    assert any("has a group in every stage" in text for text in app.markdown.values)
