"""The reference's CoDel and adaptive LIFO, worked by hand: steps of 1 s, one place, answers of one token."""

from __future__ import annotations

import pytest

from tests.reference.disciplines import CodelState
from tests.reference.draws import Draws
from tests.reference.examples import column, run, scheduled
from tests.reference.model import AdaptiveLifo, Codel, Request, Setup


class TestCodel:
    def test_drops_come_faster_and_faster(self) -> None:
        """Waits reach 1 at 1, so the first drop is at 3; then at 3 + 2, then 1.41, 1.15, 1 and 0.89 later."""
        requests = [Request(0.0, 1, 1) for _ in range(15)]
        outcome = run(*requests, max_num_seqs=1, discipline=Codel(1.0, 2.0))
        dropped = [(row.request, row.left_s) for row in outcome.requests if row.reason == "codel"]
        assert dropped == [(3, 3.0), (6, 5.0), (9, 7.0), (11, 8.0), (13, 9.0)]
        assert [at for at in scheduled(outcome) if at is not None] == [float(t) for t in range(10)]

    def test_a_short_wait_starts_anew(self) -> None:
        """At 2 nobody has waited long, so the one that waited from 2.5 to 4 is the first of a new interval."""
        requests = [Request(0.0, 1, 2), Request(0.0, 1, 1), Request(2.5, 1, 1), Request(2.5, 1, 1), Request(2.5, 1, 1)]
        outcome = run(*requests, max_num_seqs=1, discipline=Codel(1.0, 1.5))
        # 2: waited 2, until 3.5 nothing; 3: waited 0.5; 4: waited 1.5, until 5.5 nothing.
        assert [row.reason for row in outcome.requests] == [None] * 5

    def test_returning_soon_goes_on_nearly_where_it_stopped(self) -> None:
        """Drops at 8, 16, 22, 27, then due at 30.28. Short at 28; back at 37, within 8 of 30.28: count 4 - 2."""
        state = CodelState(Codel(1.0, 8.0))
        dropped = [t for t in range(28) if state.drops(t - 1.0, t)]
        assert (dropped, state.count, round(state.drop_next, 2)) == ([8, 16, 22, 27], 4, 30.28)
        assert not state.drops(27.5, 28)
        again = [t for t in range(29, 44) if state.drops(t - 1.0, t)]
        assert again == [37, 43]  # 37 + 8 / sqrt(2) = 42.66

    def test_returning_late_starts_over(self) -> None:
        """As above, but back at 39, 8.7 after 30.28: the next drop is a whole interval later."""
        state = CodelState(Codel(1.0, 8.0))
        for t in range(28):
            state.drops(t - 1.0, t)
        assert not any(state.drops(t - 0.5, t) for t in (28, 29, 30))
        assert [t for t in range(31, 48) if state.drops(t - 1.0, t)] == [39, 47]

    def test_who_was_preempted_is_not_asked(self) -> None:
        """The third waits 0.75 at 1, so from 1.5 on drops are in order; the victim of 3 returns at 6 all the same."""
        requests = [Request(0.0, 3, 6), Request(0.0, 3, 6), Request(0.25, 1, 1)]
        outcome = run(*requests, kv_capacity_tokens=10, discipline=Codel(0.5, 0.5))
        assert [row.state for row in outcome.requests] == ["completed"] * 3
        assert outcome.requests[1].preemptions == 1
        assert outcome.requests[1].token_times[-1] == 9.0

    def test_only_who_would_be_admitted_is_asked(self) -> None:
        """Nobody fits before 5, so nobody is asked, however long they wait; the interval begins at 5 and ends at 7."""
        requests = [Request(0.0, 3, 5), Request(0.0, 6, 2), Request(0.0, 1, 1)]
        outcome = run(*requests, kv_capacity_tokens=8, kv_policy="reserve", discipline=Codel(1.0, 2.0))
        assert scheduled(outcome) == [0.0, 5.0, None]
        assert (outcome.requests[2].reason, outcome.requests[2].left_s) == ("codel", 7.0)

    def test_an_ignored_client_s_request_is_late_all_the_same(self) -> None:
        """At 3 the fourth is dropped, but its client had gone at 2.5."""
        requests = [Request(0.0, 1, 1) for _ in range(5)]
        settings = {"max_num_seqs": 1, "discipline": Codel(1.0, 2.0), "on_timeout": "ignore"}
        row = run(*requests, timeout_s=2.5, **settings).requests[3]
        assert (row.state, row.reason, row.scheduled_s, row.left_s) == ("timed_out", "timeout", None, 3.0)
        row = run(*requests, timeout_s=3.5, **settings).requests[3]
        assert (row.state, row.reason, row.left_s) == ("rejected", "codel", 3.0)

    def test_arrivals_of_the_instant_still_find_the_dropped(self) -> None:
        """Of four at 0 one is left at 3. With three newcomers that makes four again; only then it's dropped."""
        requests = [*(Request(0.0, 1, 1) for _ in range(4)), *(Request(3.0, 1, 1) for _ in range(4))]
        outcome = run(*requests, max_num_seqs=1, max_outstanding=4, discipline=Codel(1.0, 2.0))
        assert [row.reason for row in outcome.requests[:4]] == [None, None, None, "codel"]
        assert [row.reason for row in outcome.requests[4:]] == [None, None, None, "queue_full"]

    def test_a_drop_is_noticed_at_a_later_point(self) -> None:
        """Dropped at 3, which is a point; noticed at 3.25. The retry, with no wait, is served at 5."""
        requests = [Request(0.0, 1, 1) for _ in range(5)]
        outcome = run(
            *requests,
            max_num_seqs=1,
            discipline=Codel(1.0, 2.0),
            max_retries=1,
            backoff_s=4.0,
            draws=Draws(backoff=lambda attempt, request: 0.0),
        )
        assert [(row.arrival_s, row.reason) for row in outcome.requests if row.request == 3] == [
            (0.0, "codel"),
            (3.25, None),
        ]

    def test_prompts_first_decodes_when_all_are_dropped(self) -> None:
        """At 3 the only one that waits is dropped, so the running one gets its token."""
        requests = [Request(0.0, 1, 9), *(Request(t - 0.75, 1, 1) for t in (1.0, 2.0, 3.0))]
        outcome = run(*requests, policy="prefill_first", discipline=Codel(0.5, 1.0))
        # Asked at 1 (0.75 s), 2 (0.75 s, at the end of the interval: dropped), 3 (due at 3: dropped).
        assert [row.reason for row in outcome.requests] == [None, None, "codel", "codel"]
        assert column(outcome, "n_decode")[:5] == [0, 0, 1, 1, 1]


