"""Two pools: the engine equals the step-by-step reference, request by request and step by step, and by hand."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from engine.serving import Routing, fleet, run_fleet
from engine.traffic import ROUTER, stream
from tests.reference.coupled_scenarios import coupled_case
from tests.reference.draws import Draws
from tests.reference.invariants import check
from tests.reference.model import Request, Setup
from tests.reference.scenarios import random_case
from tests.reference.simulator import simulate
from tests.serving.compare import assert_equal, fleet_of, requests_of, run_engine

EXTRAS = (
    "classes", "deadlines", "ignore", "max_outstanding", "max_queued_tokens", "rate_limit", "reserve_output", "table",
    "watermark",
)  # fmt: skip
CASES = 120


def features(seed: int) -> set[str]:
    """Each extra in a quarter of the cases, deadlines in half of them."""
    rng = random.Random(f"two pools {seed}")
    return {"disaggregated", *(extra for extra in EXTRAS if rng.random() < (0.5 if extra == "deadlines" else 0.25))}


def case(seed: int) -> tuple[Setup, list[Request]]:
    """Every third sheds, or has another order of the queue."""
    if seed % 3:
        return random_case(random.Random(seed), features(seed))
    order = ("shed", "codel", "adaptive_lifo")[seed // 3 % 3]
    return coupled_case(random.Random(seed), {*features(seed), "round_robin", order})


def compare(seed: int) -> None:
    """One random case; the reference's own laws are checked too."""
    setup, requests = case(seed)
    assert_equal(setup, requests, seed)


