"""The reference's throttling clients, worked by hand. Steps last 1 s; P = (requests - 2 accepts) / (requests + 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reference.draws import Draws
from tests.reference.examples import run
from tests.reference.model import Outcome, Request, Throttle

BUSY = Request(0.0, 1, 99)


def asked(*requests: Request, u: Callable[[int, int], float], window_s: float = 25.0, **settings: Any) -> Outcome:
    """25 s of memory: clients look around every 1/4 s. One place; whoever comes while it is taken is refused."""
    draws = Draws(throttle=u, backoff=lambda attempt, request: 0.5)
    return run(*requests, draws=draws, throttle=Throttle(2.0, window_s), **({"max_outstanding": 1} | settings))


def reasons(outcome: Outcome) -> list[str | None]:
    return [row.reason for row in outcome.requests]


def after_four_refusals(*late: Request, **settings: Any) -> list[str | None]:
    """What becomes of requests that follow one that was accepted and four that weren't, all before 1.25."""
    return reasons(asked(BUSY, *(Request(1.0, 1, 1) for _ in range(4)), *late, **settings))[5:]


class TestProbability:
    def test_nothing_is_throttled_before_the_first_point(self) -> None:
        requests = [BUSY, *(Request(0.125, 1, 1) for _ in range(5))]
        assert reasons(asked(*requests, u=lambda a, r: 0.0)) == [None, *["queue_full"] * 5]

    def test_of_the_point_at_the_arrival_s_own_instant(self) -> None:
        """(5 - 2) / 6 = 1/2 at 1.25, but still (1 - 2) / 2, so 0, at 1.125."""
        luck = {5: 0.0, 6: 0.4375, 7: 0.5}
        late = [Request(1.125, 1, 1), Request(1.25, 1, 1), Request(1.25, 1, 1)]
        # The one of 1.125 is refused: (6 - 2) / 7 = 0.571 at 1.25.
        assert after_four_refusals(*late, u=lambda a, r: luck.get(r, 0.0)) == ["queue_full", "throttled", "throttled"]
        luck = {5: 0.4375, 6: 0.5}
        assert after_four_refusals(*late[1:], u=lambda a, r: luck.get(r, 0.0)) == ["throttled", "queue_full"]

    def test_throttled_attempts_are_requests(self) -> None:
        """At 1.5: (7 - 2) / 8 = 0.625."""
        luck = {5: 0.0, 6: 0.0, 7: 0.5625, 8: 0.625}
        late = [*(Request(1.25, 1, 1) for _ in range(2)), *(Request(1.5, 1, 1) for _ in range(2))]
        assert after_four_refusals(*late, u=lambda a, r: luck.get(r, 0.0)) == [*["throttled"] * 3, "queue_full"]

    def test_window(self) -> None:
        """6.25 s, a point every 1/16 s. At 7.25 the four of 1.0 are in it (4/5), just after they aren't."""
        late = [Request(7.25, 1, 1), Request(7.3125, 1, 1)]
        assert after_four_refusals(*late, u=lambda a, r: 0.0, window_s=6.25) == ["throttled", "throttled"]
        assert after_four_refusals(late[1], u=lambda a, r: 0.0, window_s=6.25) == ["queue_full"]

    def test_too_long_is_not_accepted(self) -> None:
        requests = [*(Request(0.0, 20, 1) for _ in range(3)), Request(0.25, 1, 1)]
        outcome = asked(*requests, u=lambda a, r: 0.5, kv_capacity_tokens=9)
        assert reasons(outcome) == [*["too_long"] * 3, "throttled"]

    def test_timeouts_are_accepted(self) -> None:
        """Half of four were: P = 0."""
        requests = [BUSY, *(Request(0.0, 1, 1) for _ in range(3)), Request(2.0, 1, 1)]
        outcome = asked(*requests, u=lambda a, r: 0.0, max_outstanding=2, max_num_seqs=1, queue_timeout_s=1.0)
        assert reasons(outcome) == [None, "queue_timeout", "queue_full", "queue_full", "queue_timeout"]


class TestPlace:
    def test_before_bucket_and_router(self) -> None:
        """The one of 2.0 takes the token of 2.0 and turn 1, for who came at 1.25 took none."""
        requests = [
            Request(0.0, 1, 1),
            *(Request(1.0, 1, 1) for _ in range(4)),
            Request(1.25, 1, 1),
            Request(2.0, 1, 1),
        ]
        luck = {5: 0.0, 6: 0.875}
        outcome = asked(
            *requests, u=lambda a, r: luck.get(r, 0.0), max_outstanding=None, rate_limit=(0.5, 1), replicas=2
        )
        assert reasons(outcome) == [None, *["rate_limited"] * 4, "throttled", None]
        assert outcome.requests[-1].replica == 1

    def test_retries_are_attempts_with_luck_of_their_own(self) -> None:
        """Refused at 1, throttled at 3, when P is 1/2 again, and let through, in vain, at 7, 4 later."""
        luck = {(1, 1): 0.0, (2, 1): 0.96875}
        requests = [BUSY, *(Request(1.0, 1, 1) for _ in range(4))]
        outcome = asked(
            *requests, u=lambda a, r: luck.get((a, r), 0.96875), max_retries=2, backoff_s=4.0, horizon_s=8.0
        )
        assert [row.reason for row in outcome.requests if row.request == 1] == ["queue_full", "throttled", "queue_full"]
        assert [row.arrival_s for row in outcome.requests if row.request == 1] == [1.0, 3.0, 7.0]
