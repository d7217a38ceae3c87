"""The scaling page in a browser: a cold deep link, its controls, other pages and back, a narrow screen."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.scenario import Scenario
from tests.e2e.conftest import enter, scrolls_one_way, serving, settled, visitor
from tests.outcome.scaled import SCENARIO

pytestmark = pytest.mark.e2e

SMALL = SCENARIO.replace(
    {"run.horizon_s": 300, "fleet.routing.policy": "round_robin", "autoscaler.interval_s": 60, "slo.0.threshold_s": 3.0}
)
LINK = f"scaling?{SMALL.to_link()}"
COURSE = ".st-key-part-course .js-plotly-plot"
WATERFALL = ".st-key-part-waterfall .js-plotly-plot"


def drawn(page: Page, chart: str) -> list[Any]:
    """A chart's lines or bars as the browser has them."""
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 2", arg=chart)
    found: list[Any] = page.evaluate(
        "(chart) => document.querySelector(chart)._fullData.map(d => [d.name, Array.from(d.y ?? []), "
        "Array.from(d.x ?? [])])",
        chart,
    )
    return found


def test_a_cold_deep_link_to_the_preset_says_nine_minutes(browser: Browser) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/scaling?p=nine-minutes")
        said = settled(page).replace("\u00a0", " ")
        assert said.startswith("Help arrives 9 min ")
        assert said.endswith("s to decide and 9 min to start.")
        bars = {name: x[0] for name, _, x in drawn(page, WATERFALL)}
        start = ("getting a machine", "pulling the image", "loading weights", "warming up")
        assert sum(bars[name] for name in start) == pytest.approx(9.0, abs=1e-3)
        assert bars["<b>lag</b>"] == pytest.approx(9.0 + bars["noticing and deciding"], abs=1e-3)
        tile = page.locator("[data-testid=stMetric]").first
        expect(tile).to_contain_text("9\u00a0min to start")


def test_a_control_changes_the_chart_the_verdict_and_the_address(server: str, page: Page) -> None:
    page.goto(f"{server}/{LINK}")
    before = settled(page)
    chart = drawn(page, COURSE)
    enter(page, "Machine (s)", "70")
    assert settled(page, before) != before
    assert drawn(page, COURSE) != chart
    assert Scenario.from_link(page.url) == SMALL.replace({"autoscaler.startup.provision_s": 70.0})


def test_the_scenario_survives_other_pages_and_back(server: str, page: Page) -> None:
    page.goto(f"{server}/{LINK}")
    before = settled(page)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Will it hold?").click()
    there = settled(page, before)
    assert there != before
    expect(page.locator("[data-testid=stMetric]").last).to_contain_text("Help arrives after (lag)")
    assert Scenario.from_link(page.url) == SMALL
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="When help arrives").click()
    assert settled(page, there) == before
    assert Scenario.from_link(page.url) == SMALL


def test_spare_replicas_are_found_and_kept_by_a_button(server: str, page: Page) -> None:
    page.goto(f"{server}/{LINK}")
    before = settled(page)
    page.get_by_role("button", name="spare replica").click()
    settled(page, before)
    found = Scenario.from_link(page.url)
    assert found.fleet.replicas == found.autoscaler.min_replicas > 1


def test_a_narrow_screen_has_no_sideways_scrolling(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/{LINK}")
    settled(telephone)
    drawn(telephone, COURSE)
    assert scrolls_one_way(telephone)
