"""Burn rates, and when an alert on them sounds (Beyer et al., The Site Reliability Workbook, 2018, chapter 5).

The error budget is the share of requests that may be bad, 1 - target. At a burn rate of 1 it lasts exactly the
promise's window; at b it is gone after a b-th of it. An alert looks at a long window, so that it doesn't sound for
nothing, and at a short one, so that it stops when the trouble does. All times in one unit, whichever it is.
"""

from __future__ import annotations

from dataclasses import dataclass

PERIOD_S = 30 * 86400.0
"""The window of a promise for which the usual rules are written."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert: the budget burns at more than ``burn``, over a long and over a short window, seconds."""

    burn: float
    long_s: float
    short_s: float

    def scaled(self, window_s: float) -> Rule:
        """For a promise over another window: the same shares of it."""
        factor = window_s / PERIOD_S
        return Rule(self.burn, self.long_s * factor, self.short_s * factor)


RULES = (Rule(14.4, 3600.0, 300.0), Rule(6.0, 6 * 3600.0, 1800.0), Rule(1.0, 72 * 3600.0, 6 * 3600.0))
"""For a window of 30 days: two that wake somebody, one that can wait until the morning."""


def burn_rate(bad_share: float, target: float) -> float | None:
    """How many times as fast as allowed the budget goes; ``None`` where nothing is allowed."""
    return bad_share / (1.0 - target) if target < 1 else None


def error_share(burn: float, target: float) -> float:
    """The share of bad requests above which an alert sounds; above 1 it never can."""
    return burn * (1.0 - target)


def consumed(burn: float, long_window: float, window: float) -> float:
    """Share of the whole budget that is gone after a long window at this burn rate."""
    return burn * long_window / window


def exhausted_after(burn: float, window: float) -> float:
    """When the whole budget is gone at this burn rate, in the window's unit."""
    return window / burn


def detected_after(burn: float, target: float, long_window: float, bad_share: float) -> float | None:
    """How long it takes until the long window is bad enough, if all was well before; ``None``: never at this pace."""
    needed = error_share(burn, target)
    return long_window * needed / bad_share if bad_share >= needed and bad_share > 0 else None
