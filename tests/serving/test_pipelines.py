"""Pipelines in the engine equal the step-by-step reference, request by request and step by step."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.serving import StepLog, fleet, gathering, run_fleet
from engine.serving.pipelined import Pipelined
from tests.reference.model import Request, Setup
from tests.reference.scenarios import LinearBase, has_exact_times, random_case
from tests.reference.simulator import simulate
from tests.serving.compare import assert_equal, differences, fleet_of, requests_of, run_engine

BUBBLES = Path(__file__).parents[1] / "truth" / "parallel_oracles.csv"

EXTRAS = ("classes", "deadlines", "ignore", "max_outstanding", "max_queued_tokens", "rate_limit", "reserve_output",
          "table", "watermark")  # fmt: skip


def in_stages(setup: Setup, stages: int) -> None:
    """Make pipelines of the replicas; with three stages steps last three times as long, so that a third is exact."""
    setup.stages = stages
    if stages != 3:
        return
    if isinstance(setup.base, LinearBase):
        base = setup.base
        setup.base = LinearBase(3 * base.overhead_s, 3 * base.weights_s, 3 * base.token_s)
    elif not callable(setup.base):
        setup.base = [3 * seconds for seconds in setup.base]
    for name in ("seq_s", "kv_token_s", "prefill_pair_s"):
        setattr(setup, name, 3 * getattr(setup, name))


def compare(seed: int) -> None:
    """One random case with 2, 3, 4 or 8 stages; the reference's own laws are checked too."""
    rng = random.Random(f"pipeline {seed}")
    setup, requests = random_case(rng, {extra for extra in EXTRAS if rng.random() < 0.3})
    in_stages(setup, rng.choice([2, 3, 4, 8]))
    assert_equal(setup, requests, seed)


