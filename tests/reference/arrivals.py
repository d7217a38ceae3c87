"""When requests come first (open list or closed loop), and the gateway's token bucket."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tests.reference.model import Request, Setup


class OpenArrivals:
    """A list of arrivals; equal times keep the list's order."""

    def __init__(self, setup: Setup, requests: Sequence[Request]) -> None:
        late = [r.arrival_s for r in requests if setup.horizon_s is not None and r.arrival_s >= setup.horizon_s]
        if late or any(r.arrival_s < 0 for r in requests):
            raise ValueError("arrival_s: outside [0, horizon_s)")
        self._due = sorted(range(len(requests)), key=lambda i: requests[i].arrival_s)
        self._requests = requests

    def next_s(self) -> float | None:
        """When the next request is due."""
        return self._requests[self._due[0]].arrival_s if self._due else None

    def pop(self) -> int:
        """Index of the request due next."""
        return self._due.pop(0)

    def ended(self, index: int, now: float, refused: bool) -> None:
        """Nobody reacts to the end of a request."""


class ClosedArrivals:
    """Users who issue their next request a think time after the last one ended, for them.

    A request has ended for its user when it left the system; with `ignore`, when the client gave up at its
    deadline, if that came first. Requests due at one instant come in order of user. A request due at or after the
    horizon is never issued.
    """

    def __init__(self, setup: Setup, requests: Sequence[Request]) -> None:
        self._setup, self._requests = setup, requests
        self._heap: list[tuple[float, int, int]] = []
        self._next: dict[int, list[int]] = {}
        for index, request in enumerate(requests):
            assert request.user is not None
            self._next.setdefault(request.user, []).append(index)
        for user, indices in self._next.items():
            first = indices.pop(0)
            self._push(requests[first].arrival_s, user, first)

    def _push(self, due: float, user: int, index: int) -> None:
        if self._setup.horizon_s is None or due < self._setup.horizon_s:
            heapq.heappush(self._heap, (due, user, index))

    def next_s(self) -> float | None:
        """When the next request is due."""
        return self._heap[0][0] if self._heap else None

    def pop(self) -> int:
        """Index of the request due next."""
        return heapq.heappop(self._heap)[2]

    def ended(self, index: int, now: float, refused: bool) -> None:
        """The user thinks, after a refusal `backoff_s` longer, and then issues the next one."""
        user = self._requests[index].user
        assert user is not None
        if self._next[user]:
            following = self._next[user].pop(0)
            due = now + self._requests[following].think_s
            self._push(due + self._setup.backoff_s if refused else due, user, following)


def source(setup: Setup, requests: Sequence[Request]) -> OpenArrivals | ClosedArrivals:
    """Closed loop if every request has a user, open if none has."""
    closed = [request.user is not None for request in requests]
    if any(closed) and not all(closed):
        raise ValueError("user: given for some requests only")
    if any(closed):
        coupling = {
            "routing": setup.routing != "round_robin",
            "max_retries": setup.max_retries > 0,
            "throttle": setup.throttle is not None,
        }
        for name, used in coupling.items():
            if used:
                raise ValueError(f"{name}: not for a closed loop's users")
    return ClosedArrivals(setup, requests) if closed and all(closed) else OpenArrivals(setup, requests)


class TokenBucket:
    """Starts full; accepts when it holds at least 1, and then gives 1 away.

    Its level is computed anew at each arrival, accepted or not.
    """

    def __init__(self, rate_rps: float, burst: float) -> None:
        self._rate, self._burst = rate_rps, burst
        self._level, self._at = float(burst), 0.0

    def accepts(self, now: float) -> bool:
        """Whether the request arriving now passes."""
        self._level = min(self._burst, self._level + self._rate * (now - self._at))
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True
