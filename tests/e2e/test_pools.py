"""Two pools of replicas in a browser: a deep link, their sizes, and a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from engine.scenario import Scenario
from tests.e2e.conftest import enter, scrolls_one_way, settled
from tests.ui.visitor import QUICK

pytestmark = pytest.mark.e2e

APART = QUICK.replace({"batching.policy": "disaggregated", "run.horizon_s": 60.0})


def test_a_deep_link_and_another_writer(server: str, page: Page) -> None:
    page.goto(f"{server}/?{APART.to_link()}")
    settled(page)
    expect(page.get_by_text("1 replica can read the prompts of")).to_be_visible()
    enter(page, "Replicas that write answers", "5")
    settled(page)
    expect(page.get_by_text("what 6 replicas can serve")).to_be_visible()
    assert Scenario.from_link(page.url) == APART.replace({"batching.disaggregated.decode_replicas": 5})


def test_a_telephone_scrolls_one_way_only(server: str, telephone: Page) -> None:
    telephone.goto(f"{server}/?{APART.to_link()}")
    assert settled(telephone)
    assert scrolls_one_way(telephone)
