"""The start page in a browser: first answer, sliders, links, history, uploads, a narrow screen."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.scenario import Scenario, token
from engine.scenario.presets import preset
from engine.scenario.schema.document import SCHEMA
from tests.e2e.conftest import choose, enter, scrolls_one_way, serving, settled, visitor
from tests.e2e.measure_slider import CHART, SLIDER

pytestmark = pytest.mark.e2e

MONDAY = preset("monday").scenario
SHARED = MONDAY.replace({"traffic.rate_rps": 1.3, "fleet.replicas": 3, "admission.max_outstanding": 30})
LINK = SHARED.to_link("monday")
RATE = "Requests per second"


def drawn(page: Page) -> list[list[float]]:
    """The lines of the latency chart as the browser has them."""
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 3", arg=CHART)
    found: list[list[float]] = page.evaluate(
        "(chart) => document.querySelector(chart)._fullData.map(line => Array.from(line.y ?? []))", CHART
    )
    return found


def box(page: Page, label: str) -> str:
    return page.get_by_role("spinbutton", name=label).input_value()


def tiles(page: Page) -> list[str]:
    page.wait_for_selector("[data-testid=stMetricValue]")  # the browser fetches how to draw them when it first has some
    return page.locator("[data-testid=stMetricValue]").all_inner_texts()


def test_the_first_screen_has_its_answer(server: str, page: Page) -> None:
    page.goto(server)
    headline = settled(page)
    assert headline.startswith("In the busiest minutes, 1 in ")
    assert len(tiles(page)) == 3
    assert len(drawn(page)) > 3
    assert page.url.rstrip("/") == server
    expect(page.locator("[data-testid=stMetric]").first).to_contain_text("TTFT p95")


def test_a_slider_s_move_changes_the_chart_the_box_and_the_address(server: str, page: Page) -> None:
    page.goto(server)
    headline = settled(page)
    before = drawn(page)
    slider = page.get_by_role("slider", name=SLIDER)
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_url("**/?p=monday&s=*")
    assert settled(page, headline)
    assert drawn(page) != before
    assert float(box(page, RATE)) > MONDAY.traffic.rate_rps


def test_a_box_takes_any_number(server: str, page: Page) -> None:
    page.goto(server)
    settled(page)
    field = page.get_by_role("spinbutton", name=RATE)
    field.fill("0.77")
    field.press("Enter")
    page.wait_for_url("**s=*")
    settled(page)
    assert box(page, RATE) == "0.77"
    assert Scenario.from_link(page.url) == MONDAY.replace({"traffic.rate_rps": 0.77})


@pytest.mark.parametrize("path", ["/", "/start"])
def test_a_cold_deep_link_on_a_fresh_server(browser: Browser, path: str) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}{path}?{LINK}")
        settled(page)
        assert box(page, RATE) == "1.3"
        assert box(page, "Replicas") == "3"
        assert tiles(page)


def test_a_copied_link_opens_the_same_in_another_browser(server: str, page: Page, browser: Browser) -> None:
    page.goto(server)
    headline = settled(page)
    field = page.get_by_role("spinbutton", name="Replicas")
    field.fill("3")
    field.press("Enter")
    headline = settled(page, headline)
    copied = page.locator("[data-testid=stCode] code").inner_text()
    assert copied.startswith(server)

    with visitor(browser) as second:
        second.goto(copied)
        assert settled(second) == headline
        assert tiles(second) == tiles(page)
        assert box(second, "Replicas") == "3"
        assert drawn(second) == drawn(page)


def test_back_is_undo_and_forward_is_redo(server: str, page: Page) -> None:
    page.goto(f"{server}/?{LINK}")
    settled(page)
    for replicas in ("4", "5"):
        enter(page, "Replicas", replicas)
        settled(page)
    last = page.url

    def shows(replicas: str) -> None:
        expect(page.get_by_role("spinbutton", name="Replicas")).to_have_value(replicas)
        settled(page)

    page.go_back()
    shows("4")
    page.go_back()
    shows("3")
    assert box(page, RATE) == "1.3"
    page.go_forward()
    shows("4")
    page.go_forward()
    shows("5")
    assert page.url == last


def test_a_preset_and_the_way_back(server: str, page: Page) -> None:
    page.goto(server)
    headline = settled(page)
    choose(page, "Start from", preset("average-lies").title)
    page.wait_for_url("**/?p=average-lies")
    settled(page, headline)
    page.go_back()
    expect(page.locator("h1")).to_have_text(headline)
    settled(page)
    assert page.url.rstrip("/") == server


def _newer() -> str:
    """A link with the schema number after this version's, its checks in order."""
    packed = base64.urlsafe_b64decode(SHARED.to_link()[2:] + "==")
    head = (SCHEMA + 1).to_bytes(1) + packed[1:3]
    head += (zlib.crc32(head) & 0xFF).to_bytes(1)
    body = packed[8:]
    whole = head + zlib.crc32(head + body).to_bytes(4) + body
    return base64.urlsafe_b64encode(whole).decode().rstrip("=")


