"""The reference's pipelines worked by hand. Unless a test says otherwise every pass lasts 1 s, half of it a stage."""

from __future__ import annotations

import pytest

from tests.reference.examples import column, run, scheduled
from tests.reference.model import Request


def test_alone_a_request_takes_as_long_as_without_a_pipeline() -> None:
    requests = [Request(0.0, 10, 4)]
    one, two = (run(*requests, max_num_batched_tokens=4, stages=stages) for stages in (1, 2))
    assert one.requests[0].token_times == two.requests[0].token_times == [3.0, 4.0, 5.0, 6.0]


def test_the_second_enters_when_the_first_stage_is_free() -> None:
    outcome = run(Request(0.0, 1, 3), Request(0.0, 1, 3), max_num_seqs=2, stages=2)
    assert [row.token_times for row in outcome.requests] == [[1.0, 2.0, 3.0], [1.5, 2.5, 3.5]]
    assert column(outcome, "lane") == [0, 1] * 3


def test_a_lane_admits_all_that_it_has_seats_for() -> None:
    """Five seats, two stages: at most three in a lane. The sixth waits for a seat in all."""
    outcome = run(*[Request(0.0, 1, 2)] * 6, max_num_seqs=5, stages=2)
    assert scheduled(outcome) == [0.0, 0.0, 0.0, 0.5, 0.5, 2.0]
    assert column(outcome, "limited_by")[:2] == ["max_num_seqs", "max_num_seqs"]


def test_a_newcomer_goes_to_the_empty_lane() -> None:
    outcome = run(Request(0.0, 1, 4), Request(1.0, 1, 2), stages=2)
    assert scheduled(outcome) == [0.0, 1.0]
    assert column(outcome, "lane") == [0, 1, 0, 1, 0, 0]
    assert outcome.requests[0].token_times == [1.0, 2.5, 3.5, 4.5]


def test_a_short_pass_does_not_overtake_a_long_one() -> None:
    """8 s for the prompt of 8, 1 s for the other's: it enters at 4, and leaves the second stage after the first."""
    outcome = run(
        Request(0.0, 8, 1), Request(0.0, 1, 2), base=float, max_num_seqs=2, max_num_batched_tokens=8, stages=2
    )
    assert outcome.requests[0].token_times == [8.0]
    assert outcome.requests[1].token_times == [8.5, 9.5]


def test_tokens_under_way_count_as_held() -> None:
    """At 0.5 the first writes 4 of 8: 4 more fit, 5 don't."""
    for prompt, start in ((4, 0.5), (5, 1.0)):
        outcome = run(Request(0.0, 4, 1), Request(0.0, prompt, 1), kv_capacity_tokens=8, max_num_seqs=2, stages=2)
        assert scheduled(outcome) == [0.0, start]


def test_victims_are_of_the_lane_that_starts() -> None:
    """When 9 are held it is the second's turn: it goes itself, and comes back when the first is done."""
    outcome = run(Request(0.0, 3, 6), Request(0.0, 3, 6), kv_capacity_tokens=9, max_num_seqs=2, stages=2)
    assert [row.preemptions for row in outcome.requests] == [0, 1]
    assert outcome.requests[0].token_times == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_late_ones_leave_between_steps_at_once() -> None:
    """The first's pass of 4 s lets the second wait from 3 on for its next turn: it leaves at its deadline."""
    requests = [Request(0.0, 1, 9), Request(0.25, 12, 9)]
    outcome = run(*requests, base=lambda tokens: 1.0 + (tokens > 9) * 7, max_num_seqs=2, timeout_s=4.0, stages=2,
                  max_num_batched_tokens=16)  # fmt: skip
    assert outcome.requests[0].left_s == pytest.approx(4.0)
    assert (outcome.requests[0].state, outcome.requests[1].state) == ("timed_out", "timed_out")