class TestAdaptiveLifo:
    def test_turns_when_the_oldest_has_waited_long_enough(self) -> None:
        """In order at 0 and 1; at 2 the newest first."""
        requests = [*(Request(0.0, 1, 1) for _ in range(4)), Request(1.5, 1, 1)]
        assert scheduled(run(*requests, max_num_seqs=1, discipline=AdaptiveLifo(2.0))) == [0.0, 1.0, 4.0, 3.0, 2.0]

    def test_turns_back_when_the_old_are_gone(self) -> None:
        """At 2 the newest, at 3 the old one, at 4 the two that came at 3.5 in order."""
        requests = [Request(0.0, 1, 2), Request(0.0, 1, 1), Request(1.5, 1, 1), Request(3.5, 1, 1), Request(3.5, 1, 1)]
        assert scheduled(run(*requests, max_num_seqs=1, discipline=AdaptiveLifo(2.0))) == [0.0, 3.0, 2.0, 4.0, 5.0]

    def test_classes_keep_their_order(self) -> None:
        """Class 1 is old at 2, class 0 isn't, but goes first, in order."""
        requests = [Request(0.0, 1, 2), Request(0.0, 1, 1, priority=1), Request(0.5, 1, 1, priority=1)]
        requests += [Request(1.0, 1, 1), Request(1.5, 1, 1)]
        assert scheduled(run(*requests, max_num_seqs=1, discipline=AdaptiveLifo(2.0))) == [0.0, 5.0, 4.0, 2.0, 3.0]

    def test_who_was_preempted_goes_first(self) -> None:
        """The second returns at 6 with 6 tokens; of the two that wait since 0.5 and 1, the newer fits beside it."""
        requests = [Request(0.0, 3, 6), Request(0.0, 3, 6), Request(0.5, 3, 1), Request(1.0, 3, 1)]
        outcome = run(*requests, kv_capacity_tokens=10, discipline=AdaptiveLifo(1.0))
        assert outcome.requests[1].token_times == [1.0, 2.0, 3.0, 7.0, 8.0, 9.0]
        assert scheduled(outcome) == [0.0, 0.0, 7.0, 6.0]

    def test_a_newest_that_doesn_t_fit_stops_the_admission(self) -> None:
        """At 1 the older one would fit, the newer one doesn't: both wait until 5."""
        requests = [Request(0.0, 3, 5), Request(0.5, 1, 2), Request(0.75, 4, 4)]
        outcome = run(*requests, kv_capacity_tokens=12, kv_policy="reserve", discipline=AdaptiveLifo(0.0))
        assert scheduled(outcome) == [0.0, 5.0, 5.0]
        assert column(outcome, "limited_by")[:3] == ["none", "kv", "kv"]


@pytest.mark.parametrize("discipline", [Codel(1.0, 2.0), AdaptiveLifo(1.0)])
def test_not_for_static_groups(discipline: Codel | AdaptiveLifo) -> None:
    with pytest.raises(ValueError, match=r"^discipline:"):
        Setup(base=[1.0], policy="static", discipline=discipline)
