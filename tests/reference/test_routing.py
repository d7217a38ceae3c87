"""The reference's routers, worked by hand. Every step lasts 1 s; a replica serves one request at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference.draws import Draws
from tests.reference.examples import replicas, run
from tests.reference.model import Outcome, Request

LIVE = {"report_interval_s": 0.0}


def routed(*requests: Request, **settings: Any) -> Outcome:
    return run(*requests, **({"max_num_seqs": 1, "replicas": 3} | settings))


def shorts(*times: float, output: int = 1) -> list[Request]:
    return [Request(at, 1, output) for at in times]


class TestRandom:
    def test_floor_of_u_times_n(self) -> None:
        luck = [0.0, 0.25, 0.375, 0.5, 0.96875]
        outcome = routed(*shorts(0, 1, 2, 3, 4), routing="random", draws=Draws(router=luck.__getitem__))
        assert replicas(outcome) == [0, 0, 1, 1, 2]

    def test_who_is_refused_at_the_gateway_uses_no_luck(self) -> None:
        luck = [0.0, 0.75]
        outcome = routed(
            *shorts(0, 0, 1), routing="random", rate_limit=(1.0, 1), draws=Draws(router=luck.__getitem__)
        )  # fmt: skip
        assert replicas(outcome) == [0, None, 2]


class TestLeastOutstanding:
    def test_live_counts_running_and_waiting(self) -> None:
        """At 0 one each, then the lowest again; the third leaves at 2, so its replica is free for the last."""
        requests = [Request(0.0, 1, 9), Request(0.0, 1, 9), Request(0.0, 1, 2), Request(0.0, 1, 9), Request(2.0, 1, 1)]
        outcome = routed(*requests, routing="least_outstanding", **LIVE)
        assert replicas(outcome) == [0, 1, 2, 0, 2]

    def test_departures_of_the_instant_have_left_the_report(self) -> None:
        """Reports at 0, 2, 4. The second leaves at 2, so the report of 2 says 1 and 0; the third is added to that."""
        requests = [Request(0.0, 1, 9), Request(0.0, 1, 2), Request(2.0, 1, 1), Request(3.0, 1, 1)]
        outcome = routed(*requests, replicas=2, routing="least_outstanding", report_interval_s=2.0)
        assert replicas(outcome) == [0, 1, 1, 0]

    def test_without_its_own_sends_everybody_goes_to_the_same(self) -> None:
        outcome = routed(*shorts(0, 1, 2, 3), routing="least_outstanding", report_interval_s=4.0, count_own_sends=False)
        assert replicas(outcome) == [0, 0, 0, 0]

    def test_with_its_own_sends_they_are_spread(self) -> None:
        """They count until the next report, at 4, which says that everybody has left."""
        outcome = routed(*shorts(0, 1, 2, 3, 4), routing="least_outstanding", report_interval_s=4.0)
        assert replicas(outcome) == [0, 1, 2, 0, 0]

    def test_a_refused_request_counts_as_sent(self) -> None:
        outcome = routed(
            Request(0.0, 20, 1), *shorts(0.0), routing="least_outstanding", report_interval_s=4.0, kv_capacity_tokens=9
        )
        assert [row.reason for row in outcome.requests] == ["too_long", None]
        assert replicas(outcome) == [0, 1]

    def test_live_reports_are_one_an_instant(self) -> None:
        """At 0 the second sees the first as the router's own send, though it was refused; at 0.5 it sees what is there.

        Without own sends all of one instant go where the report points.
        """
        requests = [Request(0.0, 20, 1), *shorts(0.0, 0.0, 0.5, output=9)]
        settings = {"routing": "least_outstanding", "kv_capacity_tokens": 10, "replicas": 2, **LIVE}
        assert replicas(routed(*requests, **settings)) == [0, 1, 0, 0]
        assert replicas(routed(*requests, **settings, count_own_sends=False)) == [0, 0, 0, 1]

    def test_a_finished_member_of_a_static_group_is_not_outstanding(self) -> None:
        """Two each at 0. At 1 the short one of the second group is done, so the second replica has the least."""
        requests = [Request(0.0, 1, 9, replica=0), Request(0.0, 1, 9, replica=0)]
        requests += [Request(0.0, 1, 9, replica=1), Request(0.0, 1, 1, replica=1), Request(1.0, 1, 1)]
        outcome = routed(*requests, replicas=2, max_num_seqs=2, policy="static", routing="least_outstanding", **LIVE)
        assert replicas(outcome)[-1] == 1


class TestTies:
    @pytest.mark.parametrize(("ties", "expected"), [("lowest", [0, 0, 0, 0]), ("rotate", [0, 1, 2, 0])])
    def test_idle_fleet(self, ties: str, expected: list[int]) -> None:
        assert replicas(routed(*shorts(0, 2, 4, 6), routing="least_outstanding", ties=ties, **LIVE)) == expected

    def test_rotation_goes_on_after_whoever_was_chosen_last(self) -> None:
        """0 and 1 are busy at 0.5, so 2 is chosen without a tie; at 10 all are idle, and 0 is next; then 1."""
        requests = [*shorts(0, 0, output=4), *shorts(0.5, 10, 12)]
        assert replicas(routed(*requests, routing="least_outstanding", ties="rotate", **LIVE)) == [0, 1, 2, 0, 1]

    def test_rotation_between_two_that_were_drawn(self) -> None:
        """Drawn 0 and 2, then 2 and 0 (after 0: 2 is first), then 1 and 0 (after 2: 0 is first)."""
        luck = [0.0, 0.5, 0.75, 0.0, 0.5, 0.0]
        outcome = routed(
            *shorts(0, 2, 4), routing="power_of_two", ties="rotate", draws=Draws(router=luck.__getitem__), **LIVE
        )
        assert replicas(outcome) == [0, 2, 0]


class TestPowerOfTwo:
    def test_the_better_of_two(self) -> None:
        """Drawn (0, 1): tie, 0. (1, 0): 0 has one, so 1. (1, 2): 1 has one, so 2. (2, 1): tie, 1."""
        luck = [0.0, 0.0, 0.5, 0.0, 0.5, 0.5, 0.75, 0.5]
        requests = shorts(0, 0, 0, 0, output=9)
        outcome = routed(*requests, routing="power_of_two", draws=Draws(router=luck.__getitem__), **LIVE)
        assert replicas(outcome) == [0, 1, 2, 1]

    def test_a_single_replica_uses_luck_all_the_same(self) -> None:
        used = []

        def luck(i: int) -> float:
            used.append(i)
            return 0.5

        routed(*shorts(0, 1), replicas=1, routing="power_of_two", draws=Draws(router=luck), **LIVE)
        assert used == [0, 1, 2, 3]


class TestLeastKv:
    def test_a_step_s_tokens_are_held_from_its_end_on(self) -> None:
        """At 0.5 nobody holds anything yet; at 1 the first holds its prompt less the prefix, 5."""
        requests = [Request(0.0, 8, 9, 3), *shorts(0.5, 1.0)]
        outcome = routed(*requests, replicas=2, routing="least_kv", **LIVE)
        assert replicas(outcome) == [0, 0, 1]

    def test_own_sends_weigh_their_prompts_less_the_prefix(self) -> None:
        """5 on the first, then 7 on the second; the next two make 7 on the first; then the lowest index decides."""
        requests = [Request(0.0, 8, 9, 3), Request(0.0, 7, 9), *shorts(0.5, 0.5, 0.5)]
        outcome = routed(*requests, replicas=2, routing="least_kv", report_interval_s=4.0)
        assert replicas(outcome) == [0, 1, 0, 0, 0]

    def test_a_static_group_holds_everything_until_it_ends(self) -> None:
        """At 2 the long member (1 + 1 held) keeps the finished one's 6; at 4 nobody holds anything."""
        requests = [Request(0.0, 6, 1, replica=0), Request(0.0, 1, 4, replica=0), Request(0.0, 5, 9, replica=1)]
        requests += shorts(2.0, 4.0)
        outcome = routed(*requests, replicas=2, max_num_seqs=2, policy="static", routing="least_kv", **LIVE)
        assert replicas(outcome)[3:] == [1, 0]


