"""The present answer against A's: differences with a sign, and whether they are more than noise. No Streamlit here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.outcome.story import Story
from engine.scenario import Scenario
from ui.differences import comparison
from ui.words import METRICS, NBSP, digits, listed, percent, seconds

NOISE = "within run-to-run spread"
_MOST = 3

Interval = Sequence[float] | None


def changed(pinned: Scenario, present: Scenario) -> str:
    """What was changed from A; Markdown."""
    found = comparison(pinned, present)
    if not found:
        return "**This is A.** Change something, and the difference shows here."
    more = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
    drawn = "" if pinned.run.seed != present.run.seed else " Both with the same random numbers."
    return f"**Against A:** {listed(found[:_MOST] + more)}.{drawn}"


def tail(pinned: Story, present: Story) -> str:
    """The difference in the slow 5 %."""
    a, b = pinned.tail, present.tail
    if a.metric != b.metric:
        return f"A promises another time ({METRICS[a.metric][1]})"
    return _difference(a.p95, b.p95, a.p95_ci, b.p95_ci, _seconds_off, seconds)


def kept(pinned: Story, present: Story) -> str:
    """The difference in the share that was in time."""
    if pinned.promise is None or present.promise is None:
        return "nothing promised in A" if pinned.promise is None else ""
    a, b = pinned.promise.attainment, present.promise.attainment
    return _difference(a.attainment, b.attainment, a.ci95, b.ci95, _points_off, percent)


def turned_away(pinned: Story, present: Story) -> str:
    """The difference in the share that was refused."""
    ends = pinned.turned_away_ci, present.turned_away_ci
    return _difference(pinned.turned_away, present.turned_away, *ends, _points_off, percent)


def _difference(
    a: float | None,
    b: float | None,
    a_ends: Interval,
    b_ends: Interval,
    off: Callable[[float], str],
    words: Callable[[float], str],
) -> str:
    if a is None or b is None:
        return f"A: {words(a)}" if a is not None else "none in A"
    if a == b:
        return f"as in A ({words(a)})"
    noise = f", {NOISE}" if overlap(a_ends, b_ends) else ""
    return f"{off(b - a)} against A ({words(a)}){noise}"


def overlap(a: Interval, b: Interval) -> bool:
    """Whether two intervals have a point in common; not when one isn't known."""
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]


def _seconds_off(difference: float) -> str:
    return f"{_sign(difference)}{seconds(abs(difference))}"


def _points_off(difference: float) -> str:
    many = 2 if abs(difference) >= 0.001 else 1
    return f"{_sign(difference)}{digits(abs(difference) * 100, many)}{NBSP}points"


def _sign(difference: float) -> str:
    return "+" if difference > 0 else "−"
