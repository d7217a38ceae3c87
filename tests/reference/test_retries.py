"""The reference's retries, worked by hand. Every step lasts 1 s; clients look around every 1/4 s."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.reference.draws import Draws
from tests.reference.examples import attempts, run
from tests.reference.model import Outcome, Request, Setup
from tests.reference.points import first_after, first_from, last_until, sync_s
from tests.reference.retries import tries_of_layer


def tried(*requests: Request, u: float | Callable[[int, int], float] = 0.5, **settings: Any) -> Outcome:
    """backoff_s = 4: clip(4 / 10, 0.02, 0.25) = 0.25 s between noticing points."""
    luck = u if callable(u) else lambda attempt, request: u
    return run(*requests, draws=Draws(backoff=luck), **({"max_retries": 1, "backoff_s": 4.0} | settings))


# One request keeps the only place busy for so many steps that a second one is refused.
BUSY = Request(0.0, 1, 99)


class TestWhen:
    def test_a_refusal_waits_from_its_arrival(self) -> None:
        """Refused at 1, at 1 + 0.5 * 4 and at 3 + 0.5 * 8."""
        outcome = tried(BUSY, Request(1.0, 1, 1), max_outstanding=1, max_retries=2)
        assert attempts(outcome)[1:] == [(1, a, at, "queue_full") for a, at in enumerate([1.0, 3.0, 7.0])]

    def test_luck_depends_on_attempt_and_request(self) -> None:
        luck = {(0, 1): 0.5, (0, 2): 0.25, (1, 1): 0.25, (1, 2): 0.125}
        requests = [BUSY, Request(1.0, 1, 1), Request(1.0, 1, 1)]
        outcome = tried(*requests, u=lambda a, r: luck[a, r], max_outstanding=1, max_retries=2)
        assert [row.arrival_s for row in outcome.requests[1:]] == [1.0, 3.0, 5.0, 1.0, 2.0, 3.0]

    def test_a_refusal_is_noticed_at_a_later_point(self) -> None:
        """At 1 exactly, a point: noticed at 1.25. At 1.125: too."""
        outcome = tried(BUSY, Request(1.0, 1, 1), Request(1.125, 1, 1), max_outstanding=1, u=0.0)
        assert [row.arrival_s for row in outcome.requests[1:]] == [1.0, 1.25, 1.125, 1.25]

    def test_a_waiting_timeout_is_noticed_at_its_own_instant(self) -> None:
        """Dropped at 1.5, a point, and back at once."""
        outcome = tried(BUSY, Request(0.5, 1, 1), max_num_seqs=1, queue_timeout_s=1.0, u=0.0)
        assert attempts(outcome)[1:] == [(1, 0, 0.5, "queue_timeout"), (1, 1, 1.5, "queue_timeout")]

    def test_aborted_and_running_it_fails_at_the_boundary(self) -> None:
        """Deadline 2.5, boundary 3, retry at 3 + 2."""
        outcome = tried(Request(0.0, 1, 9), timeout_s=2.5)
        assert attempts(outcome) == [(0, 0, 0.0, "timeout"), (0, 1, 5.0, "timeout")]
        assert outcome.requests[0].left_s == 3.0

    def test_ignored_it_fails_at_the_client_s_deadline(self) -> None:
        """Given up at 2.5, back at 4.5, while the first is served until 9; the second, until 14, is too late, too."""
        outcome = tried(Request(0.0, 1, 9), timeout_s=2.5, on_timeout="ignore")
        assert attempts(outcome) == [(0, 0, 0.0, "timeout"), (0, 1, 4.5, "timeout")]
        assert [row.left_s for row in outcome.requests] == [9.0, 14.0]

    def test_a_client_gives_up_once(self) -> None:
        """At 1.5; the server's drop at 2.5 isn't another failure, or another retry would come at 4.5."""
        outcome = tried(
            BUSY, Request(0.0, 1, 1), max_num_seqs=1, ttft_timeout_s=1.5, queue_timeout_s=2.5, on_timeout="ignore"
        )
        assert [(row.arrival_s, row.reason, row.left_s) for row in outcome.requests[1:]] == [
            (0.0, "ttft_timeout", 2.5),
            (3.5, "ttft_timeout", 6.0),
        ]

    def test_deadlines_count_from_each_attempt_s_arrival(self) -> None:
        outcome = tried(Request(0.0, 1, 3), BUSY, max_num_seqs=1, queue_timeout_s=2.0)
        assert [row.left_s for row in outcome.requests if row.request == 1] == [2.0, 103.0]

    def test_first_attempts_come_before_retries(self) -> None:
        """Both are due at 3: the first attempt of request 2 gets the place."""
        requests = [Request(0.0, 1, 3), Request(1.0, 1, 1), Request(3.0, 1, 1)]
        outcome = tried(*requests, max_outstanding=1)
        assert attempts(outcome)[1:] == [
            (1, 0, 1.0, "queue_full"),
            (1, 1, 3.0, "queue_full"),
            (2, 0, 3.0, "completed"),
        ]

    def test_a_retry_due_at_the_horizon_never_comes(self) -> None:
        outcome = tried(BUSY, Request(1.0, 1, 1), Request(1.25, 1, 1), max_outstanding=1, horizon_s=3.25)
        assert [row.attempt for row in outcome.requests] == [0, 0, 1, 0]

    def test_without_a_horizon_the_last_refusal_ends_the_run(self) -> None:
        outcome = tried(Request(0.0, 1, 1), Request(1.0, 1, 1), rate_limit=(0.125, 1))
        assert attempts(outcome)[1:] == [(1, 0, 1.0, "rate_limited"), (1, 1, 3.0, "rate_limited")]
        assert outcome.horizon_s == 3.0


class TestWho:
    def test_too_long_is_final(self) -> None:
        assert len(tried(Request(0.0, 20, 1), kv_capacity_tokens=9).requests) == 1

    def test_completed_is_final(self) -> None:
        assert len(tried(Request(0.0, 1, 1), max_retries=9).requests) == 1

    def test_a_retry_takes_its_turn_in_the_router_and_a_token(self) -> None:
        """Turns 0 and 1 at 0; refused at the gateway at 0; its retry at 2 has turn 2."""
        outcome = tried(*(Request(0.0, 1, 1) for _ in range(3)), replicas=2, rate_limit=(0.5, 2))
        assert [row.replica for row in outcome.requests] == [0, 1, None, 0]

    def test_layers_multiply(self) -> None:
        """One retry in each of two layers: four attempts, each wait U(0, 4)."""
        outcome = tried(BUSY, Request(1.0, 1, 1), max_outstanding=1, retry_layers=2)
        assert [row.arrival_s for row in outcome.requests[1:]] == [1.0, 3.0, 5.0, 7.0]

    def test_two_layers_of_two_retries(self) -> None:
        """Inner waits 2, 4; then the outer's first 2; inner 2, 4; the outer's second 4; inner 2, 4."""
        outcome = tried(BUSY, Request(1.0, 1, 1), max_outstanding=1, retry_layers=2, max_retries=2)
        times = [row.arrival_s or 0.0 for row in outcome.requests[1:]]
        assert [b - a for a, b in pairwise(times)] == [2, 4, 2, 2, 4, 4, 2, 4]

    def test_tries_of_layer(self) -> None:
        assert [tries_of_layer(a, 1) for a in range(7)] == [0, 0, 0, 0, 0, 0, 0]
        assert [tries_of_layer(a, 2) for a in range(8)] == [0, 1, 0, 0, 1, 1, 0, 1]
        assert [tries_of_layer(a, 4) for a in range(6)] == [0, 1, 2, 3, 0, 0]


class TestBudget:
    @staticmethod
    def retried(ratio: float, *requests: Request, **settings: Any) -> list[tuple[int, float | None]]:
        outcome = tried(*requests, retry_budget_ratio=ratio, max_outstanding=1, **settings)
        return [(row.request, row.arrival_s) for row in outcome.requests if row.attempt > 0]

    def test_in_order_of_failure_then_request(self) -> None:
        """All are noticed at 1.25, with five first attempts there. Granted while 0, 1, 2 <= 5/2: the earliest three.

        Of the two that were refused at 1.125, the one that comes first in the list.
        """
        requests = [BUSY, *(Request(at, 1, 1) for at in (1.0625, 1.125, 1.125, 1.0))]
        assert self.retried(0.5, *requests) == [(1, 3.0625), (2, 3.125), (4, 3.0)]

    def test_none_at_all_still_grants_the_first(self) -> None:
        """0 <= 0 holds once."""
        assert self.retried(0.0, BUSY, Request(1.0, 1, 1), Request(1.0, 1, 1)) == [(1, 3.0)]

    def test_first_attempts_at_the_point_itself_don_t_count(self) -> None:
        """At 1.25: 0, 1 <= 4/4, but not 2. At 1.5 eight came before: 2 <= 8/4 for one of those refused at 1.25."""
        requests = [BUSY, *(Request(at, 1, 1) for at in (1.0, 1.0, 1.0, 1.25, 1.25, 1.25, 1.25))]
        assert self.retried(0.25, *requests) == [(1, 3.0), (2, 3.0), (4, 3.25)]

    def test_what_was_not_granted_is_not_tried_later(self) -> None:
        requests = [BUSY, Request(1.0, 1, 1), Request(1.0, 1, 1), *(Request(2.0, 1, 1) for _ in range(9))]
        assert {request for request, _ in self.retried(0.125, *requests)} == {1, 3}

    def test_a_granted_retry_beyond_the_horizon_is_spent(self) -> None:
        """The first grant is due at 5, too late; so nothing is left for the second, which would come at 2."""
        requests = [BUSY, Request(1.0, 1, 1), Request(1.125, 1, 1)]
        luck = {1: 1.0, 2: 0.125}
        assert self.retried(0.0, *requests, u=lambda a, r: luck[r], horizon_s=4.0) == []


class TestPoints:
    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ({}, None),
            ({"report_interval_s": 0.5}, None),
            ({"report_interval_s": 0.5, "routing": "least_kv"}, 0.5),
            ({"report_interval_s": 0.0, "routing": "least_kv"}, None),
            ({"max_retries": 1, "backoff_s": 0.0}, 0.02),
            ({"max_retries": 1, "backoff_s": 1.25}, 0.125),
            ({"max_retries": 1, "backoff_s": 60.0}, 0.25),
            ({"max_retries": 1, "backoff_s": 60.0, "report_interval_s": 0.125, "routing": "power_of_two"}, 0.125),
        ],
    )
    def test_sync(self, settings: dict[str, Any], expected: float | None) -> None:
        assert sync_s(Setup(base=[1.0], **settings)) == expected

    @pytest.mark.parametrize(
        ("at", "after", "since", "until"),
        [(0.0, 0.25, 0.25, None), (0.125, 0.25, 0.25, None), (0.25, 0.5, 0.25, 0.25), (7.3, 7.5, 7.5, 7.25),
         (1000.0, 1000.25, 1000.0, 1000.0)],
    )  # fmt: skip
    def test_neighbours(self, at: float, after: float, since: float, until: float | None) -> None:
        assert (first_after(0.25, at), first_from(0.25, at), last_until(0.25, at)) == (after, since, until)

    def test_neighbours_of_points_that_are_rounded(self) -> None:
        """k * 0.02 is rounded, and so is its quotient: every point is still found, and its successor."""
        for k in range(1, 3000):
            point = k * 0.02
            assert (first_from(0.02, point), last_until(0.02, point)) == (point, point)
            assert first_after(0.02, point) == (k + 1) * 0.02
