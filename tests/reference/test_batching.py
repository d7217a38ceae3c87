"""The reference's steps, chunks and memory worked by hand. Unless a test says otherwise every step lasts 1 s."""

from __future__ import annotations

from tests.reference.examples import column, run, scheduled
from tests.reference.model import Request, Row


class TestStep:
    def test_lone_request(self) -> None:
        """Prefill 0.5 + 8/8, then two decodes of 0.5 + 1/8."""
        outcome = run(Request(2.0, 8, 3), base=lambda tokens: 0.5 + tokens / 8)
        row = outcome.requests[0]
        assert row == Row(0, 0, 2.0, 0, 0, 2.0, 3.5, 4.75, 4.75, "completed", None, 0, [3.5, 4.125, 4.75], 2.0)
        assert row.max_itl_s == 0.625
        assert outcome.horizon_s == 4.75

    def test_one_token_answer(self) -> None:
        outcome = run(Request(0.0, 8, 1))
        row = outcome.requests[0]
        assert (row.first_token_s, row.finish_s, row.max_itl_s) == (1.0, 1.0, None)
        assert (outcome.gaps, column(outcome, "n_decode")) == ([], [0])

    def test_every_coefficient(self) -> None:
        """Chunk of 4 after 2 cached: C = 2, A = 4*2 + 10. Decode: C = 6 + 1 - 1, A = 0."""
        outcome = run(Request(0.0, 6, 2, 2), seq_s=0.5, kv_token_s=0.25, prefill_pair_s=0.125)
        assert outcome.requests[0].token_times == [1 + 0.5 + 0.5 + 2.25, 4.25 + 1 + 0.5 + 1.5]
        assert [column(outcome, name) for name in "TRCA"] == [[4, 1], [1, 1], [2, 6], [18, 0]]

    def test_base_as_table(self) -> None:
        outcome = run(Request(0.0, 2, 2), base=[0.0, 0.25, 0.75])
        assert outcome.requests[0].token_times == [0.75, 1.0]

    def test_prefix_as_long_as_the_prompt_is_cut(self) -> None:
        """X = 4 of 5: one token to prefill, after four."""
        outcome = run(Request(0.0, 5, 1, cached_prefix_tokens=9))
        assert [column(outcome, name) for name in "TCA"] == [[1], [4], [5]]

    def test_arrival_at_a_boundary_joins_that_step(self) -> None:
        assert scheduled(run(Request(0.0, 1, 3), Request(1.0, 1, 1), Request(1.5, 1, 1))) == [0.0, 1.0, 2.0]

    def test_equal_arrivals_keep_the_order_of_the_list(self) -> None:
        outcome = run(Request(3.0, 1, 1), Request(0.0, 1, 1), Request(0.0, 1, 1), max_num_seqs=1)
        assert scheduled(outcome) == [3.0, 0.0, 1.0]
        assert [row.order for row in outcome.requests] == [2, 0, 1]

    def test_idle_replica_starts_at_the_next_arrival(self) -> None:
        assert column(run(Request(0.0, 1, 1), Request(7.25, 1, 1)), "start") == [0.0, 7.25]


class TestChunked:
    def test_long_prompt_in_chunks(self) -> None:
        outcome = run(Request(0.0, 10, 2), max_num_batched_tokens=4)
        assert outcome.requests[0].token_times == [3.0, 4.0]
        assert [column(outcome, name) for name in "TCA"] == [[4, 4, 2, 1], [0, 4, 8, 10], [10, 26, 19, 0]]
        assert column(outcome, "n_decode") == [0, 0, 0, 1]

    def test_decoding_comes_first_in_the_budget(self) -> None:
        """The second's 6 tokens: 2 beside a prompt of 2, 3 beside a decode, and the last one."""
        outcome = run(Request(0.0, 2, 5), Request(0.0, 6, 1), max_num_batched_tokens=4)
        assert column(outcome, "T") == [4, 4, 2, 1, 1]
        assert outcome.requests[0].token_times == [1.0, 2.0, 3.0, 4.0, 5.0]
        assert outcome.requests[1].token_times == [3.0]

    def test_one_request_at_a_time_is_partly_prefilled(self) -> None:
        """Prompts of 3, 9 and 1: the 9 go as 1, 3, 4, 1, and only then has the third a token of budget."""
        outcome = run(Request(0.0, 3, 2), Request(0.0, 9, 1), Request(0.0, 1, 1), max_num_batched_tokens=4)
        assert scheduled(outcome) == [0.0, 0.0, 3.0]
        assert column(outcome, "T") == [4, 4, 4, 2]
        assert column(outcome, "limited_by") == ["token_budget"] * 3 + ["none"]
        assert [row.first_token_s for row in outcome.requests] == [1.0, 4.0, 4.0]

    def test_max_num_seqs(self) -> None:
        outcome = run(Request(0.0, 1, 2), Request(0.0, 1, 1), max_num_seqs=1)
        assert scheduled(outcome) == [0.0, 2.0]
        assert column(outcome, "limited_by") == ["max_num_seqs", "max_num_seqs", "none"]

    def test_more_urgent_class_goes_first(self) -> None:
        outcome = run(Request(0.0, 1, 2), Request(0.25, 1, 1, priority=1), Request(0.5, 1, 1), max_num_seqs=1)
        assert scheduled(outcome) == [0.0, 3.0, 2.0]

    def test_urgent_newcomer_does_not_oust_a_running_one(self) -> None:
        outcome = run(Request(0.0, 1, 3, priority=9), Request(0.5, 1, 1), max_num_seqs=1)
        assert scheduled(outcome) == [0.0, 3.0]
        assert outcome.requests[0].preemptions == 0