class TestRoutable:
    OPEN = ([(0.0, 2.0), (6.0, 8.0)], [(1.0, 4.0)], [])

    def test_no_replica(self) -> None:
        """From 0 to 1 only the first, then both, then the second, from 4 nobody, at 6 the first again."""
        requests = shorts(0, 0, 1, 2, 4, 6)
        outcome = routed(*requests, routable=self.OPEN)
        assert replicas(outcome) == [0, 0, 0, 1, None, 0]
        assert [row.reason for row in outcome.requests] == [None, None, None, None, "no_replica", None]

    def test_nobody_s_turn_is_taken_nor_luck_used_without_a_replica(self) -> None:
        """Round robin: turns 0, 1 among [0], turn 2 among [0, 1] is 0, turn 3 among [0, 1] is 1."""
        assert replicas(routed(*shorts(0, 0, 1, 1.5), routable=self.OPEN)) == [0, 0, 0, 1]
        luck = [0.5, 0.5]
        outcome = routed(*shorts(1, 5, 6), routing="random", routable=self.OPEN, draws=Draws(router=luck.__getitem__))
        assert replicas(outcome) == [1, None, 0]

    def test_who_is_there_already_is_served_to_its_end(self) -> None:
        outcome = routed(*shorts(1.5, 1.75, output=9), routable=self.OPEN)
        assert [row.finish_s for row in outcome.requests] == [10.5, 10.75]

    def test_a_token_is_spent_before_a_replica_is_looked_for(self) -> None:
        outcome = routed(*shorts(5, 6), routable=self.OPEN, rate_limit=(0.5, 1))
        assert [row.reason for row in outcome.requests] == ["no_replica", "rate_limited"]
