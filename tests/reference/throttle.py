"""Client-side adaptive throttling (Beyer et al., Site Reliability Engineering, 2016, chapter 21)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.model import Row, Throttle


def refusal_probability(throttle: Throttle, attempts: Sequence[Row], point: float) -> float:
    """Probability with which an attempt is refused by its own client from `point` until the next one.

    Of `attempts`, everything that has arrived in the whole fleet, those of the window before the point count,
    throttled ones too. Accepted is what wasn't rejected before the point: what CoDel drops at that very instant is
    dropped after clients have looked.
    """
    window = [row for row in attempts if row.arrival_s is not None and point - throttle.window_s <= row.arrival_s]
    window = [row for row in window if row.arrival_s is not None and row.arrival_s < point]
    rejected = [row for row in window if row.state == "rejected" and row.left_s is not None and row.left_s < point]
    requests, accepts = len(window), len(window) - len(rejected)
    return max(0.0, (requests - throttle.k * accepts) / (requests + 1))
