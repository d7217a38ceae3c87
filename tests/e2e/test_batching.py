"""The batching page in a browser: a cold deep link, its stacked panels, a control, a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.e2e.conftest import enter, scrolls_one_way, serving, settled, visitor

pytestmark = pytest.mark.e2e

SHARING = ".st-key-part-sharing .js-plotly-plot"


def drawn(page: Page) -> list[str]:
    """Names of the first chart's lines as the browser has them."""
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 3", arg=SHARING)
    names: list[str] = page.evaluate("(chart) => document.querySelector(chart)._fullData.map(d => d.name)", SHARING)
    return names


def test_a_cold_deep_link_shows_who_shares_a_read(browser: Browser) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/batching?p=one-read")
        assert settled(page) == "64 conversations share each read of the weights; the setting caps the group at 128."
        assert drawn(page)[:4] == ["weights", "overhead", "compute", "KV"]
        assert "64 to 128: 1.3 times" in page.locator(".st-key-part-sharing").inner_text()


def test_a_control_changes_the_headline_and_the_address(server: str, page: Page) -> None:
    page.goto(f"{server}/batching?p=one-read")
    before = settled(page)
    enter(page, "Seats", "32")
    assert settled(page, before).endswith("the setting caps the group at 32.")
    assert Scenario.from_link(page.url) == preset("one-read").scenario.replace({"batching.max_num_seqs": 32})


def test_a_narrow_screen_has_no_sideways_scrolling(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/batching?p=wordy")
    settled(telephone)
    drawn(telephone)
    assert scrolls_one_way(telephone)
