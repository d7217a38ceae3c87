"""Two pools of replicas on the start page, without a browser."""

from __future__ import annotations

import re

import pytest

from engine.scenario import Scenario
from tests.ui.visitor import QUICK, said, scenario, visit
from ui.assumptions import assumptions
from ui.controls import POLICY, POOLS
from ui.words import NBSP

LINK = "batching.disaggregated.transfer_gbps"
APART = QUICK.replace({POLICY: "disaggregated"})


def numbers(app) -> set[str]:  # type: ignore[no-untyped-def]
    """Keys of the boxes that are drawn."""
    return {box.key for box in app.number_input}


def test_choosing_the_policy_shows_its_fields() -> None:
    app = visit(QUICK.to_link())
    assert "fleet.replicas" in numbers(app)
    assert not numbers(app) & {LINK, *POOLS}
    app.selectbox(key=POLICY).set_value("disaggregated").run()
    assert said(app)
    assert numbers(app) >= {LINK, *POOLS}
    assert "fleet.replicas" not in numbers(app)
    app.number_input(key=POOLS[1]).set_value(3).run()
    app.number_input(key=LINK).set_value(100.0).run()
    assert scenario(app) == APART.replace({POOLS[1]: 3, LINK: 100.0})
    app.selectbox(key=POLICY).set_value("chunked").run()
    assert "fleet.replicas" in numbers(app)
    assert scenario(app).replicas == QUICK.replicas


def test_pools_that_are_chosen_share_the_replicas_out() -> None:
    app = visit(QUICK.replace({"fleet.replicas": 5}).to_link())
    app.selectbox(key=POLICY).set_value("disaggregated").run()
    assert said(app)
    assert [app.number_input(key=pool).value for pool in POOLS] == [2, 3]
    assert [app.select_slider(key=f"{pool} slider").value for pool in POOLS] == [2, 3]
    assert scenario(app).replicas == 5
    app.number_input(key=POOLS[0]).set_value(4).run()
    for policy in ("chunked", "disaggregated"):
        app.selectbox(key=POLICY).set_value(policy).run()
    assert scenario(app).replicas == 4 + 3, "sizes that were given stay"


def test_a_link_opens_with_headline_tiles_and_charts() -> None:
    app = visit(APART.replace({POOLS[0]: 2}).to_link())
    assert said(app).startswith("It ")
    assert [tile.label for tile in app.metric][1:] == ["Kept the promise", "Turned away"]
    assert len(app.get("plotly_chart")) == 2
    text = " ".join([*app.markdown.values, *app.caption.values]).replace(NBSP, " ")
    assert "what 3 replicas can serve" in text
    assert re.search(r" 2 replicas can read the prompts of \d+ a second, 1 replica can write the answers to \d+", text)
    assert "3 replicas of " in text
    assert "(2 replicas for prompts, 1 replica for answers; each prompt's KV travels alone, at 400 Gbit/s" in text


@pytest.mark.parametrize(
    ("key", "value"),
    [("fleet.routing.policy", "least_outstanding"), ("autoscaler.policy", "hpa")],
)
def test_what_does_not_go_together_is_said(key: str, value: str) -> None:
    app = visit(APART.to_link())
    app.selectbox(key=key).set_value(value).run()
    assert said(app) == "These settings don't go together."
    text = " ".join([*app.markdown.values, *(e.value for e in app.error), *(e.value for e in app.warning)])
    assert "is not available yet" in text


def test_the_scaling_page_says_why_it_has_nothing_to_show() -> None:
    app = visit(APART.to_link(), "pages/scaling.py")
    assert said(app)
    assert any("Two pools of replicas can't be combined with an autoscaler yet" in m for m in app.markdown.values)


def test_only_two_pools_are_said_to_have_them() -> None:
    assert "for prompts" not in assumptions(Scenario())[1]
    assert "(1 replica for prompts" in assumptions(APART)[1].replace(NBSP, " ")
