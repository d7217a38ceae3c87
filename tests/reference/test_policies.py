"""The reference's other policies worked by hand. Unless a test says otherwise every step lasts 1 s."""

from __future__ import annotations

import pytest

from tests.reference.examples import column, ends, run, scheduled
from tests.reference.model import Request


class TestPrefillFirst:
    def test_decoding_stalls_while_a_prompt_is_prefilled(self) -> None:
        outcome = run(Request(0.0, 2, 4), Request(1.5, 3, 2), policy="prefill_first")
        assert outcome.requests[0].token_times == [1.0, 2.0, 4.0, 5.0]
        assert outcome.requests[1].token_times == [3.0, 4.0]
        assert outcome.requests[0].max_itl_s == 2.0
        stalled = outcome.steps[0][2]
        assert (stalled.T, stalled.R, stalled.C, stalled.n_decode) == (3, 1, 0, 0)
        assert (stalled.running, stalled.kv_held_at_start) == (2, 3)

    @pytest.mark.parametrize(
        ("prompts", "tokens"),
        [([5, 3, 1], [8, 1]), ([20, 1], [20, 1]), ([1, 20, 1], [1, 20, 1]), ([5, 4, 3], [5, 7])],
    )
    def test_whole_prompts_within_the_budget(self, prompts: list[int], tokens: list[int]) -> None:
        outcome = run(*(Request(0.0, p, 1) for p in prompts), policy="prefill_first", max_num_batched_tokens=8)
        assert column(outcome, "T") == tokens
        assert column(outcome, "limited_by") == ["token_budget"] * (len(tokens) - 1) + ["none"]

    def test_stalled_requests_need_no_room_in_that_step(self) -> None:
        """3 held and 7 wanted are exactly 10; under chunked the decode's own token doesn't leave enough."""
        requests = [Request(0.0, 3, 5), Request(0.5, 7, 1)]
        assert scheduled(run(*requests, policy="prefill_first", kv_capacity_tokens=10)) == [0.0, 1.0]
        assert scheduled(run(*requests, policy="chunked", kv_capacity_tokens=10)) == [0.0, 5.0]

    def test_preemption_in_a_decode_step(self) -> None:
        """At 2 both hold 5 of 10; the second returns at 3 with 6 tokens to prefill and makes its third."""
        outcome = run(Request(0.0, 4, 3), Request(0.0, 4, 3), policy="prefill_first", kv_capacity_tokens=10)
        assert [row.finish_s for row in outcome.requests] == [3.0, 4.0]
        assert column(outcome, "T") == [8, 2, 1, 6]
        assert column(outcome, "limited_by") == ["none", "none", "kv", "none"]


