"""The reference's deadlines and horizon worked by hand. Unless a test says otherwise every step lasts 1 s."""

from __future__ import annotations

import pytest

from tests.reference.examples import column, ends, run, scheduled
from tests.reference.model import Request


class TestDeadlines:
    def test_waiting_request_leaves_at_its_deadline(self) -> None:
        outcome = run(Request(0.0, 1, 5), Request(0.0, 1, 1), max_num_seqs=1, queue_timeout_s=2.5)
        assert ends(outcome) == [("completed", None, 5.0), ("timed_out", "queue_timeout", 2.5)]
        assert outcome.requests[1].scheduled_s is None

    def test_deadline_at_the_start_of_the_step_comes_first(self) -> None:
        requests = [Request(0.0, 1, 5), Request(0.0, 1, 1), Request(4.5, 1, 1)]
        outcome = run(*requests, max_num_seqs=1, queue_timeout_s=5.0)
        assert ends(outcome)[1] == ("timed_out", "queue_timeout", 5.0)
        assert scheduled(outcome) == [0.0, None, 5.0]

    @pytest.mark.parametrize(
        ("timeout", "ttft", "queue", "reason", "left"),
        [
            (2.5, 2.5, 2.5, "timeout", 2.5),
            (9.0, 2.5, 2.5, "ttft_timeout", 2.5),
            (9.0, 2.5, 2.0, "queue_timeout", 2.0),
            (9.0, 2.0, 2.5, "ttft_timeout", 2.0),
            (2.5, None, 2.5, "timeout", 2.5),
        ],
    )
    def test_the_earliest_deadline_is_the_reason(
        self, timeout: float, ttft: float | None, queue: float, reason: str, left: float
    ) -> None:
        requests = [Request(0.0, 1, 4), Request(0.0, 1, 1)]
        outcome = run(*requests, max_num_seqs=1, timeout_s=timeout, ttft_timeout_s=ttft, queue_timeout_s=queue)
        assert ends(outcome)[1] == ("timed_out", reason, left)

    def test_running_request_leaves_at_the_next_boundary(self) -> None:
        outcome = run(Request(0.0, 1, 10), timeout_s=2.5)
        assert ends(outcome) == [("timed_out", "timeout", 3.0)]
        assert outcome.requests[0].token_times == [1.0, 2.0, 3.0]
        assert outcome.requests[0].finish_s is None

    def test_last_token_at_the_deadline_is_late(self) -> None:
        late = run(Request(0.0, 1, 3), timeout_s=3.0)
        assert ends(late) == [("timed_out", "timeout", 3.0)]
        assert (late.requests[0].finish_s, late.requests[0].token_times) == (None, [1.0, 2.0, 3.0])
        assert ends(run(Request(0.0, 1, 3), timeout_s=3.25)) == [("completed", None, 3.0)]

    def test_first_token_at_the_deadline_is_late_and_recorded(self) -> None:
        """Three chunks: first token at 3. Past 1.25 it leaves at 2, in mid-prefill."""
        late = run(Request(0.0, 10, 5), max_num_batched_tokens=4, ttft_timeout_s=3.0)
        assert ends(late) == [("timed_out", "ttft_timeout", 3.0)]
        assert late.requests[0].first_token_s == 3.0
        cut = run(Request(0.0, 10, 5), max_num_batched_tokens=4, ttft_timeout_s=1.25, timeout_s=1.75)
        assert ends(cut) == [("timed_out", "ttft_timeout", 2.0)]
        assert (cut.requests[0].scheduled_s, cut.requests[0].first_token_s) == (0.0, None)
        met = run(Request(0.0, 10, 5), max_num_batched_tokens=4, ttft_timeout_s=3.25)
        assert ends(met) == [("completed", None, 7.0)]

    def test_queue_deadline_ends_with_the_first_scheduling(self) -> None:
        """Preempted at 3, it waits until 6: too long for a newcomer, but it has been scheduled before."""
        outcome = run(Request(0.0, 3, 6), Request(0.0, 3, 6), kv_capacity_tokens=10, queue_timeout_s=1.0)
        assert ends(outcome) == [("completed", None, 6.0), ("completed", None, 9.0)]

    def test_preempted_request_leaves_at_its_own_deadline(self) -> None:
        """It waits at 4.5, so it doesn't have to wait for a boundary."""
        requests = [Request(0.0, 3, 4), Request(0.0, 3, 6)]
        outcome = run(*requests, kv_capacity_tokens=10, timeout_s=4.5)
        assert ends(outcome) == [("completed", None, 4.0), ("timed_out", "timeout", 5.0)]
        outcome = run(Request(0.0, 3, 6), Request(0.0, 3, 6), kv_capacity_tokens=10, timeout_s=4.5)
        assert ends(outcome) == [("timed_out", "timeout", 5.0), ("timed_out", "timeout", 4.5)]

    def test_ignored_clients_are_served_all_the_same(self) -> None:
        outcome = run(Request(0.0, 1, 4), Request(0.0, 1, 1), max_num_seqs=1, timeout_s=2.5, on_timeout="ignore")
        assert ends(outcome) == [("timed_out", "timeout", 4.0), ("timed_out", "timeout", 5.0)]
        assert [row.finish_s for row in outcome.requests] == [None, None]
        assert outcome.requests[0].token_times == [1.0, 2.0, 3.0, 4.0]

    def test_ignore_keeps_the_first_missed_deadline_as_the_reason(self) -> None:
        """First token at 3: late for 2; the whole answer at 5 is late for 4.5, too."""
        settings = {"max_num_batched_tokens": 4, "on_timeout": "ignore"}
        outcome = run(Request(0.0, 10, 3), ttft_timeout_s=2.0, timeout_s=4.5, **settings)
        assert ends(outcome) == [("timed_out", "ttft_timeout", 5.0)]
        outcome = run(Request(0.0, 10, 3), ttft_timeout_s=3.5, timeout_s=4.5, **settings)
        assert ends(outcome) == [("timed_out", "timeout", 5.0)]

    def test_the_server_drops_from_its_queue_with_ignore_too(self) -> None:
        """The client went at 2, the server noticed nothing and dropped the request at 3."""
        settings = {"max_num_seqs": 1, "ttft_timeout_s": 2.0, "queue_timeout_s": 3.0, "on_timeout": "ignore"}
        outcome = run(Request(0.0, 1, 9), Request(0.0, 1, 1), **settings)
        assert ends(outcome) == [("completed", None, 9.0), ("timed_out", "ttft_timeout", 3.0)]


