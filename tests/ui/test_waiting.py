"""The waiting page as a visitor's session, without a browser."""

from __future__ import annotations

import time

import pytest

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.ui.visitor import QUICK, said, scenario, visit
from ui import traces, waiting_studies

PAGE = "pages/waiting.py"
WAIT = QUICK.replace({"batching.max_num_seqs": 8, "batching.max_num_batched_tokens": 16384})


def worked_out(mine: Scenario) -> None:
    """Wait until everything that the page asks for is known."""
    deadline = time.monotonic() + 120
    every = [piece for section in waiting_studies.pieces(mine).values() for piece in section]
    while any(waiting_studies.known(mine, piece) is None for piece in every) and time.monotonic() < deadline:
        waiting_studies.go_on(mine, 1.0, None)
        time.sleep(0.05)


def test_a_link_shows_the_times_and_a_long_prompt_at_once() -> None:
    app = visit(WAIT.replace({"name": "first"}).to_link(), PAGE)
    assert said(app).startswith("Half of the answers are complete after ")
    assert len(app.get("plotly_chart")) == 1
    assert any("makes everybody pause for up to" in text for text in app.markdown.values)


def test_the_studies_fill_the_page_and_a_size_can_be_used() -> None:
    mine = WAIT.replace({"name": "studies"})
    worked_out(mine)
    app = visit(mine.to_link(), PAGE)
    said(app)
    assert len(app.get("plotly_chart")) == 7
    shown = " ".join(app.markdown.values)
    for words in (
        "go into writing",
        "of what can be served a request waits",
        "longest pause of an answer",
        "The first word comes soonest",
        "half of every",
    ):
        assert words in shown
    app.segmented_control(key="where-by").set_value("ttft").run()
    said(app)
    assert any("to the first word of the slowest in 100" in text for text in app.markdown.values)
    app.button(key="use-chunk-512").click().run()
    said(app)
    assert scenario(app) == mine.replace({"batching.max_num_batched_tokens": 512})


def test_calls_of_an_action_are_a_control_of_the_page() -> None:
    app = visit(WAIT.replace({"name": "calls"}).to_link(), PAGE)
    app.number_input(key="traffic.client.fan_out").set_value(5).run()
    assert said(app).startswith("Half of the actions take longer than ")
    assert scenario(app).traffic.client.fan_out == 5


def test_the_preset_tells_its_story() -> None:
    app = visit("p=fan-out", PAGE)
    assert said(app).startswith("Half of the actions take longer than ")
    assert any("19 calls in 20 are answered in time" in text for text in app.caption.values)


def test_the_long_prompt_has_a_length_of_its_own() -> None:
    app = visit(WAIT.to_link(), PAGE)
    app.number_input(key="long-prompt-tokens").set_value(5000).run()
    said(app)
    assert any("A prompt of 5,000 tokens" in text for text in app.markdown.values)
    assert scenario(app) == WAIT, "which is no setting"


def test_one_seat_has_no_room_for_a_long_prompt() -> None:
    app = visit(WAIT.replace({"batching.max_num_seqs": 1}).to_link(), PAGE)
    said(app)
    assert any("leaves no room" in error for error in (e.value for e in app.error))


def test_users_who_wait_have_single_calls() -> None:
    app = visit("p=one-read", PAGE)
    said(app)
    keys = {box.key for box in app.number_input}
    assert "traffic.client.fan_out" not in keys
    assert "batching.max_num_seqs" in keys


def test_whole_prompts_have_no_chunks_to_size() -> None:
    app = visit(WAIT.replace({"batching.policy": "prefill_first"}).to_link(), PAGE)
    said(app)
    assert any("Only chunked prefill cuts prompts" in text for text in app.markdown.values)


def test_pipelines_are_studied_but_not_taken_apart() -> None:
    mine = WAIT.replace({"name": "pipeline", "parallelism.pp": 2})
    worked_out(mine)
    app = visit(mine.to_link(), PAGE)
    said(app)
    shown = " ".join(app.markdown.values)
    for words in (
        "Pipelines (PP) aren't taken apart",
        "In a pipeline (PP) a long prompt holds up the batch",
        "of what can be served a request waits",
        "half of every",
    ):
        assert words in shown
    assert any("Without “prompts first”: " in text for text in app.caption.values)


def test_nothing_arrives() -> None:
    nobody = WAIT.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})
    app = visit(nobody.to_link(), PAGE)
    assert said(app) == "Nothing arrives, so nobody waits."


def test_a_trace_can_be_taken_apart() -> None:
    rows = "".join(f"{t},{50 + t},{5 + t % 40}\n" for t in range(120))
    kept = traces.shared().put(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode(), "mine.csv")
    app = visit(traces.replaying(WAIT, kept.trace).to_link(), PAGE)
    assert said(app)
    assert scenario(app).traffic.process == "trace"


@pytest.mark.parametrize("link", ["s=nonsense", "p=mondy"])
def test_a_bad_link_offers_the_nearest_valid_scenario(link: str) -> None:
    app = visit(link, PAGE)
    assert said(app) == "This link can't be opened as it is."
    app.button[0].click().run()
    said(app)


def test_a_model_that_does_not_fit() -> None:
    app = visit(preset("monday").scenario.replace({"model.name": "Llama-3.1-405B"}).to_link(), PAGE)
    assert said(app) == "This can't run as it is."
