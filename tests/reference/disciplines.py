"""Who is next and who is dropped, other than first in first out: CoDel and adaptive LIFO."""

from __future__ import annotations

from math import sqrt

from tests.reference.model import AdaptiveLifo, Codel


def oldest_is_old(lifo: AdaptiveLifo, arrival: float, now: float) -> bool:
    """Whether a class is served newest first now, by the arrival of its oldest request that was never preempted."""
    return now - arrival >= lifo.after_s


class CodelState:
    """Controlled delay (Nichols and Jacobson, ACM Queue 2012), of one replica.

    Asked whenever a request would be admitted. Below the target all is well. From `interval_s` after the first wait at
    or above it, with none below in between, requests are dropped: one at once, then the n-th after another
    `interval_s / sqrt(n)`, until a wait is below the target. Who returns to dropping within an interval of the last
    drop's due time goes on nearly where it stopped.
    """

    def __init__(self, settings: Codel) -> None:
        self.settings = settings
        self.first_above: float | None = None
        self.dropping = False
        self.count = 0
        self.drop_next = 0.0

    def drops(self, arrival: float, now: float) -> bool:
        """Whether the request whose turn it is now is dropped."""
        too_long = self._has_been_above(now - arrival, now)
        if self.dropping:
            if not too_long:
                self.dropping = False
                return False
            if now < self.drop_next:
                return False
            self.count += 1
            self.drop_next += self.settings.interval_s / sqrt(self.count)
            return True
        if not too_long:
            return False
        self.dropping = True
        recent = now - self.drop_next < self.settings.interval_s and self.count > 2
        self.count = max(self.count - 2, 1) if recent else 1
        self.drop_next = now + self.settings.interval_s / sqrt(self.count)
        return True

    def _has_been_above(self, wait: float, now: float) -> bool:
        if wait < self.settings.target_s:
            self.first_above = None
            return False
        if self.first_above is None:
            self.first_above = now + self.settings.interval_s
            return False
        return now >= self.first_above
