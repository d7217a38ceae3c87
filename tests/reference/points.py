"""The instants at which a coupled fleet's clients look around: k * sync_s, k = 1, 2, ..."""

from __future__ import annotations

from tests.reference.model import Setup

LOAD_AWARE = ("least_outstanding", "power_of_two", "least_kv")


def sync_s(setup: Setup) -> float | None:
    """Seconds between noticing points: the shortest that anything asks for; None when nothing does."""
    wanted = []
    if setup.routing in LOAD_AWARE and setup.report_interval_s > 0:
        wanted.append(setup.report_interval_s)
    if setup.max_retries > 0:
        wanted.append(min(max(setup.backoff_s / 10, 0.02), 0.25))
    if setup.throttle is not None:
        wanted.append(min(max(setup.throttle.window_s / 100, 0.05), 1.0))
    return min(wanted, default=None)


def first_after(every_s: float, at: float) -> float:
    """The first point later than `at`. Points are products, not running sums."""
    k = 1 + max(0, int(at / every_s) - 1)  # not above the one looked for, whatever the division's rounding
    while k * every_s <= at:
        k += 1
    return k * every_s


def first_from(every_s: float, at: float) -> float:
    """The first point at `at` or later."""
    k = 1 + max(0, int(at / every_s) - 2)
    while k * every_s < at:
        k += 1
    return k * every_s


def last_until(every_s: float, at: float) -> float | None:
    """The last point not later than `at`; None before the first."""
    k = 0
    while (k + 1) * every_s <= at:
        k += max(1, int(at / every_s) - k - 1)
    return k * every_s if k > 0 else None
