"""What two pools can complete: by hand, against long overloaded runs, and what it depends on."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from engine.machine import replica_model
from engine.scenario import Scenario
from engine.study import capacity_rps, pool_rates, remember_capacity, simulate
from tests.study.mixes import PROFILE, one_class

pytestmark = pytest.mark.usefixtures("nothing_remembered")


def scenario(prompt: Any, output: Any, profile: dict[str, float] | None = None, **batching: Any) -> Scenario:
    return one_class(prompt, output, profile, policy="disaggregated", **batching)


def rates(s: Scenario) -> tuple[float, float]:
    found = pool_rates(s, replica_model(s))
    assert found is not None
    return found.reads_rps, found.writes_rps


class TestByHand:
    @pytest.mark.parametrize(("budget", "at_once"), [(1000, 10), (1050, 10), (64, 1)])
    def test_whole_prompts_within_the_budget(self, budget: int, at_once: int) -> None:
        """Prompts of 100 in steps of half a second; one that exceeds the budget is read alone."""
        s = scenario(100, 8, {"overhead_s": 0.5}, max_num_seqs=32, max_num_batched_tokens=budget)
        assert rates(s)[0] == pytest.approx(at_once / 0.5)

    def test_no_more_prompts_than_seats(self) -> None:
        s = scenario(100, 8, {"overhead_s": 0.5}, max_num_seqs=3, max_num_batched_tokens=1000)
        assert rates(s)[0] == pytest.approx(3 / 0.5)

    @pytest.mark.parametrize(("seats", "output"), [(1, 2), (1, 8), (4, 2), (4, 9)])
    def test_every_seat_writes_all_but_first_tokens(self, seats: int, output: int) -> None:
        s = scenario(10, output, {"overhead_s": 0.5}, max_num_seqs=seats)
        assert rates(s)[1] == pytest.approx(seats / ((output - 1) * 0.5), rel=0.02)

    def test_memory_holds_whole_answers(self) -> None:
        """Of 250 tokens of KV two requests of 120 are set aside at a time, whatever ``kv_policy``."""
        s = scenario(100, 20, {"overhead_s": 0.5}, kv_capacity_tokens=250, max_num_seqs=8)
        assert rates(s)[1] == pytest.approx(2 / (19 * 0.5), rel=0.02)

    def test_one_seat_reads_its_context(self) -> None:
        """Seven steps of one token each, which read 100, 101, ... tokens of context."""
        s = scenario(100, 8, PROFILE | {"kv_token_s": 1e-4}, max_num_seqs=1)
        assert rates(s)[1] == pytest.approx(1 / (7 * 0.012 + sum(range(100, 107)) * 1e-4), rel=0.02)

    def test_answers_of_one_token_need_no_writers(self) -> None:
        s = scenario(10, 1, {"overhead_s": 0.5}, max_num_seqs=4)
        assert rates(s) == (pytest.approx(4 / 0.5), inf)
        assert capacity_rps(s, replica_model(s)) == pytest.approx(8 / 2)

    def test_nothing_fits(self) -> None:
        s = scenario(100, 20, kv_capacity_tokens=110)
        assert pool_rates(s, replica_model(s)) is None
        assert capacity_rps(s, replica_model(s)) is None

    def test_other_policies_have_no_pools(self) -> None:
        s = scenario(100, 20).replace({"batching.policy": "chunked"})
        assert pool_rates(s, replica_model(s)) is None


@pytest.mark.parametrize(("readers", "writers"), [(1, 1), (3, 1), (1, 4), (2, 5)])
def test_the_smaller_pool_decides_and_all_replicas_share(readers: int, writers: int) -> None:
    pools = {"prefill_replicas": readers, "decode_replicas": writers}
    s = scenario(100, 8, {"overhead_s": 0.5}, max_num_seqs=2, disaggregated=pools)
    reads, writes = rates(s)
    fleet = min(readers * reads, writers * writes)
    assert capacity_rps(s, replica_model(s)) == pytest.approx(fleet / (readers + writers))
    assert s.replicas == readers + writers


@pytest.mark.parametrize(
    ("readers", "prompt", "output", "batching"),
    [
        (1, 2000.0, 40.0, {"max_num_seqs": 64}),
        (2, 300.0, 200.0, {"max_num_seqs": 16}),
        (2, 300.0, 200.0, {"kv_capacity_tokens": 16_000}),
        (2, 300.0, 200.0, {"kv_capacity_tokens": 16_000, "reserve_output_tokens": 600}),
    ],
)
def test_what_an_overloaded_fleet_completes(readers: int, prompt: float, output: float, batching: Any) -> None:
    """Half as much again as it can do, for long enough to fill up; within 3 %."""
    s = scenario(prompt, output, disaggregated={"prefill_replicas": readers}, **batching)
    capacity = capacity_rps(s, replica_model(s))
    assert capacity is not None
    run = {"horizon_s": 1200 / capacity, "warmup_s": 400 / capacity, "seeds": 4, "seed": 1}
    result = simulate(s.replace({"traffic.rate_rps": 1.5 * capacity * s.replicas, "run": run}))
    assert result.throughput["requests_per_s"] == pytest.approx(capacity * s.replicas, rel=0.03)
    assert result.pools_rps is not None
    limiting = 0 if readers * result.pools_rps[0] < result.pools_rps[1] else 1
    assert result.pools is not None
    assert result.pools[limiting].usage.utilization == pytest.approx(1.0, abs=0.01)


def test_a_pool_is_measured_once_for_every_split() -> None:
    s = scenario(100, 8, {"overhead_s": 0.5}, max_num_seqs=2)
    model, found = replica_model(s), pool_rates(s, replica_model(s))
    more = s.replace({"batching.disaggregated": {"prefill_replicas": 7, "transfer_gbps": 1.0}})
    assert pool_rates(more, model) is found
    remember_capacity(more, 123.0)
    assert capacity_rps(more, model) == 123.0
    assert capacity_rps(s, model) != 123.0


def test_a_result_says_what_its_pools_can_do() -> None:
    s = scenario(100, 8, {"overhead_s": 0.5}, max_num_seqs=2).replace({"run.seeds": 1, "run.horizon_s": 100.0})
    result = simulate(s)
    pools: Any = result.summary()["pools"]
    assert (pools["prefill"]["capacity_rps"], pools["decode"]["capacity_rps"]) == result.pools_rps == rates(s)
    assert result.cost.per_hour is not None
    one = simulate(s.replace({"batching.policy": "chunked", "fleet.replicas": 1}))
    assert result.cost.per_hour == pytest.approx(2 * (one.cost.per_hour or 0.0)), "both pools are paid for"