class TestHorizon:
    def test_cut_in_mid_step(self) -> None:
        outcome = run(Request(0.0, 1, 5), Request(1.5, 1, 5), horizon_s=2.5)
        assert [row.token_times for row in outcome.requests] == [[1.0, 2.0], []]
        assert ends(outcome) == [("unfinished", None, None)] * 2
        assert scheduled(outcome) == [0.0, 2.0]
        assert (outcome.steps[0][-1].end, outcome.horizon_s, outcome.gaps) == (3.0, 2.5, [1.0])

    def test_what_ends_at_the_horizon_happens_and_nothing_starts(self) -> None:
        outcome = run(Request(0.0, 1, 3), Request(0.0, 1, 1), max_num_seqs=1, horizon_s=3.0)
        assert ends(outcome) == [("completed", None, 3.0), ("unfinished", None, None)]
        assert column(outcome, "end") == [1.0, 2.0, 3.0]

    def test_waiting_deadline_at_the_horizon_happens(self) -> None:
        requests = [Request(0.0, 1, 9), Request(0.0, 1, 1), Request(0.125, 1, 1)]
        outcome = run(*requests, max_num_seqs=1, queue_timeout_s=2.5, horizon_s=2.5)
        assert ends(outcome)[1:] == [("timed_out", "queue_timeout", 2.5), ("unfinished", None, None)]

    def test_running_request_is_late_only_at_a_boundary_within_the_horizon(self) -> None:
        assert ends(run(Request(0.0, 1, 9), timeout_s=2.5, horizon_s=2.75)) == [("unfinished", None, None)]
        assert ends(run(Request(0.0, 1, 9), timeout_s=2.5, horizon_s=3.0)) == [("timed_out", "timeout", 3.0)]

    @pytest.mark.parametrize(("timeout", "state"), [(2.5, "timed_out"), (2.75, "timed_out"), (2.875, "unfinished")])
    def test_ignored_deadline_within_the_horizon(self, timeout: float, state: str) -> None:
        outcome = run(Request(0.0, 1, 9), timeout_s=timeout, horizon_s=2.75, on_timeout="ignore")
        assert (outcome.requests[0].state, outcome.requests[0].left_s) == (state, None)

    def test_ignored_client_of_a_waiting_request(self) -> None:
        requests = [Request(0.0, 1, 9), Request(0.0, 1, 1)]
        outcome = run(*requests, max_num_seqs=1, ttft_timeout_s=2.0, horizon_s=2.5, on_timeout="ignore")
        assert ends(outcome) == [("unfinished", None, None), ("timed_out", "ttft_timeout", None)]

    def test_group_that_would_start_at_the_horizon(self) -> None:
        settings = {"policy": "static", "batch_wait_s": 3.0}
        assert ends(run(Request(0.0, 1, 1), horizon_s=3.0, **settings)) == [("unfinished", None, None)]
        assert scheduled(run(Request(0.0, 1, 1), horizon_s=3.125, **settings)) == [3.0]

    def test_without_a_horizon_the_last_event_ends_the_run(self) -> None:
        outcome = run(Request(0.0, 4, 2), Request(9.5, 11, 1), kv_capacity_tokens=10)
        assert (ends(outcome)[1], outcome.horizon_s) == (("rejected", "too_long", 9.5), 9.5)
        assert run().horizon_s == 0.0

    def test_arrival_at_the_horizon_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="arrival_s"):
            run(Request(3.0, 1, 1), horizon_s=3.0)
