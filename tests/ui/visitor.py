"""A visitor's session without a browser."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import parse_qs

from streamlit.testing.v1 import AppTest

from engine.scenario import Scenario
from engine.scenario.link import open_link

ROOT = Path(__file__).resolve().parents[2]
QUICK = Scenario.from_dict(
    {
        "traffic": {"rate_rps": 1.0},
        "performance": {"kind": "linear", "overhead_s": 0.02},
        "run": {"seeds": 2, "horizon_s": 200.0, "warmup_s": 20.0},
    }
)


def visit(link: str = "", script: str = "pages/start.py") -> AppTest:
    """A visitor who opens the app with this query string."""
    app = AppTest.from_file(str(ROOT / script), default_timeout=60)
    for key, values in parse_qs(link).items():
        app.query_params[key] = values[0]
    return app.run()


def address(app: AppTest) -> str:
    """The query string in the visitor's URL."""
    return "&".join(f"{key}={app.query_params[key]}" for key in ("p", "s") if key in app.query_params)


def scenario(app: AppTest) -> Scenario:
    """What the URL stands for."""
    return open_link(address(app)).scenario


def said(app: AppTest) -> str:
    assert not app.exception
    return str(app.title[0].value)


def go(app: AppTest, link: str) -> None:
    """Back, forward, or an edited address: the URL changes and nothing else."""
    for key in list(app.query_params):
        del app.query_params[key]
    for key, values in parse_qs(link).items():
        app.query_params[key] = values[0]
    time.sleep(0.3)  # longer than a request that is still under way can take
    app.run()


def press(app: AppTest, key: str) -> AppTest:
    """Press the button under a key."""
    return app.button(key=key).click().run()