def _spoiled() -> dict[str, tuple[str, str]]:
    """Links that can't be opened as they are, and what must be said about each."""
    whole = SHARED.to_link()[2:]
    middle = len(whole) // 2
    swapped = f"{whole[:middle]}{'A' if whole[middle] != 'A' else 'B'}{whole[middle + 1 :]}"
    return {
        "damaged": (swapped, "damaged"),
        "truncated": (whole[:-8], "cut short"),
        "oversized": ("A" * 6_500, "too long"),
        "newer": (_newer(), "newer version"),
        "out of range": (token.encode({"fleet": {"replicas": 0}}), "is below 1"),
        "unknown key": (token.encode({"fleet": {"replica": 2}}), "unknown key"),
    }


@pytest.mark.parametrize("kind", ["damaged", "truncated", "oversized", "newer", "out of range", "unknown key"])
def test_a_spoiled_link_says_why_and_offers_the_nearest(server: str, page: Page, kind: str) -> None:
    spoiled, message = _spoiled()[kind]
    page.goto(f"{server}/?s={spoiled}")
    assert settled(page) == "This link can't be opened as it is."
    alert = page.locator("[data-testid=stAlert]")
    expect(alert).to_have_count(1)
    expect(alert).to_contain_text(message)
    page.get_by_role("button", name="Open the nearest valid scenario").click()
    settled(page, "This link can't be opened as it is.")
    assert len(tiles(page)) == 3


def _upload(page: Page, file: Path | dict[str, Any]) -> None:
    page.get_by_text("Replay a trace of your own").click()
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(file)  # type: ignore[arg-type]


@pytest.mark.data
@pytest.mark.parametrize(("which", "rows"), [("conv", "19,366"), ("code", "8,819")])
def test_an_azure_trace_is_replayed(server: str, page: Page, data_dir: Path, which: str, rows: str) -> None:
    page.goto(server)
    headline = settled(page)
    _upload(page, data_dir / "traces" / f"AzureLLMInferenceTrace_{which}.csv")
    expect(page.locator("[data-testid=stSidebar]")).to_contain_text(f"{rows}\u00a0requests")
    settled(page, headline)
    assert Scenario.from_link(page.url).traffic.process == "trace"
    assert len(tiles(page)) == 3

    opened = page.context.new_page()  # the link works as long as the server has the trace
    opened.goto(page.url)
    assert settled(opened) == settled(page)
    page.get_by_role("button", name="Stop replaying").click()
    expect(page.get_by_role("spinbutton", name=RATE)).to_be_visible()
    settled(page)


def test_a_damaged_upload_names_the_line_and_changes_nothing(server: str, page: Page) -> None:
    page.goto(f"{server}/?{LINK}")
    headline = settled(page)
    data = b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.95,x,109\n"
    _upload(page, {"name": "bad.csv", "mimeType": "text/csv", "buffer": data})
    alert = page.locator("[data-testid=stSidebar] [data-testid=stAlert]")
    expect(alert).to_have_count(1)
    expect(alert).to_contain_text("line 3")
    expect(alert).to_contain_text("ContextTokens")
    assert settled(page) == headline
    assert Scenario.from_link(page.url) == SHARED


def test_a_model_that_doesn_t_fit_leaves_the_controls_usable(server: str, page: Page) -> None:
    page.goto(f"{server}/?{MONDAY.replace({'model.name': 'Llama-3.1-405B'}).to_link()}")
    assert settled(page) == "This can't run as it is."
    expect(page.locator("[data-testid=stAlert]")).to_contain_text("GB for its weights")
    choose(page, "Model", "Llama-3.1-8B")
    settled(page, "This can't run as it is.")
    assert len(tiles(page)) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_has_no_sideways_scroll(server: str, browser: Browser, scheme: Any) -> None:
    with visitor(browser, 420, color_scheme=scheme) as page:
        page.goto(f"{server}/?{LINK}")
        settled(page)
        drawn(page)
        assert scrolls_one_way(page)
        expect(page.get_by_role("slider", name=SLIDER)).not_to_be_in_viewport()
