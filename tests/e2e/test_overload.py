"""The overload page in a browser: cold deep link, its controls, the scenario from page to page, a narrow screen."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.scenario import Scenario
from engine.scenario.presets import preset
from tests.e2e.conftest import enter, scrolls_one_way, serving, settled, visitor

pytestmark = pytest.mark.e2e

LOAD = ".st-key-part-load .js-plotly-plot"
CAP = "Requests a replica"
SAY_NO = preset("say-no").scenario
# Two runs of four minutes: quick.
BUSY = SAY_NO.replace({"run.seeds": 2, "run.horizon_s": 240.0})


def line(page: Page, name: str) -> list[float]:
    """A line of the load chart as the browser has it."""
    page.wait_for_function("(chart) => document.querySelector(chart)?._fullData?.length > 3", arg=LOAD)
    found: list[float] = page.evaluate(
        "([chart, name]) => Array.from(document.querySelector(chart)._fullData.find(line => line.name === name).y)",
        [LOAD, name],
    )
    return found


def to_page(page: Page, title: str) -> None:
    old = page.url
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name=title).click()
    page.wait_for_function("(old) => location.pathname !== new URL(old).pathname && location.search", arg=old)
    settled(page)


@pytest.mark.parametrize(
    ("name", "headline"),
    [("say-no", "Nobody is refused, and 9 in 10"), ("retry-storm", "The rush is over, the outage")],
)
def test_a_preset_opens_by_a_cold_deep_link_on_a_fresh_server(browser: Browser, name: str, headline: str) -> None:
    with serving() as address, visitor(browser) as page:
        page.goto(f"{address}/overload?p={name}")
        page.wait_for_selector("h1")
        assert settled(page).startswith(headline)
        assert len(line(page, "in time")) > 10
        assert page.url.endswith(f"/overload?p={name}")


def test_a_control_changes_the_chart_and_the_address(server: str, page: Page) -> None:
    page.goto(f"{server}/overload?{BUSY.to_link()}")
    headline = settled(page)
    before = line(page, "in time")
    enter(page, CAP, "22")
    assert settled(page, headline).startswith("Refusing 1 in 4 keeps")
    assert sum(line(page, "in time")) > 1.5 * sum(before)
    assert Scenario.from_link(page.url) == BUSY.replace({"admission.max_outstanding": 22})
    expect(page.locator(".st-key-part-refusals")).to_contain_text("queue full")


def test_the_scenario_goes_from_page_to_page(server: str, page: Page) -> None:
    page.goto(f"{server}/overload?{BUSY.to_link()}")
    settled(page)
    page.get_by_role("button", name="Pin as A", exact=True).click()
    expect(page.get_by_text("This is A.")).to_be_visible()
    settled(page)
    enter(page, CAP, "22")
    settled(page)
    enter(page, "Replicas", "3")
    settled(page)
    changed = BUSY.replace({"admission.max_outstanding": 22, "fleet.replicas": 3})
    to_page(page, "Will it hold?")
    assert Scenario.from_link(page.url) == changed
    expect(page.locator("[data-testid=stMetricLabel]").first).to_contain_text("TTFT p95")
    expect(page.get_by_role("button", name="Unpin A")).to_be_visible()
    enter(page, "Replicas", "5")
    settled(page)
    to_page(page, "When to say no")
    assert Scenario.from_link(page.url) == changed.replace({"fleet.replicas": 5})
    expect(page.get_by_role("spinbutton", name=CAP)).to_have_value("22")
    expect(page.get_by_role("button", name="Unpin A")).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("spinbutton", name="Replicas")).to_have_value("3")
    settled(page)
    assert Scenario.from_link(page.url) == changed
    page.go_back()
    expect(page.get_by_role("spinbutton", name="Replicas")).to_have_value("5")
    settled(page)


def test_back_from_another_page_keeps_the_scenario(server: str, page: Page) -> None:
    page.goto(f"{server}/overload?{BUSY.to_link()}")
    settled(page)
    to_page(page, "Will it hold?")
    assert Scenario.from_link(page.url) == BUSY
    enter(page, "Replicas", "5")
    settled(page)
    for _ in range(3):  # with a link, perhaps without, as the list of pages leads to it, and the other page
        page.go_back()
        expect(page.get_by_role("spinbutton", name="Replicas")).to_have_value("4")
        settled(page)
        if "/overload" in page.url:
            break
    assert "/overload" in page.url
    assert Scenario.from_link(page.url) == BUSY


def test_a_way_of_saying_no_is_used_with_one_click_and_taken_back(server: str, page: Page) -> None:
    page.goto(f"{server}/overload?{BUSY.to_link()}")
    headline = settled(page)
    button = page.locator(".st-key-use-shed button")
    expect(button).to_be_visible()
    old = page.url
    button.click()
    page.wait_for_function("(old) => location.href !== old", arg=old)
    assert settled(page, headline).startswith("Refusing 1 in ")
    assert Scenario.from_link(page.url) == BUSY.replace({"admission.shed": {"ttft_s": 1.0}})
    expect(page.get_by_role("spinbutton", name="Predicted wait")).to_have_value("1")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator("h1")).to_have_text(headline)
    settled(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_has_no_sideways_scroll(server: str, browser: Browser, scheme: Any) -> None:
    with visitor(browser, 420, color_scheme=scheme) as page:
        page.goto(f"{server}/overload?{BUSY.to_link()}")
        settled(page)
        expect(page.locator(".st-key-use-ways")).to_be_visible()
        assert scrolls_one_way(page)
