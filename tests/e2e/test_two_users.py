"""Two people at once: one runs something heavy, the other's click still answers, and each keeps what is theirs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.scenario import Scenario
from tests.e2e.conftest import choose, enter, serving, settled, visitor

pytestmark = pytest.mark.e2e

# Much more than the page computes in its own process, less than it refuses.
HEAVY = Scenario.from_dict({"traffic": {"rate_rps": 300.0}, "fleet": {"replicas": 60}, "run": {"seeds": 8}})
LIGHT = Scenario.from_dict(
    {
        "traffic": {"rate_rps": 1.0},
        "performance": {"kind": "linear", "overhead_s": 0.02},
        "run": {"seeds": 2, "horizon_s": 200.0, "warmup_s": 20.0},
    }
)


def replicas(page: Page) -> str:
    return page.get_by_role("spinbutton", name="Replicas").input_value()


def test_a_heavy_run_doesn_t_hold_up_somebody_else(browser: Browser) -> None:
    with serving() as address, visitor(browser) as heavy, visitor(browser) as light:
        light.goto(f"{address}/?{LIGHT.to_link()}")
        settled(light)
        heavy.goto(f"{address}/?{HEAVY.to_link()}")
        busy = heavy.locator("[data-testid=stMain] [data-testid=stAlert]")
        expect(busy).to_contain_text("run")

        for many in ("3", "4"):
            enter(light, "Replicas", many)
            settled(light)
            expect(light.locator("[data-testid=stMain]")).to_contain_text(f"{many}\u00a0replicas of")
        expect(busy).to_be_visible()  # the heavy run is still under way: nobody waited for it

        field = heavy.get_by_role("spinbutton", name="Replicas")
        field.fill("1")  # and stops when its inputs change
        field.press("Enter")
        heavy.wait_for_function("() => location.href.includes('s=')")
        expect(heavy.get_by_role("spinbutton", name="Replicas")).to_have_value("1")
        settled(light)
        assert replicas(light) == "4"
        assert Scenario.from_link(light.url) == LIGHT.replace({"fleet.replicas": 4})
        assert heavy.locator("[data-testid=stException]").count() == 0
        assert light.locator("[data-testid=stException]").count() == 0


def test_each_keeps_their_own_pin_and_history(server: str, browser: Browser) -> None:
    with visitor(browser) as one, visitor(browser) as other:
        for page in (one, other):
            page.goto(f"{server}/?{LIGHT.to_link()}")
            settled(page)
        one.get_by_role("button", name="Pin as A").click()
        expect(one.get_by_role("button", name="Unpin A")).to_be_visible()
        field = one.get_by_role("spinbutton", name="Replicas")
        field.fill("5")
        field.press("Enter")
        expect(one.get_by_role("button", name="Undo", exact=True)).to_be_enabled()
        choose(other, "Model", "Llama-3.1-8B")
        settled(other)
        settled(one)
        expect(other.get_by_role("button", name="Pin as A")).to_be_visible()
        assert (replicas(one), replicas(other)) == ("5", "2")
