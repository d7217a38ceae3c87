"""A server as `make run` starts it, and a browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, TimeoutError, expect, sync_playwright

from tests.e2e.measure_slider import ARGUMENTS, IDLE

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_MS = 90_000
expect.set_options(timeout=PATIENCE_MS)  # a busy machine is slow, not wrong


@contextmanager
def serving() -> Iterator[str]:
    """The address of a freshly started server, given as soon as it accepts connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "deploy.asgi:app", "--port", str(port), "--log-level", "warning"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, **quiet)
    address = f"http://localhost:{port}"
    try:
        _wait_for(f"{address}/_stcore/health", process)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the server doesn't answer at {url}")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """One server for tests that don't need a fresh one."""
    with serving() as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    path = shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield found
        found.close()


@contextmanager
def visitor(browser: Browser, width: int = 1440, **options: Any) -> Iterator[Page]:
    """Somebody with nothing remembered, whose screen is so wide."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A visitor with a wide screen."""
    with visitor(browser) as found:
        yield found


@pytest.fixture
def telephone(browser: Browser) -> Iterator[Page]:
    """A visitor whose screen is narrow."""
    with visitor(browser, 420) as found:
        yield found


def scrolls_one_way(page: Page) -> bool:
    """Whether nothing is wider than the screen."""
    found: bool = page.evaluate(
        """() => {
            const main = document.querySelector('[data-testid=stMain]')
            const wide = Math.max(document.documentElement.scrollWidth, main.scrollWidth)
            return wide <= window.innerWidth && main.scrollWidth <= main.clientWidth
        }"""
    )
    return found


def enter(page: Page, box: str, value: str) -> None:
    """Type a value into a number box until the address says that it has arrived.

    Entered again when it hasn't within 15 s: on a busy machine a key press may meet a page that is being drawn anew.
    """
    old = page.url
    for _ in range(5):
        field = page.get_by_role("spinbutton", name=box)
        field.fill(value)
        field.press("Enter")
        try:
            page.wait_for_function("(old) => location.href !== old", arg=old, timeout=15_000)
        except TimeoutError:
            continue
        # A box that has the focus shows what was typed, whatever the page says; it may just be drawn anew.
        page.evaluate("document.activeElement.blur()")
        return
    raise AssertionError(f"{box}: {value} never arrived")


def choose(page: Page, box: str, option: str) -> None:
    """Choose an option of a list by typing its name: the list draws only as many as there is room for below the box.

    It may miss a click that a hand could not make, without any length.
    """
    field = page.get_by_role("combobox", name=box)
    field.click(delay=80)
    field.press_sequentially(option)
    page.get_by_role("option", name=option, exact=True).click()


def settled(page: Page, headline: str | None = None) -> str:
    """Wait until the page has its final answer; the headline. With `headline`, until it is another one."""
    page.wait_for_selector("h1")
    if headline is not None:
        page.wait_for_function(
            "(old) => { const now = document.querySelector('h1')?.innerText; return now && now !== old }", arg=headline
        )
    page.wait_for_selector(IDLE)
    page.wait_for_timeout(200)
    page.wait_for_selector(IDLE)
    assert page.locator("[data-testid=stException]").count() == 0
    return page.locator("h1").inner_text()
