"""A new user's way, without instructions: from the first screen to why the slow ones are slow, and to what helps."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import settled

pytestmark = pytest.mark.e2e

MOST_CLICKS = 5


def test_from_the_first_screen_to_why_and_to_what_helps(server: str, page: Page) -> None:
    clicks = 0

    def click(role: str, name: str) -> None:
        nonlocal clicks
        page.get_by_role(role, name=name).first.click()  # type: ignore[arg-type]
        clicks += 1

    page.goto(server)
    first = settled(page)
    assert first.startswith("In the busiest minutes, 1 in ")

    click("link", "Who waits")
    assert "1 in 100" in settled(page, first)
    page.locator(".st-key-where-by").get_by_text("first word", exact=True).click()
    clicks += 1
    why = page.locator(".st-key-part-where p").first
    expect(why).to_contain_text("to the first word of the slowest in 100")
    expect(why).to_contain_text("go into the queue")

    waits = page.locator("h1").inner_text()
    click("link", "Will it hold?")
    assert settled(page, waits) == first
    helps = page.locator(".st-key-try-0 button")
    expect(helps).to_contain_text("Add 1 replica")
    expect(page.locator(".st-key-try-this [data-testid=stCaptionContainer]").first).to_contain_text("instead of")
    helps.click()
    clicks += 1
    assert settled(page, first) != first
    assert clicks <= MOST_CLICKS