@pytest.mark.parametrize("block", range(20))
def test_the_engine_equals_the_reference(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        compare(seed)


ACCEPT = range(2_000_000, 2_005_000)


@pytest.mark.accept
@pytest.mark.parametrize("block", range(50))
def test_the_engine_equals_the_reference_on_five_thousand(block: int) -> None:
    for seed in ACCEPT[100 * block : 100 * block + 100]:
        compare(seed)


@pytest.mark.parametrize("seed", range(40))
def test_one_stage_is_an_ordinary_replica(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same engine with one lane: to the last bit where times are sums of powers of two."""
    rng = random.Random(f"one stage {seed}")
    setup, requests = random_case(rng, {extra for extra in EXTRAS if rng.random() < 0.3})
    exact = has_exact_times(setup)
    ordinary = run_engine(setup, [requests])[0].attempts
    monkeypatch.setattr(gathering, "Lockstep", Pipelined)
    pipelined = run_engine(setup, [requests])[0].attempts
    for name in ("scheduled_s", "first_token_s", "finish_s", "state", "reason", "preemptions", "spent_tokens"):
        want, got = getattr(ordinary, name), getattr(pipelined, name)
        np.testing.assert_allclose(got, want, rtol=0.0 if exact else 1e-9, err_msg=name)
    np.testing.assert_allclose(pipelined.spent_s, ordinary.spent_s, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_result_does_not_depend_on_what_runs_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"together {seed}")
    setup, first = random_case(rng, {"max_outstanding"} if seed % 2 else set())
    setup.horizon_s, setup.stages = None, 2 + seed % 3
    others = [random_case(rng, set())[1] for _ in range(6)]
    together = run_engine(setup, [*others[:3], first, *others[3:]])[0].attempts
    alone = run_engine(setup, [first])[0].attempts
    monkeypatch.setattr(fleet, "BATCH_LANES", 1)
    one_by_one = run_engine(setup, [*others[:3], first, *others[3:]])[0].attempts
    part = slice(int(together.seed_start[3]), int(together.seed_start[4]))
    for name in ("scheduled_s", "first_token_s", "finish_s", "state", "preemptions", "replica"):
        np.testing.assert_array_equal(getattr(together, name)[part], getattr(alone, name))
        np.testing.assert_array_equal(getattr(together, name), getattr(one_by_one, name))


@pytest.mark.parametrize("seed", range(6))
def test_until_all_are_scheduled_everything_is_as_ever(seed: int) -> None:
    rng = random.Random(f"scheduled {seed}")
    setup, requests = random_case(rng, {"deadlines"} if seed % 2 else set())
    setup.horizon_s, setup.stages = None, 2 + seed % 3
    stopped = replace(fleet_of(setup, requests), until_scheduled=True)
    log: list[StepLog] = []
    short = run_fleet(stopped, [requests_of(requests)[0]], 1, log.append).attempts
    whole, steps = run_engine(setup, [requests])
    np.testing.assert_array_equal(short.scheduled_s, whole.attempts.scheduled_s)
    for replica in range(setup.replicas):
        mine = whole.attempts.replica == replica
        last = np.nanmax(whole.attempts.scheduled_s[mine], initial=0.0)
        for name in ("first_token_s", "finish_s"):
            before = mine & (getattr(whole.attempts, name) <= last)
            np.testing.assert_array_equal(getattr(short, name)[before], getattr(whole.attempts, name)[before])
    assert StepLog.joined(log).lane.size <= steps.lane.size
    if not seed % 2:
        assert np.isnan(short.finish_s).any()


def bubbles() -> list[tuple[int, int, str, float]]:
    """(stages, batches, quantity, value) of the table's rows without interleaving."""
    with BUBBLES.open() as file:
        rows = [(json.loads(row["params_json"]), row) for row in csv.DictReader(file) if row["name"] == "PP_bubble"]
    plain = [(given, row) for given, row in rows if given["interleave"] == 1]
    return [(given["stages"], given["microbatches"], row["quantity"], float(row["value"])) for given, row in plain]


@pytest.mark.parametrize(("stages", "batches", "quantity", "value"), bubbles())
def test_a_pipeline_that_fills_and_drains(stages: int, batches: int, quantity: str, value: float) -> None:
    """So many requests of one step each, one at a time in a lane, all there at the beginning."""
    setup = Setup(base=lambda tokens: 1.0, max_num_seqs=stages, stages=stages)
    run, log = run_engine(setup, [[Request(0.0, 1, 1)] * batches])
    ideal, end = batches / stages, float(run.attempts.finish_s.max())
    idle = end - float(log.busy(log.t1 - log.t0).sum()) / stages
    assert end == ideal + (stages - 1) / stages
    assert {"bubble_over_ideal": idle / ideal, "bubble_fraction_of_total": idle / end}[quantity] == pytest.approx(value)


@pytest.mark.parametrize("stages", [2, 3, 4, 8])
def test_throughput_grows_until_there_is_a_batch_for_every_stage(stages: int) -> None:
    """n requests of 500 tokens, one a lane, 1 s a pass: n tokens a second up to one for each stage."""
    for together in (*range(1, stages + 1), 2 * stages):
        setup = Setup(base=lambda tokens: 1.0, max_num_seqs=stages, stages=stages)
        run, _ = run_engine(setup, [[Request(0.0, 1, 500)] * together])
        per_second = 500 * together / float(run.attempts.finish_s.max())
        assert per_second == pytest.approx(min(together, stages), rel=0.01)


@pytest.mark.parametrize("stages", [2, 4])
def test_alone_a_request_takes_as_long_as_in_one_stage(stages: int) -> None:
    settings = {"base": lambda tokens: 0.5 + tokens / 64, "kv_token_s": 2.0**-12, "prefill_pair_s": 2.0**-16}
    one, many = (run_engine(Setup(**settings, stages=n), [[Request(1.0, 9000, 700)]])[0] for n in (1, stages))
    assert many.attempts.finish_s == pytest.approx(one.attempts.finish_s, rel=1e-12)
    assert many.attempts.first_token_s == one.attempts.first_token_s


def test_cycles_are_skipped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lanes write 5,000 tokens each in a few rounds, with steps of different lengths that grow."""
    requests = [Request(0.0, 40, 5000), Request(0.0, 10, 5000)]
    setup = Setup(base=lambda tokens: 1.0, kv_token_s=2.0**-10, max_num_seqs=2, stages=2)
    rounds, ordinary = [], Pipelined._next

    def counted(self: Pipelined) -> object:
        rounds.append(1)
        return ordinary(self)

    monkeypatch.setattr(Pipelined, "_next", counted)
    assert not differences(setup, requests, simulate(setup, requests), exact=True)
    assert len(rounds) < 60
