"""How long it takes from a slider's move to the changed chart, in a browser: prints the median, seconds.

python tests/e2e/measure_slider.py http://localhost:8501 [moves]
"""

from __future__ import annotations

import json
import statistics
import sys

from playwright.sync_api import Page, sync_playwright

ARGUMENTS = [
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
CHART = ".st-key-part-latency .js-plotly-plot"
SLIDER = "Requests per second"

_WATCH = """
(selector) => ({ promise: new Promise(done => {
  const data = () => document.querySelector(selector)?._fullData;
  const shown = () => JSON.stringify(data()?.map(line => Array.from(line.y ?? [])) ?? null);
  const before = shown(), start = performance.now();
  const look = () => {
    const now = shown();
    if (now !== 'null' && now !== before) done((performance.now() - start) / 1000);
    else requestAnimationFrame(look);
  };
  look();
}) })
"""


def moves(page: Page, many: int) -> list[float]:
    """Seconds from each key press on the slider to the first frame with other data in the chart of latencies."""
    slider = page.get_by_role("slider", name=SLIDER)
    found = []
    for _ in range(many):
        page.wait_for_selector(IDLE, timeout=60_000)
        page.wait_for_timeout(300)
        slider.focus()
        watching = page.evaluate_handle(_WATCH, CHART)
        page.keyboard.press("ArrowRight")
        found.append(page.evaluate("(watch) => watch.promise", watching))
    return found


def measure(url: str, many: int = 10) -> list[float]:
    """Open the first screen, make one move to warm up, then measure."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        page.wait_for_selector(CHART, timeout=60_000)
        moves(page, 1)
        found = moves(page, many)
        browser.close()
    return found


if __name__ == "__main__":
    seconds = measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
    print(json.dumps({"median_s": round(statistics.median(seconds), 3), "moves_s": [round(s, 3) for s in seconds]}))
