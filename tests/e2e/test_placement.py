"""The placement page in a browser: a cold deep link, a control, other pages and back, a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import scrolls_one_way, serving, settled, visitor
from tests.study.test_layouts import SMALL

pytestmark = pytest.mark.e2e

LINK = "placement?p=packing"
CHIPS = ".st-key-part-chips .js-plotly-plot"


def drawn(page: Page) -> None:
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 3", arg=CHIPS)


def test_a_cold_deep_link_says_what_fits_and_what_is_short(browser: Browser) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/{LINK}")
        assert settled(page).replace("\u00a0", " ") == "All 7 replicas fit on 7 chips for $6.5 an hour."
        drawn(page)
        for short in ("RTX 4090 24GB gives 23.7\u00a0GB: short by 49.9\u00a0GB", "short by 34.3", "short by 26.4"):
            expect(page.get_by_text(short).last).to_be_visible()


def test_more_headroom_needs_more_chips_and_other_pages_do_not_lose_it(server: str, page: Page) -> None:
    page.goto(f"{server}/{LINK}")
    before = settled(page)
    box = page.get_by_role("spinbutton", name="Keep free (%)")
    box.fill("10")
    box.press("Enter")
    after = settled(page, before)
    assert after.endswith("fits none of these chips.")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="How this works").click()
    there = settled(page, after)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="What fits where").click()
    assert settled(page, there) == after


def test_a_narrow_screen_has_no_sideways_scrolling(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/{LINK}")
    settled(telephone)
    drawn(telephone)
    assert scrolls_one_way(telephone)


def test_split_or_copy_is_answered_from_a_link(server: str, page: Page) -> None:
    page.goto(f"{server}/placement?{SMALL.to_link()}")
    before = settled(page)
    page.get_by_text("One model: split or copy").click()
    page.wait_for_function("() => document.querySelector('h1')?.innerText.startsWith('Use ')")
    assert settled(page) != before
    expect(page.locator(".st-key-part-layouts .js-plotly-plot")).to_be_visible()