@pytest.mark.parametrize("block", range(CASES // 10))
def test_the_engine_equals_the_reference(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        compare(seed)


@pytest.mark.accept
@pytest.mark.parametrize("block", range(50))
def test_the_engine_equals_the_reference_on_five_thousand(block: int) -> None:
    for seed in range(1_000_000 + 100 * block, 1_000_100 + 100 * block):
        compare(seed)


def test_the_cases_reach_what_they_are_for() -> None:
    """Waits in both pools, ways that end too late or not at all, late ones in every place, both limits of a writer."""
    seen: Counter[str] = Counter()
    for seed in range(CASES):
        setup, requests = case(seed)
        outcome = simulate(setup, requests)
        for row in outcome.requests:
            seen[row.reason or str(row.state)] += 1
            seen["on its way at the end"] += row.first_token_s is not None and (row.landed_s, row.left_s) == (
                None,
                None,
            )
            if row.landed_s is not None:
                seen["waited twice"] += row.resumed_s is not None and row.resumed_s > row.landed_s
                late = row.state == "timed_out"
                seen["late on the way"] += late and row.writer is None
                seen["late before it could write"] += late and row.writer is not None and row.resumed_s is None
                seen["late while it wrote"] += late and row.resumed_s is not None
        seen.update(step.limited_by for steps in outcome.steps[setup.replicas :] for step in steps)
    wanted = (
        "timeout", "ttft_timeout", "queue_timeout", "queue_full", "too_long", "rate_limited", "shed",
        "on its way at the end",
        "waited twice", "late on the way", "late before it could write", "late while it wrote", "kv", "max_num_seqs",
    )  # fmt: skip
    assert {name: seen[name] for name in wanted if not seen[name]} == {}


def by_hand(**settings: float | None) -> Setup:
    """One replica each; steps of 1 s; a token's KV is 1/4 s on its way, and 1/2 s more."""
    return Setup(
        base=lambda tokens: 1.0, policy="disaggregated", decode_replicas=1, transfer_token_s=0.25,
        transfer_latency_s=0.5, max_num_seqs=2, max_num_batched_tokens=8, **settings,
    )  # fmt: skip


def test_by_hand() -> None:
    """Both are read until 1; their KV comes at 2 and 2.5. The first writes from 2 to 4, the second from 3 to 4."""
    requests = [Request(0.0, 2, 3), Request(0.0, 4, 2), Request(0.0, 1, 1)]
    run, log = run_engine(replace(by_hand(), max_num_seqs=3), [requests])
    a = run.attempts
    assert a.handover is not None
    assert a.first_token_s.tolist() == [1.0, 1.0, 1.0]
    assert a.finish_s.tolist() == [4.0, 4.0, 1.0]
    np.testing.assert_array_equal(a.handover.landed_s, [2.0, 2.5, np.nan])
    np.testing.assert_array_equal(a.handover.resumed_s, [2.0, 3.0, np.nan])
    assert a.replica.tolist() == [0, 0, 0]
    assert a.handover.replica.tolist() == [1, 1, -1]
    assert sorted(run.stall_gaps.tolist()) == [2.0, 3.0], "from the first token to the second"
    assert log.lane.tolist() == [0, 1, 1]
    assert log.decoding.tolist() == [0, 0, 1], "the gap of who has just come is logged by itself"
    assert log.tokens.tolist() == [7, 1, 2]
    assert log.held.tolist() == [0, 2, 3 + 4]


@pytest.mark.parametrize(("limit", "refused"), [(1, [False, True, False]), (2, [False, False, False])])
def test_who_is_on_the_way_is_outstanding(limit: int, refused: list[bool]) -> None:
    """The first is read until 1 and has come at 2: at 1.75 it is there, at 2 it is not."""
    requests = [Request(0.0, 2, 3), Request(1.75, 1, 1), Request(2.0 if limit == 1 else 1.75, 1, 1)]
    run, _ = run_engine(by_hand(max_outstanding=limit), [requests[: 2 if limit == 2 else 3]])
    assert np.isnan(run.attempts.scheduled_s).tolist() == refused[: run.attempts.state.size]


def test_too_late_when_it_comes() -> None:
    """Its first token is in time; at 2 it is too late to go on, and takes no turn."""
    run, log = run_engine(by_hand(timeout_s=2.0), [[Request(0.0, 2, 3)]])
    a = run.attempts
    assert a.handover is not None
    assert (a.left_s.tolist(), a.handover.replica.tolist()) == ([2.0], [-1])
    assert log.lane.tolist() == [0]


@pytest.mark.parametrize("seed", range(6))
def test_random_routing_has_a_stream_for_each_pool(seed: int) -> None:
    setup, requests = random_case(random.Random(seed), {"disaggregated"})
    setup.replicas, setup.decode_replicas, setup.routing = 3, 4, "random"
    made, order = requests_of(requests)
    draws = Draws(*(stream(9, name).random(1000).tolist().__getitem__ for name in (ROUTER, f"{ROUTER}.decode")))
    run = run_fleet(replace(fleet_of(setup, requests), routing=Routing("random")), [made], 9)
    expected = simulate(setup, requests, draws)
    assert run.attempts.handover is not None
    rows = [expected.requests[j] for j in order]
    assert run.attempts.replica.tolist() == [row.replica for row in rows]
    assert run.attempts.handover.replica.tolist() == [-1 if row.writer is None else row.writer for row in rows]


@pytest.mark.parametrize("seed", range(8))
def test_the_result_does_not_depend_on_what_runs_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    setup, first = random_case(rng, {"disaggregated", *(("max_outstanding", "deadlines") if seed % 2 else ())})
    setup.horizon_s = None
    others = [random_case(rng, set())[1] for _ in range(6)]
    together = run_engine(setup, [*others[:3], first, *others[3:]])[0]
    alone = run_engine(setup, [first])[0].attempts
    monkeypatch.setattr(fleet, "BATCH_LANES", 1)
    one_by_one = run_engine(setup, [*others[:3], first, *others[3:]])[0]
    all_of, apart = together.attempts, one_by_one.attempts
    part = slice(int(all_of.seed_start[3]), int(all_of.seed_start[4]))
    for name in ("scheduled_s", "first_token_s", "finish_s", "dropped_s", "state", "replica", "stall_gap_s"):
        np.testing.assert_array_equal(getattr(all_of, name)[part], getattr(alone, name))
        np.testing.assert_array_equal(getattr(all_of, name), getattr(apart, name))
    for name in ("replica", "landed_s", "resumed_s"):
        np.testing.assert_array_equal(getattr(all_of.handover, name)[part], getattr(alone.handover, name))
        np.testing.assert_array_equal(getattr(all_of.handover, name), getattr(apart.handover, name))
    gaps, lanes = np.sort(together.stall_gaps), np.sort(together.stall_gap_lane)
    np.testing.assert_array_equal(gaps, np.sort(one_by_one.stall_gaps))
    np.testing.assert_array_equal(lanes, np.sort(one_by_one.stall_gap_lane))


class TestLaws:
    """That the laws of two pools can be broken."""

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("writer", None), ("writer", 0), ("landed_s", 2.25), ("landed_s", None), ("resumed_s", 1.0),
            ("resumed_s", None), ("left_s", 1.0), ("first_token_s", 2.0),
        ],
    )  # fmt: skip
    def test_bent_row(self, field: str, value: float | None) -> None:
        setup, requests = by_hand(), [Request(0.0, 2, 3), Request(0.0, 4, 2)]
        outcome = simulate(setup, requests)
        check(setup, requests, outcome)
        setattr(outcome.requests[0], field, value)
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)

    def test_an_overtaker(self) -> None:
        setup, requests = replace(by_hand(), max_num_seqs=1), [Request(0.0, 1, 9), Request(0.0, 1, 2)]
        outcome = simulate(setup, requests)
        check(setup, requests, outcome)
        outcome.requests[1].resumed_s = outcome.requests[0].landed_s
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)

    @pytest.mark.parametrize(("field", "value"), [("n_decode", 0), ("T", 3), ("limited_by", "token_budget")])
    def test_bent_step(self, field: str, value: int | str) -> None:
        setup, requests = by_hand(), [Request(0.0, 2, 3), Request(0.0, 4, 2)]
        outcome = simulate(setup, requests)
        setattr(outcome.steps[1][0], field, value)
        with pytest.raises(AssertionError):
            check(setup, requests, outcome)


def test_two_pools_react_to_nothing() -> None:
    with pytest.raises(ValueError, match="load-aware"):
        replace(fleet_of(by_hand()), routing=Routing("least_outstanding"))


@pytest.mark.parametrize("output", [2, 4])
def test_two_servers_in_a_row_wait_like_the_slower_one_alone(output: int) -> None:
    """One seat in each pool and steps of a second: D/1 behind D/1, the second as slow as the first or slower.

    Friedman (Reduction methods for tandem queuing systems, Operations Research 13, 1965): each customer's waits add up
    to the one before the slower server alone, which Lindley's recursion gives. Behind an equal one nobody waits.
    """
    rng, slow = np.random.default_rng(5), float(output - 1)
    arrival = np.cumsum(rng.exponential(slow / 0.8, 1500))
    setup = replace(by_hand(), max_num_seqs=1, max_num_batched_tokens=8)
    run, _ = run_engine(setup, [[Request(float(at), 8, output) for at in arrival]])
    a = run.attempts
    assert a.handover is not None
    first, second = a.scheduled_s - a.arrival_s, a.handover.resumed_s - a.handover.landed_s
    alone, wait = np.zeros(arrival.size), 0.0
    for i, gap in enumerate(np.diff(arrival), start=1):
        wait = max(0.0, wait + slow - gap)
        alone[i] = wait
    np.testing.assert_allclose(first + second, alone, atol=1e-7)
    assert (second.max() > 1e-7) == (output > 2)
