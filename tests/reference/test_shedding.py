"""The reference's early refusals, worked by hand. Steps last 1 s and take 8 tokens: 8 tokens a second at first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference.examples import run
from tests.reference.model import Request


def shed(longest_s: float, *requests: Request, **settings: Any) -> list[str | None]:
    settings = {"max_num_batched_tokens": 8, "shed_ttft_s": longest_s} | settings
    return [row.reason for row in run(*requests, **settings).requests]


def predicted(*requests: Request, **settings: Any) -> float:
    """What is predicted for the last request, by halving; for those before it, it must be less."""
    low, high = 0.0, 1024.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if shed(middle, *requests, **settings)[-1] == "shed" else (low, middle)
    return high


class TestTokensAhead:
    def test_own_prompt_less_its_prefix(self) -> None:
        """16 tokens at 8 a second are 2 s, which isn't above 2; 17 are."""
        assert shed(2.0, Request(0.0, 18, 1, 2)) == [None]
        assert shed(2.0, Request(0.0, 18, 1, 1)) == ["shed"]

    def test_what_the_step_in_progress_reads_is_read(self) -> None:
        """24 - 8 + 8 at 8 a second."""
        assert shed(3.0, Request(0.0, 24, 1), Request(0.5, 8, 1)) == [None, None]
        assert shed(3.0, Request(0.0, 24, 1), Request(0.5, 9, 1)) == [None, "shed"]

    def test_at_a_boundary_nothing_is_in_progress(self) -> None:
        """At 1: 16 left, and 8."""
        assert shed(3.0, Request(0.0, 24, 1), Request(1.0, 8, 1)) == [None, None]
        assert shed(3.0, Request(0.0, 24, 1), Request(1.0, 9, 1)) == [None, "shed"]

    def test_waiting_requests_of_one_instant(self) -> None:
        """Nothing has started: 8, 16, 24 tokens; the one that is refused is not in the way of the next."""
        requests = [Request(0.0, 8, 1), Request(0.0, 8, 1), Request(0.0, 8, 1), Request(0.0, 1, 1)]
        assert shed(2.5, *requests) == [None, None, "shed", None]

    def test_less_urgent_classes_don_t_count(self) -> None:
        requests = [Request(0.0, 16, 1, priority=1), Request(0.0, 8, 1, priority=0), Request(0.0, 8, 1, priority=1)]
        assert shed(2.0, *requests) == [None, None, "shed"]
        assert shed(4.0, *requests) == [None, None, None]

    def test_a_running_class_counts_by_the_same_rule(self) -> None:
        """24 tokens of class 1 are being read at 0.5: nothing to class 0, 16 to class 1."""
        for priority, last in ((0, None), (1, "shed")):
            assert shed(2.0, Request(0.0, 16, 1, priority=1), Request(0.5, 16, 1, priority=priority))[1] == last

    def test_a_victim_reads_its_tokens_again(self) -> None:
        """The second is preempted at 3 with 3 tokens out and waits with 6; at 3.5 that makes 6 + 1 at 6 a second."""
        requests = [Request(0.0, 3, 6), Request(0.0, 3, 6), Request(3.5, 1, 1)]
        settings = {"kv_capacity_tokens": 10, "max_num_batched_tokens": 8}
        # Read so far: 6 in the first second; the step from 3 on, in which the victim waits, isn't over.
        assert predicted(*requests, **settings) == pytest.approx(7 / 6)

    def test_after_the_caps(self) -> None:
        requests = [Request(0.0, 8, 9), Request(0.5, 99, 1), Request(0.5, 9, 1)]
        assert shed(1.0, *requests, kv_capacity_tokens=50, max_outstanding=1) == [None, "too_long", "queue_full"]


class TestRate:
    def test_first_from_one_full_chunk(self) -> None:
        """D = 1 + 0.5 + 36/8 = 6 for 8 tokens: 8 take 6 s. The KV coefficient has nothing to read."""
        assert predicted(Request(0.0, 8, 1), seq_s=0.5, prefill_pair_s=0.125, kv_token_s=9.0) == pytest.approx(6.0)

    def test_steps_that_only_decode_are_left_out(self) -> None:
        """4 tokens in the only second in which anything was read."""
        assert predicted(Request(0.0, 4, 20), Request(5.5, 8, 1)) == pytest.approx(2.0)

    def test_steps_in_which_somebody_waits_count(self) -> None:
        """4 tokens in 3 s; 4 of the one that waits, 4 of its own."""
        requests = [Request(0.0, 4, 20), Request(0.5, 4, 1), Request(3.5, 4, 1)]
        assert predicted(*requests, max_num_seqs=1) == pytest.approx(6.0)

    @pytest.mark.parametrize(("at", "expected"), [(10.75, 2.0), (11.0, 1.0)])
    def test_window(self, at: float, expected: float) -> None:
        """The step that ended at 1 has just left the ten seconds at 11; then the first rate holds again."""
        assert predicted(Request(0.0, 4, 20), Request(at, 8, 1)) == pytest.approx(expected)

    def test_nothing_read_in_the_window(self) -> None:
        """From 1 to 15 somebody waited and nothing was read: the first rate, for 4 + 4 tokens."""
        requests = [Request(0.0, 4, 30), Request(0.5, 4, 1), Request(15.0, 4, 1)]
        assert predicted(*requests, max_num_seqs=1) == pytest.approx(1.0)

    def test_a_step_in_progress_doesn_t_count(self) -> None:
        """4 tokens in the first second; from 1 on 8 are read, which at 1.5 is neither ahead nor in the rate."""
        assert predicted(Request(0.0, 4, 1), Request(0.5, 8, 1), Request(1.5, 4, 1)) == pytest.approx(1.0)