class TestMemory:
    def test_the_first_that_does_not_fit_stops_the_admission(self) -> None:
        """6 + 6 is more than 10; the small third may not pass. From 3 on both fit."""
        outcome = run(Request(0.0, 6, 3), Request(0.0, 6, 1), Request(0.0, 1, 1), kv_capacity_tokens=10)
        assert scheduled(outcome) == [0.0, 3.0, 3.0]
        assert column(outcome, "limited_by") == ["kv", "kv", "kv", "none"]
        assert column(outcome, "kv_held_at_start") == [0, 6, 7, 0]

    def test_cached_prefix_takes_no_room(self) -> None:
        outcome = run(Request(0.0, 6, 1, 2), Request(0.0, 7, 1, 1), kv_capacity_tokens=10)
        assert scheduled(outcome) == [0.0, 0.0]

    def test_decoding_tokens_of_the_step_count(self) -> None:
        """At 1: 4 held, 1 to decode, 5 wanted: exactly 10. With 6 wanted it waits for the first to end."""
        assert scheduled(run(Request(0.0, 4, 3), Request(0.5, 5, 1), kv_capacity_tokens=10)) == [0.0, 1.0]
        assert scheduled(run(Request(0.0, 4, 3), Request(0.5, 6, 1), kv_capacity_tokens=10)) == [0.0, 3.0]

    def test_rest_of_a_partly_prefilled_prompt_is_not_reserved(self) -> None:
        """After the first chunk 4 + 5 fit into 10, so it is the budget that keeps the second out; then the KV."""
        outcome = run(Request(0.0, 8, 1), Request(0.0, 5, 1), max_num_batched_tokens=4, kv_capacity_tokens=10)
        assert column(outcome, "limited_by") == ["token_budget", "kv", "none", "none"]
        assert scheduled(outcome) == [0.0, 2.0]

    def test_the_last_admitted_is_preempted_and_prefills_again(self) -> None:
        """At 3 both hold 5 of 10. The second waits with 3 tokens out, and at 6 prefills 6 tokens, making its 4th."""
        outcome = run(Request(0.0, 3, 6), Request(0.0, 3, 6), kv_capacity_tokens=10)
        first, second = outcome.requests
        assert first.token_times == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        assert second.token_times == [1.0, 2.0, 3.0, 7.0, 8.0, 9.0]
        assert (second.preemptions, second.scheduled_s, second.first_token_s, second.max_itl_s) == (1, 0.0, 1.0, 4.0)
        assert column(outcome, "T") == [6, 2, 2, 1, 1, 1, 6, 1, 1]
        assert column(outcome, "C") == [0, 6, 8, 5, 6, 7, 0, 6, 7]
        assert column(outcome, "n_decode") == [0, 2, 2, 1, 1, 1, 1, 1, 1]
        assert column(outcome, "limited_by") == ["none"] * 3 + ["kv"] * 3 + ["none"] * 3

    def test_second_prefill_comes_in_chunks_too(self) -> None:
        """Preempted at 3 with 2 tokens out: 5 to prefill, as 4 and 1; only the second chunk makes a token."""
        outcome = run(Request(0.0, 3, 6), Request(0.0, 3, 6), kv_capacity_tokens=10, max_num_batched_tokens=4)
        assert outcome.requests[1].token_times == [2.0, 3.0, 8.0, 9.0, 10.0, 11.0]
        assert column(outcome, "T")[6:8] == [4, 1]
        assert column(outcome, "A")[6:8] == [10, 5]
        assert column(outcome, "n_decode")[6:8] == [0, 1]

    def test_the_least_urgent_is_preempted_even_if_admitted_first(self) -> None:
        """At 3 they hold 5 and 4 of 10: the first goes, although the second came later."""
        outcome = run(Request(0.0, 3, 6, priority=1), Request(0.5, 3, 6), kv_capacity_tokens=10)
        assert [row.preemptions for row in outcome.requests] == [1, 0]
        assert [row.finish_s for row in outcome.requests] == [10.0, 7.0]
        assert outcome.requests[0].token_times == [1.0, 2.0, 3.0, 8.0, 9.0, 10.0]

    def test_nobody_is_admitted_in_a_step_with_a_preemption(self) -> None:
        """The urgent third would fit at 3 (5 + 1 + 1), but waits until 4 because the second was preempted."""
        requests = [Request(0.0, 3, 6, priority=1), Request(0.0, 3, 6, priority=1), Request(2.5, 1, 1)]
        outcome = run(*requests, kv_capacity_tokens=10)
        assert scheduled(outcome) == [0.0, 0.0, 4.0]
        assert column(outcome, "limited_by")[3] == "kv"

    def test_partly_prefilled_request_can_be_the_victim(self) -> None:
        """At 2 they hold 3 and 5 of 11 and want 1 + 3 more. The second starts anew at 9, when the first is done."""
        outcome = run(Request(0.0, 2, 9), Request(0.0, 8, 1), kv_capacity_tokens=11, max_num_batched_tokens=4)
        assert column(outcome, "T") == [4, 4, 1, 1, 1, 1, 1, 1, 1, 4, 4]
        row = outcome.requests[1]
        assert (row.scheduled_s, row.first_token_s, row.preemptions) == (0.0, 11.0, 1)

    def test_two_victims_of_one_step_keep_their_order(self) -> None:
        """At 3 they hold 8, 2, 1, 1 of 12: the fourth goes, then the third. At 4 the third is again before it."""
        requests = [Request(0.0, 7, 3), Request(0.0, 1, 9), Request(0.0, 1, 2), Request(0.0, 1, 2)]
        outcome = run(*requests, kv_capacity_tokens=12, max_num_batched_tokens=4)
        assert [row.preemptions for row in outcome.requests] == [0, 0, 1, 1]
        assert [row.token_times for row in outcome.requests[2:]] == [[3.0, 5.0], [3.0, 6.0]]

    def test_reserve_sets_the_whole_answer_aside(self) -> None:
        """10 + 10 fill 20; the third waits for the end of the first. With on_demand it would have fitted at once."""
        requests = [Request(0.0, 4, 6), Request(0.0, 4, 7, 1), Request(0.0, 1, 1)]
        assert scheduled(run(*requests, kv_policy="reserve", kv_capacity_tokens=20)) == [0.0, 0.0, 6.0]
        assert scheduled(run(*requests, kv_policy="on_demand", kv_capacity_tokens=20)) == [0.0, 0.0, 0.0]

    def test_reserve_output_tokens(self) -> None:
        """R = 4 is set aside for everybody, and nobody gets more. 13 + 4 can never fit into 16, 12 + 4 can."""
        requests = [
            Request(0.0, 4, 9),
            Request(0.0, 4, 1),
            Request(0.0, 1, 1),
            Request(9.0, 13, 1),
            Request(9.0, 12, 30),
        ]
        outcome = run(*requests, kv_policy="reserve", kv_capacity_tokens=16, reserve_output_tokens=4)
        assert scheduled(outcome) == [0.0, 0.0, 1.0, None, 9.0]
        assert [row.finish_s for row in outcome.requests] == [4.0, 1.0, 2.0, None, 13.0]
        assert outcome.requests[3].reason == "too_long"

    def test_watermark(self) -> None:
        """A quarter of 16 stays free: 8 + 4 are admitted together, 8 + 5 aren't."""
        settings = {"kv_capacity_tokens": 16, "watermark": 0.25}
        assert scheduled(run(Request(0.0, 8, 1), Request(0.0, 4, 1), **settings)) == [0.0, 0.0]
        outcome = run(Request(0.0, 8, 1), Request(0.0, 5, 1), **settings)
        assert scheduled(outcome) == [0.0, 1.0]
        assert column(outcome, "limited_by") == ["kv", "none"]

    def test_watermark_is_ignored_for_the_first_and_for_decoding(self) -> None:
        """14 of 16 are admitted alone, and grow to 15 without preemption."""
        outcome = run(Request(0.0, 14, 2), Request(0.0, 1, 1), kv_capacity_tokens=16, watermark=0.25)
        assert scheduled(outcome) == [0.0, 2.0]
        assert outcome.requests[0].preemptions == 0
