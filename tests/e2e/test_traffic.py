"""The traffic page in a browser: a cold deep link, arriving in another way, a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from engine.scenario import Scenario
from tests.e2e.conftest import scrolls_one_way, serving, settled, visitor
from tests.study.test_sized import CALM

pytestmark = pytest.mark.e2e

CLUMPS = ".st-key-part-clumps .js-plotly-plot"


def drawn(page: Page) -> list[str]:
    """Names of the second chart's lines as the browser has them."""
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 3", arg=CLUMPS)
    names: list[str] = page.evaluate("(chart) => document.querySelector(chart)._fullData.map(d => d.name)", CLUMPS)
    return names


def test_a_cold_deep_link_shows_the_worst_minute_beside_real_services(browser: Browser) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/traffic?p=average-lies")
        assert settled(page) == "The worst minute brings 1.4 times the average one."
        assert drawn(page) == ["independent", "Azure code", "Azure chat", "Kimi chat", "here"]


def test_the_same_rate_in_another_way_changes_the_headline_and_the_address(server: str, page: Page) -> None:
    page.goto(f"{server}/traffic?{CALM.to_link()}")
    before = settled(page)
    page.get_by_role("button", name="Calm and bursts by turns").click()
    assert settled(page, before).startswith("The worst minute brings ")
    assert Scenario.from_link(page.url) == CALM.replace({"traffic.process": "mmpp"})


def test_a_narrow_screen_has_no_sideways_scrolling(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/traffic?{CALM.to_link()}")
    settled(telephone)
    drawn(telephone)
    assert scrolls_one_way(telephone)
