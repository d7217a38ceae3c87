"""The reference's gateway, split, caps and closed loop, worked by hand.

Every step lasts 1 s.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference.examples import ends, run, scheduled
from tests.reference.model import Request, Setup


class TestAdmission:
    def test_token_bucket(self) -> None:
        """Starts with 2, gets one every 2 s. What is refused takes nothing; no more than 2 are kept."""
        times = [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 9.0, 9.0, 9.0]
        outcome = run(*(Request(at, 1, 1) for at in times), rate_limit=(0.5, 2))
        passed = [row.reason is None for row in outcome.requests]
        assert passed == [True, True, False, False, True, False, True, True, False]
        assert ends(outcome)[2] == ("rejected", "rate_limited", 0.0)

    def test_too_long(self) -> None:
        """The prefix isn't deducted; exactly the capacity is not too long."""
        requests = [Request(0.0, 9, 2, 8), Request(0.0, 9, 1)]
        for limit in ("kv_capacity_tokens", "context_limit"):
            assert [row.reason for row in run(*requests, **{limit: 10}).requests] == ["too_long", None]

    def test_context_limit_sees_the_shortened_answer(self) -> None:
        requests = [Request(0.0, 6, 9), Request(0.0, 8, 9), Request(0.0, 8, 2)]
        outcome = run(*requests, context_limit=10, reserve_output_tokens=4)
        assert [row.reason for row in outcome.requests] == [None, "too_long", None]

    def test_too_long_is_checked_before_the_queue(self) -> None:
        requests = [Request(0.0, 1, 5), Request(0.5, 20, 1), Request(0.5, 2, 1)]
        outcome = run(*requests, kv_capacity_tokens=10, max_outstanding=1)
        assert [row.reason for row in outcome.requests] == [None, "too_long", "queue_full"]

    def test_outstanding_counts_running_and_waiting_after_departures(self) -> None:
        """At 2 the first has just left. Those of one instant see one another."""
        times = [0.0, 0.0, 0.0, 1.5, 2.0, 2.0]
        requests = [Request(at, 1, 2) for at in times]
        outcome = run(*requests, max_num_seqs=1, max_outstanding=2)
        assert [row.reason for row in outcome.requests] == [None, None, "queue_full", "queue_full", None, "queue_full"]

    def test_deadline_comes_before_an_arrival_of_that_instant(self) -> None:
        requests = [Request(0.0, 1, 9), Request(0.0, 1, 1), Request(2.25, 1, 1), Request(2.5, 1, 1)]
        outcome = run(*requests, max_num_seqs=1, max_outstanding=2, queue_timeout_s=2.5)
        assert [row.reason for row in outcome.requests] == [None, "queue_timeout", "queue_full", "queue_timeout"]

    def test_running_request_past_its_deadline_counts_until_it_leaves(self) -> None:
        requests = [Request(0.0, 1, 9), Request(2.75, 1, 1), Request(3.0, 1, 1)]
        outcome = run(*requests, max_outstanding=1, timeout_s=2.5)
        assert [row.reason for row in outcome.requests] == ["timeout", "queue_full", None]

    def test_queued_tokens_are_whole_prompts(self) -> None:
        """6 waiting are below 10, 12 are not; the running prompt doesn't count, the cached part of one does."""
        requests = [Request(0.0, 30, 5), *(Request(0.5, 6, 1, 5) for _ in range(3))]
        outcome = run(*requests, max_num_seqs=1, max_queued_tokens=10)
        assert [row.reason for row in outcome.requests] == [None, None, None, "queue_full"]

    def test_queued_tokens_leave_out_who_has_a_token_already(self) -> None:
        """The second waits from 3 on with tokens out: it is no obstacle to the third, which is one to the fourth."""
        requests = [Request(0.0, 3, 6), Request(0.5, 3, 6), Request(3.5, 3, 1), Request(3.75, 3, 1)]
        outcome = run(*requests, kv_capacity_tokens=10, max_queued_tokens=3)
        assert [row.reason for row in outcome.requests] == [None, None, None, "queue_full"]
        assert outcome.requests[1].preemptions == 1

    def test_queued_tokens_include_a_victim_without_a_token(self) -> None:
        """The second is preempted at 2 in mid-prefill: its 8 tokens are queued again."""
        requests = [Request(0.0, 2, 9), Request(0.0, 8, 1), Request(2.5, 1, 1)]
        outcome = run(*requests, kv_capacity_tokens=11, max_num_batched_tokens=4, max_queued_tokens=8)
        assert [row.reason for row in outcome.requests] == [None, None, "queue_full"]


