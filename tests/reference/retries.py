"""Clients that try again: who does, when, and how often."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from tests.reference.model import Setup
from tests.reference.points import first_after, first_from, sync_s


@dataclass(frozen=True)
class Failure:
    """An attempt that ended badly `at` some time, and when its client acts on it."""

    at: float
    request: int
    attempt: int
    noticed: float


class Retries:
    """All clients of an open loop. `uniform(attempt, request)` is in [0, 1)."""

    def __init__(self, setup: Setup, uniform: Callable[[int, int], float]) -> None:
        self._setup, self._uniform = setup, uniform
        self._most = (setup.max_retries + 1) ** setup.retry_layers
        self._failures: list[Failure] = []
        self._due: list[tuple[float, int, int]] = []
        self._granted = self._first_attempts = 0

    def first_attempt(self) -> None:
        """A request arrives for the first time; whatever becomes of it, it raises the budget of what is noticed later.

        Points are noticed before the arrivals of their instant, so it counts for later points only.
        """
        self._first_attempts += 1

    def failed(self, request: int, attempt: int, at: float, refused: bool) -> None:
        """An attempt was refused (noticed at a later point), or its client's patience has ended (at a point from now).

        The last allowed attempt's failure is final.
        """
        if attempt + 1 >= self._most:
            return
        every_s = sync_s(self._setup)
        assert every_s is not None
        noticed = first_after(every_s, at) if refused else first_from(every_s, at)
        self._failures.append(Failure(at, request, attempt, noticed))

    def next_s(self) -> float | None:
        """When something is noticed, or a retry is due."""
        return min([failure.noticed for failure in self._failures] + [due[0] for due in self._due], default=None)

    def notice(self, now: float) -> None:
        """Grant, as far as the budget goes, a retry to every failure noticed now."""
        noticed = [failure for failure in self._failures if failure.noticed == now]
        self._failures = [failure for failure in self._failures if failure.noticed != now]
        for failure in sorted(noticed, key=lambda failure: (failure.at, failure.request)):
            if self._affordable():
                self._granted += 1
                due = max(failure.at + self._wait(failure), now)
                if self._setup.horizon_s is None or due < self._setup.horizon_s:
                    heapq.heappush(self._due, (due, failure.request, failure.attempt + 1))

    def _affordable(self) -> bool:
        ratio = self._setup.retry_budget_ratio
        return ratio is None or self._granted <= ratio * self._first_attempts

    def _wait(self, failure: Failure) -> float:
        """U(0, backoff_s * 2^b): exponential backoff with full jitter."""
        exponent = tries_of_layer(failure.attempt, self._setup.max_retries)
        return self._uniform(failure.attempt, failure.request) * self._setup.backoff_s * 2.0**exponent

    def pop(self, now: float) -> tuple[int, int] | None:
        """(request, attempt) of a retry that arrives now, in order of request; None when there are no more."""
        if not self._due or self._due[0][0] != now:
            return None
        return heapq.heappop(self._due)[1:]


def tries_of_layer(attempt: int, max_retries: int) -> int:
    """How many retries the layer that tries again has made in its current round.

    Layers count an attempt in base `max_retries + 1`, the innermost its lowest digit: the innermost layer with retries
    left makes the next one, those inside it start anew.
    """
    while attempt % (max_retries + 1) == max_retries:
        attempt //= max_retries + 1
    return attempt % (max_retries + 1)
