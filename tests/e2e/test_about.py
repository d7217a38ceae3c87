"""The About page in a browser: a cold open, filters, a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import choose, scrolls_one_way, serving, settled, visitor

pytestmark = pytest.mark.e2e

DRAWN = "document.querySelector('.st-key-chart-published .js-plotly-plot')?._fullData"


def points(page: Page) -> int:
    """How many dots the scatter has."""
    page.wait_for_function(f"{DRAWN}?.length > 3")
    found: int = page.evaluate(f"{DRAWN}.filter(one => one.mode === 'markers').reduce((n, one) => n + one.x.length, 0)")
    return found


def test_a_cold_open_on_a_fresh_server(browser: Browser) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/about")
        assert settled(page) == "How this works"
        assert points(page) > 10


def test_a_filter_changes_the_scatter(server: str, page: Page) -> None:
    page.goto(f"{server}/about")
    settled(page)
    before = points(page)
    choose(page, "Accelerators", "all")
    page.wait_for_function(
        f"(before) => {DRAWN}?.filter(one => one.mode === 'markers').reduce((n, one) => n + one.x.length, 0) > before",
        arg=before,
    )
    settled(page)
    assert points(page) > before


def test_on_a_narrow_screen_nothing_is_wider_than_it(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/about")
    settled(telephone)
    expect(telephone.locator(".st-key-chart-published .js-plotly-plot")).to_be_visible()
    assert scrolls_one_way(telephone)