class TestStatic:
    def test_incomplete_group_waits_from_its_earliest_arrival(self) -> None:
        settings = {"policy": "static", "max_num_seqs": 2, "batch_wait_s": 3.0}
        assert scheduled(run(Request(0.5, 2, 2), **settings)) == [3.5]
        assert scheduled(run(Request(0.0, 2, 2), Request(1.0, 2, 2), **settings)) == [1.0, 1.0]
        assert scheduled(run(Request(0.0, 2, 2), Request(3.0, 2, 2), **settings)) == [3.0, 3.0]
        assert scheduled(run(Request(0.0, 2, 4), Request(3.5, 2, 2), Request(4.0, 2, 2), **settings)) == [3.0, 7.0, 7.0]

    def test_the_earliest_member_sets_the_wait(self) -> None:
        settings = {"policy": "static", "max_num_seqs": 3, "batch_wait_s": 3.0}
        assert scheduled(run(Request(0.0, 2, 2), Request(1.0, 2, 2), **settings)) == [3.0, 3.0]
        urgent = Request(1.0, 2, 2, priority=-1)
        assert scheduled(run(Request(0.0, 2, 2), urgent, **settings)) == [3.0, 3.0]

    def test_a_finished_member_leaves_but_keeps_its_slot_and_memory(self) -> None:
        """The first is delivered at 1; the third waits until 3, when the second is done."""
        requests = [Request(0.0, 1, 1), Request(0.0, 1, 3), Request(0.0, 1, 1)]
        outcome = run(*requests, policy="static", max_num_seqs=2)
        assert [row.finish_s for row in outcome.requests] == [1.0, 3.0, 4.0]
        assert scheduled(outcome) == [0.0, 0.0, 3.0]
        assert column(outcome, "R") == [2, 1, 1, 1]
        assert column(outcome, "running") == [2, 2, 2, 1]
        assert column(outcome, "kv_held_at_start") == [0, 2, 3, 0]
        assert column(outcome, "limited_by") == ["max_num_seqs"] * 3 + ["none"]

    def test_a_finished_member_is_not_outstanding(self) -> None:
        requests = [Request(0.0, 1, 1), Request(0.0, 1, 3), Request(0.0, 1, 1), Request(0.5, 1, 1), Request(1.5, 1, 1)]
        outcome = run(*requests, policy="static", max_num_seqs=2, max_outstanding=3)
        assert [row.state for row in outcome.requests] == ["completed"] * 3 + ["rejected", "completed"]

    def test_group_is_complete_when_the_next_does_not_fit(self) -> None:
        """The first starts at once, because 4 + 8 don't fit into 10; nobody follows the second, so it waits."""
        settings = {"policy": "static", "kv_capacity_tokens": 10, "batch_wait_s": 5.0}
        assert scheduled(run(Request(0.0, 4, 1), Request(0.0, 8, 1), **settings)) == [0.0, 5.0]

    def test_prefill_ignores_the_token_budget(self) -> None:
        outcome = run(Request(0.0, 10, 1), Request(0.0, 10, 1), policy="static", max_num_batched_tokens=2)
        assert column(outcome, "T") == [20]

    def test_group_without_unfinished_members_ends_at_that_instant(self) -> None:
        """At 2 the finished member still holds 4 and the other 6 of 10; it restarts alone, with 7 tokens."""
        outcome = run(Request(0.0, 4, 1), Request(0.0, 5, 4), policy="static", kv_capacity_tokens=10, max_num_seqs=2)
        assert outcome.requests[1].token_times == [1.0, 2.0, 3.0, 4.0]
        assert outcome.requests[1].preemptions == 1
        assert column(outcome, "T") == [9, 1, 7, 1]
        assert column(outcome, "kv_held_at_start") == [0, 9, 0, 7]

    def test_preempted_member_waits_for_the_next_group(self) -> None:
        """At 3 both hold 5 of 10: the second leaves the group, the first ends at 6."""
        outcome = run(Request(0.0, 3, 6), Request(0.0, 3, 6), policy="static", kv_capacity_tokens=10)
        assert outcome.requests[1].token_times == [1.0, 2.0, 3.0, 7.0, 8.0, 9.0]
        assert column(outcome, "limited_by")[3:6] == ["kv", "kv", "kv"]

    def test_watermark_ignored_for_the_first_member_only(self) -> None:
        settings = {"policy": "static", "kv_capacity_tokens": 16, "watermark": 0.25}
        assert scheduled(run(Request(0.0, 14, 1), Request(0.0, 1, 1), **settings)) == [0.0, 1.0]

    def test_member_past_its_deadline_is_treated_like_a_finished_one(self) -> None:
        """The group runs from 2. The first is late at 3.5, leaves at 4, its slot stays taken until 5."""
        requests = [Request(0.0, 1, 10), Request(2.0, 1, 3), Request(3.25, 1, 1)]
        outcome = run(*requests, policy="static", max_num_seqs=2, batch_wait_s=5.0, timeout_s=3.5)
        assert ends(outcome)[0] == ("timed_out", "timeout", 4.0)
        assert ends(outcome)[1] == ("completed", None, 5.0)
        assert column(outcome, "R") == [2, 2, 1]
        assert column(outcome, "running") == [2, 2, 2]
        assert ends(outcome)[2] == ("timed_out", "timeout", 6.75)  # alone in its group, it waited for company
