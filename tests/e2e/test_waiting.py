"""The waiting page in a browser: a cold deep link, its studies, other pages and back, a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.scenario import Scenario
from tests.e2e.conftest import enter, scrolls_one_way, serving, settled, visitor
from tests.ui.visitor import QUICK

pytestmark = pytest.mark.e2e

SMALL = QUICK.replace({"batching.max_num_seqs": 8, "batching.max_num_batched_tokens": 16384})
LINK = f"waiting?{SMALL.to_link()}"
CHARTS = ("where", "interference", "wait-by-load", "chunks", "cached", "fan-out")


def drawn(page: Page, chart: str) -> None:
    page.wait_for_function(
        "(chart) => document.querySelector(chart)?._fullData?.length > 0", arg=f".st-key-part-{chart} .js-plotly-plot"
    )


def test_a_cold_deep_link_to_the_preset_says_what_a_page_of_twenty_calls_takes(browser: Browser) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/waiting?p=fan-out")
        assert settled(page).replace("\u00a0", " ") == (
            "Half of the actions take longer than 7.1 s; half of their calls are answered within 2.5 s."
        )
        drawn(page, "fan-out")
        sentence = page.locator(".st-key-part-fan-out p").first
        expect(sentence).to_contain_text("a call's 95.8th percentile")
        expect(sentence).to_contain_text("exactly the 96.6th")


def test_the_studies_come_by_themselves(server: str, page: Page) -> None:
    page.goto(f"{server}/{LINK}")
    settled(page)
    for chart in CHARTS:
        drawn(page, chart)
    expect(page.get_by_role("button", name="Use 512")).to_be_visible()


def test_a_control_changes_the_address_and_the_scenario_survives_other_pages(server: str, page: Page) -> None:
    page.goto(f"{server}/{LINK}")
    before = settled(page)
    enter(page, "Calls an action", "4")
    there = settled(page, before)
    assert there.startswith("Half of the actions")
    assert Scenario.from_link(page.url) == SMALL.replace({"traffic.client.fan_out": 4})
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Will it hold?").click()
    start = settled(page, there)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Who waits").click()
    assert settled(page, start) == there


def test_a_narrow_screen_has_no_sideways_scrolling(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/{LINK}")
    settled(telephone)
    for chart in CHARTS:
        drawn(telephone, chart)
    assert scrolls_one_way(telephone)
