"""The promise page in a browser: a cold deep link, a control that moves the number, a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.scenario import Scenario
from tests.e2e.conftest import enter, scrolls_one_way, serving, settled, visitor
from tests.outcome.promises.build import BUSY

pytestmark = pytest.mark.e2e

SMALL = BUSY.replace({"traffic.client.max_retries": 0, "run.seeds": 2, "slo.0.threshold_s": 1.0})
LINK = f"promise?{SMALL.to_link()}"
CHOICES = ".st-key-part-choices .js-plotly-plot"


def shares(page: Page) -> list[float]:
    """The numbers of the choices' dots as the browser has them, %."""
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 0", arg=CHOICES)
    found: list[float] = page.evaluate("(c) => Array.from(document.querySelector(c)._fullData[0].customdata)", CHOICES)
    return found


def test_a_cold_deep_link_to_the_preset_says_what_can_be_signed(browser: Browser) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/promise?p=promise")
        page.wait_for_function("() => document.querySelector('h1')?.innerText.includes('can be signed')")
        said = settled(page).replace("\u00a0", " ")
        assert said.endswith("2.5 s can be signed to 95 %, not to 99 %.")
        _, server, gateway, client, *_ = shares(page)
        assert server > gateway > client
        expect(page.locator("[data-testid=stMetric]").last).to_contain_text("replicas")


def test_a_control_moves_the_number_and_the_address(server: str, page: Page) -> None:
    page.goto(f"{server}/{LINK}")
    before = settled(page)
    moved = shares(page)[0]
    enter(page, "First word within (s)", "3")
    assert settled(page, before) != before
    assert shares(page)[0] > moved
    assert Scenario.from_link(page.url) == SMALL.replace({"slo.0.threshold_s": 3.0})


def test_a_narrow_screen_has_no_sideways_scrolling(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/{LINK}")
    settled(telephone)
    shares(telephone)
    assert scrolls_one_way(telephone)
