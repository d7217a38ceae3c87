"""Trying changes in a browser: pin, undo and redo, the gallery, suggestions, engine settings."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.e2e.conftest import scrolls_one_way, settled, visitor
from tests.e2e.measure_slider import CHART

pytestmark = pytest.mark.e2e

# Two runs of five minutes: quick, and with a promise that is broken.
BUSY = preset("average-lies").scenario.replace({"run.seeds": 8, "run.horizon_s": 300.0})


def names(page: Page) -> list[str]:
    """The lines of the latency chart that have a name."""
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 3", arg=CHART)
    found: list[str] = page.evaluate(
        "(chart) => document.querySelector(chart)._fullData.map(line => line.name).filter(n => !n.startsWith('trace'))",
        CHART,
    )
    return found


def deltas(page: Page) -> list[str]:
    page.wait_for_selector("[data-testid=stMetricDelta]")
    return page.locator("[data-testid=stMetricDelta]").all_inner_texts()


def set_replicas(page: Page, many: str) -> None:
    old = page.url
    field = page.get_by_role("spinbutton", name="Replicas")
    field.fill(many)
    field.press("Enter")
    page.wait_for_function("(old) => location.href !== old", arg=old)
    settled(page)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_timeout(300)
    settled(page)


def test_a_pinned_scenario_is_drawn_over(server: str, page: Page) -> None:
    page.goto(f"{server}/?{BUSY.to_link()}")
    settled(page)
    assert "A p95" not in names(page)
    press(page, "Pin as A")
    expect(page.get_by_text("This is A.")).to_be_visible()
    link = page.url
    set_replicas(page, "6")
    assert "A p95" in names(page)
    assert any("against A (" in text for text in deltas(page))
    expect(page.get_by_text("replicas 6 instead of 4")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("This is A.")).to_be_visible()
    settled(page)
    assert page.url == link, "A isn't part of the link"
    page.go_forward()
    expect(page.get_by_role("spinbutton", name="Replicas")).to_have_value("6")
    settled(page)
    press(page, "Unpin A")
    assert "A p95" not in names(page)
    assert not any("against A" in text for text in deltas(page))


def test_undo_and_redo_beside_the_browser_s_history(server: str, page: Page) -> None:
    page.goto(f"{server}/?{BUSY.to_link()}")
    settled(page)
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()
    for many in ("5", "6"):
        set_replicas(page, many)

    def shows(many: str) -> None:
        expect(page.get_by_role("spinbutton", name="Replicas")).to_have_value(many)
        settled(page)

    press(page, "Undo")
    shows("5")
    press(page, "Undo")
    shows("4")
    press(page, "Redo")
    shows("5")
    page.go_back()  # takes the redo back: to the browser it was one more step
    shows("4")
    press(page, "Undo")
    shows("5")
    assert Scenario.from_link(page.url) == BUSY.replace({"fleet.replicas": 5})


def test_a_story_from_the_gallery_opens_at_its_top(server: str, page: Page) -> None:
    page.goto(server)
    headline = settled(page)
    card = page.locator(".st-key-card-long-prompt")
    card.scroll_into_view_if_needed()
    card.get_by_role("button", name="Open this story").click()
    page.wait_for_url("**/?p=long-prompt")
    settled(page, headline)
    expect(page.locator("h1")).to_be_in_viewport()
    expect(page.locator("[data-testid=stMetricLabel]").first).to_contain_text("ITL p95")
    expect(page.locator(".st-key-part-latency")).to_contain_text("gap between words (ITL)")
    title = page.evaluate("(chart) => document.querySelector(chart).layout.yaxis.title.text", CHART)
    assert "ITL" in title


def test_a_suggestion_is_made_with_one_click_and_taken_back(server: str, page: Page) -> None:
    page.goto(f"{server}/?{BUSY.to_link()}")
    settled(page)
    first = page.locator(".st-key-try-0 button")
    expect(first).to_be_visible()
    said = page.locator(".st-key-try-this [data-testid=stCaptionContainer]").first.inner_text()
    found = re.search(r"Kept for ([\d.]+)\s%", said)
    assert found is not None, said
    old = page.url
    first.click()
    page.wait_for_function("(old) => location.href !== old", arg=old)
    settled(page)
    page.wait_for_selector("[data-testid=stMetricValue]")
    shown = page.locator("[data-testid=stMetricValue]").all_inner_texts()[1]
    assert abs(float(shown.split("\u00a0")[0]) - float(found[1])) < 3, "about what was predicted"
    press(page, "Undo")
    assert Scenario.from_link(page.url) == BUSY


def test_an_engine_setting_is_part_of_the_scenario(server: str, page: Page) -> None:
    page.goto(f"{server}/?{BUSY.to_link()}")
    settled(page)
    page.get_by_text("Engine settings").click()
    field = page.get_by_role("spinbutton", name="--max-num-queued-reqs")
    expect(field).to_have_value("")
    field.fill("12")
    field.press("Enter")
    page.wait_for_function("(old) => location.href !== old", arg=page.url)
    settled(page)
    assert Scenario.from_link(page.url) == BUSY.replace({"admission.max_outstanding": 12})
    expect(field).to_be_visible()  # the expander stays open


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_with_a_pinned_has_no_sideways_scroll(server: str, browser: Browser, scheme: Any) -> None:
    with visitor(browser, 1440, color_scheme=scheme) as page:
        page.goto(f"{server}/?{BUSY.to_link()}")
        settled(page)
        press(page, "Pin as A")
        set_replicas(page, "6")
        page.set_viewport_size({"width": 420, "height": 900})
        page.wait_for_timeout(500)
        assert scrolls_one_way(page)