class TestFleet:
    def test_round_robin_counts_those_that_the_replica_refuses(self) -> None:
        requests = [Request(0.0, 1, 1), Request(0.0, 20, 1), Request(0.0, 1, 1), Request(0.0, 1, 1)]
        outcome = run(*requests, replicas=2, kv_capacity_tokens=10)
        assert [row.replica for row in outcome.requests] == [0, 1, 0, 1]

    def test_round_robin_does_not_count_those_that_the_gateway_refuses(self) -> None:
        outcome = run(*(Request(at, 1, 1) for at in (0.0, 0.0, 1.0)), replicas=2, rate_limit=(1.0, 1))
        assert [row.replica for row in outcome.requests] == [0, None, 1]

    def test_replicas_do_not_touch_each_other(self) -> None:
        requests = [Request(0.0, 1, 2, replica=2), Request(0.0, 1, 1, replica=2), Request(0.5, 1, 1, replica=0)]
        outcome = run(*requests, replicas=3, max_num_seqs=1)
        assert scheduled(outcome) == [0.0, 2.0, 0.5]
        assert [len(steps) for steps in outcome.steps] == [1, 0, 3]


class TestClosedLoop:
    def test_next_request_comes_when_the_last_one_ended(self) -> None:
        """Both end at 1 and return at once, in order of user, not of the list. User u stays with replica u mod 2."""
        requests = [Request(0.0, 1, 1, user=u) for u in (2, 0, 1)] + [Request(99.0, 1, 1, user=u) for u in (2, 0, 1)]
        outcome = run(*requests, replicas=2, max_num_seqs=1)
        assert [row.order for row in outcome.requests[:3]] == [2, 0, 1]
        assert [row.replica for row in outcome.requests] == [0, 0, 1] * 2
        assert [row.arrival_s for row in outcome.requests[3:]] == [2.0, 1.0, 1.0]
        assert scheduled(outcome)[3:] == [3.0, 2.0, 1.0]

    def test_think_time_and_backoff(self) -> None:
        """The first user's request blocks the place until 5; the second thinks 1 and waits 0.5 more, each time."""
        requests = [Request(0.0, 1, 5, user=0), *(Request(0.0, 1, 1, user=1, think_s=1.0) for _ in range(6))]
        outcome = run(*requests, max_outstanding=1, backoff_s=0.5)
        assert [row.arrival_s for row in outcome.requests[1:]] == [0.0, 1.5, 3.0, 4.5, 6.0, 8.0]
        assert [row.state for row in outcome.requests[1:]] == ["rejected"] * 4 + ["completed"] * 2

    def test_nothing_is_issued_at_the_horizon(self) -> None:
        outcome = run(Request(0.0, 1, 1, user=0), Request(0.0, 1, 1, user=0), horizon_s=1.0)
        assert ends(outcome) == [("completed", None, 1.0), (None, None, None)]
        assert outcome.requests[1].arrival_s is None

    @pytest.mark.parametrize(("on_timeout", "due"), [("abort", 4.0), ("ignore", 3.5)])
    def test_user_goes_on_after_a_timeout(self, on_timeout: str, due: float) -> None:
        """Aborted, the request ends at the boundary 3; ignored, its client gives up at 2.5."""
        requests = [Request(0.0, 1, 9, user=0), Request(0.0, 1, 1, user=0, think_s=1.0)]
        assert run(*requests, timeout_s=2.5, on_timeout=on_timeout).requests[1].arrival_s == due

    def test_the_end_of_an_ignored_request_is_no_second_occasion(self) -> None:
        """Given up at 2.5, served until 9; meanwhile the user's second ran from 4 to 5. The rest follows that one."""
        lengths_and_thinking = [(9, 0.0), (1, 1.0), (1, 10.0), (1, 1.0)]
        requests = [Request(0.0, 1, o, user=0, think_s=think) for o, think in lengths_and_thinking]
        outcome = run(*requests, timeout_s=2.5, on_timeout="ignore")
        assert [row.arrival_s for row in outcome.requests] == [0.0, 3.5, 15.0, 17.0]


class TestRefusedSetups:
    @pytest.mark.parametrize(
        ("settings", "field"),
        [
            ({"policy": "lifo"}, "policy"),
            ({"kv_policy": "swap"}, "kv_policy"),
            ({"on_timeout": "shrug"}, "on_timeout"),
            ({"max_num_seqs": 8, "max_num_batched_tokens": 7}, "max_num_batched_tokens"),
            ({"kv_policy": "reserve", "watermark": 0.1}, "watermark"),
            ({"timeout_s": 0.0}, "timeout_s"),
        ],
    )
    def test_what_has_no_meaning_is_refused(self, settings: dict[str, Any], field: str) -> None:
        with pytest.raises(ValueError, match=f"^{field}:"):
            Setup(base=[1.0], **settings)

    def test_half_closed_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"^user:"):
            run(Request(0.0, 1, 1, user=0), Request(0.0, 1, 1))
