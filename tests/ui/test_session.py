"""What an address that isn't the last one means: somebody went back, or it is that of an older request."""

from __future__ import annotations

import time
from typing import Any

from streamlit.testing.v1 import AppTest

from tests.ui.visitor import QUICK, address, visit

BOX = "fleet.replicas"


def moved() -> tuple[AppTest, dict[str, str], Any]:
    """A visitor who has changed a box, the query string before that, and what the session remembers."""
    app = visit(QUICK.to_link())
    before = {key: app.query_params[key] for key in ("s",)}
    app.number_input(key=BOX).set_value(7).run()
    assert address(app) != f"s={before['s']}"
    return app, before, app.session_state["headroom"]


def come_with(app: AppTest, link: dict[str, str]) -> float:
    """The box after a request with this query string."""
    for key, value in link.items():
        app.query_params[key] = value
    return float(app.run().number_input(key=BOX).value)


def test_a_request_under_way_before_the_new_link_arrived_changes_nothing() -> None:
    app, before, state = moved()
    state.written_at = time.monotonic() + 60.0  # a moment ago, however slow the machine is
    assert come_with(app, before) == 7


def test_what_the_page_asks_for_itself_says_nothing_new_however_late() -> None:
    app, before, state = moved()
    state.own_at, state.written_at = time.monotonic() + 60.0, state.written_at - 60.0
    assert come_with(app, before) == 7


def test_an_older_address_is_news_later() -> None:
    app, before, state = moved()
    state.written_at -= 60.0
    assert come_with(app, before) == QUICK.fleet.replicas
