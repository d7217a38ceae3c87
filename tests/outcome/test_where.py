"""Where a request's seconds go: exact against the reference, by hand, and at the percentiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import Result, Scenario, Trace, read_trace, simulate
from engine.outcome.where import LEVELS, PARTS, By, parts, where
from tests.outcome.cases import COUNT, case

SMALL = {
    "traffic": {"rate_rps": 20.0},
    "performance": {"kind": "linear", "overhead_s": 0.01, "token_s": 1e-5, "seq_s": 1e-4},
    "batching": {"max_num_seqs": 32},
    "run": {"horizon_s": 200, "seeds": 4, "warmup_s": 20},
}


@pytest.mark.parametrize("number", range(0, COUNT, 2))
def test_the_parts_are_those_of_the_reference_and_add_up(number: int) -> None:
    known = case(number)
    found = parts(known.result)
    np.testing.assert_allclose(sum(found.values()), known.result.e2e_s[known.result.observed], rtol=1e-9, atol=1e-12)
    first = sum(parts(known.result, "ttft").values())
    np.testing.assert_allclose(first, known.result.ttft_s[known.result.observed], rtol=1e-9, atol=1e-12)
    rows = [row for _, _, row in known.rows() if row.state == "completed" and (row.arrival_s or 0.0) >= known.warmup_s]
    expected = {
        "queue": [row.scheduled_s - row.arrival_s for row in rows],
        "prompt": [row.first_token_s - row.admitted_s for row in rows],
        "stalled": [row.stalled_s for row in rows],
        "preempted": [row.admitted_s - row.scheduled_s + row.preempted_s for row in rows],
    }
    for part, values in expected.items():
        np.testing.assert_allclose(found[part], values, rtol=1e-9, atol=1e-9, err_msg=part)


def test_the_cases_have_stalls_and_preemptions_to_find() -> None:
    totals = np.zeros(2)
    for number in range(0, COUNT, 2):
        found = parts(case(number).result)
        totals += [found["stalled"].sum(), found["preempted"].sum()]
    assert (totals > 1.0).all()


def by_hand(policy: str) -> Result:
    """One asks for 11 words; while it writes a prompt of 300 comes, which chunks of 128 read in three steps.

    A step lasts 1/64 s and 1/1024 s for every token more than one: all times are sums of powers of two.
    """
    trace: Trace = read_trace(b"arrival_s,prompt_tokens,output_tokens\n0,1,11\n0.0625,300,1\n")
    document = {
        "traffic": {"process": "trace", "trace": {"source": f"sha256:{trace.sha256}"}},
        "performance": {"kind": "linear", "overhead_s": 15 / 1024, "token_s": 1 / 1024},
        "batching": {"policy": policy, "max_num_seqs": 2, "max_num_batched_tokens": 128},
        "fleet": {"replicas": 1},
        "slo": [],
        "run": {"horizon_s": None, "warmup_s": 0, "seeds": 1},
    }
    return simulate(Scenario.from_dict(document), trace, waits=True)


@pytest.mark.parametrize(("policy", "stall"), [("chunked", 300 / 1024), ("prefill_first", 315 / 1024)])
def test_a_long_prompt_stalls_who_writes_by_what_its_chunks_take(policy: str, stall: float) -> None:
    """Chunked, each of the three steps makes a word as well; else its one step makes none, and its 15/1024 count."""
    found = parts(by_hand(policy))
    assert found["stalled"].tolist() == [stall, 0.0]
    assert found["answer"].tolist() == [10 * 16 / 1024, 0.0]
    assert found["prompt"].tolist()[0] == 16 / 1024
    assert found["prompt"][1] == (15 * 3 + 303 if policy == "chunked" else 315) / 1024
    assert found["queue"].tolist() == [0.0, 0.0]


def small(**changes: Any) -> Result:
    return simulate(Scenario.from_dict(SMALL).replace(changes), waits=True)


@pytest.mark.parametrize("by", ["e2e", "ttft"])
def test_the_levels_are_the_percentiles_shared_out_as_by_those_around_them(by: By) -> None:
    result = small()
    told, found, e2e = where(result, by), parts(result, by), result.metric(by)[result.observed]
    order = np.argsort(e2e, kind="stable")
    assert [level.name for level in told.levels] == [name for name, _ in LEVELS]
    for level, (name, share) in zip(told.levels, LEVELS, strict=True):
        assert level.time_s == result.latency[by].figures[name]
        middle, reach = int(np.ceil(share * order.size)) - 1, (level.requests - 1) // 2
        around = order[middle - reach : middle + reach + 1]
        assert e2e[order[middle]] == level.time_s
        assert 0.008 * order.size < level.requests < 0.012 * order.size
        assert tuple(level.parts) == (PARTS if by == "e2e" else ("queue", "frontend", "prompt", "preempted"))
        for part, mean in level.parts.items():
            assert mean == pytest.approx(found[part][around].mean() * level.time_s / e2e[around].mean())
        assert sum(level.parts.values()) == pytest.approx(level.time_s), "the same figure as everywhere else"
        assert e2e[around].mean() == pytest.approx(level.time_s, rel=0.1)
        assert level.parts[level.largest] == max(level.parts.values())
    assert told.wait_mean_s == result.latency["queue"].figures["mean"]
    assert told.others == result.summary()["requests"]["offered"] - order.size


def test_keeping_waits_changes_nothing_else() -> None:
    document = {**SMALL, "traffic": {"rate_rps": 60.0}, "batching": {"kv_capacity_tokens": 20_000}}
    asked, plain = (simulate(Scenario.from_dict(document), waits=waits) for waits in (True, False))
    a, b = replace(asked, wall_s=0.0).summary(), replace(plain, wall_s=0.0).summary()
    assert a == b
    assert a["preemptions"]
    with pytest.raises(ValueError, match="waits=True"):
        where(plain)


def test_pipelines_keep_no_waits() -> None:
    stages = {"parallelism.pp": 2, "run.horizon_s": 60, "run.seeds": 2}
    asked, plain = (simulate(Scenario.from_dict(SMALL).replace(stages), waits=waits) for waits in (True, False))
    assert replace(asked, wall_s=0.0).summary() == replace(plain, wall_s=0.0).summary()
    with pytest.raises(ValueError, match="pipelines keep none"):
        where(asked)


@pytest.mark.parametrize(
    "changes",
    [
        {"traffic.client.max_retries": 2, "traffic.client.timeout_s": 3.0, "traffic.client.backoff_s": 0.5},
        {"fleet.routing.policy": "least_outstanding"},
        {"traffic.process": "closed", "traffic.rate_rps": 4.0, "traffic.closed.users": 50},
    ],
    ids=["retries", "coupled", "users"],
)
def test_every_kind_of_run_can_be_taken_apart(changes: dict[str, Any]) -> None:
    result = small(**{"run.horizon_s": 60, "run.seeds": 2, **changes})
    found = parts(result)
    np.testing.assert_allclose(sum(found.values()), result.e2e_s[result.observed], rtol=1e-9)
    assert found["stalled"].sum() > 0
    assert len(where(result).levels) == 3


@pytest.mark.parametrize("arrivals", [[0.0], [0.0, 1.0, 2.0]])
def test_few_requests(arrivals: list[float]) -> None:
    lines = "".join(f"{t},10,5\n" for t in arrivals)
    trace = read_trace(f"arrival_s,prompt_tokens,output_tokens\n{lines}".encode())
    document = {
        **SMALL,
        "traffic": {"process": "trace", "trace": {"source": f"sha256:{trace.sha256}"}},
        "run": {"horizon_s": None, "warmup_s": 0, "seeds": 1},
    }
    told = where(simulate(Scenario.from_dict(document), trace, waits=True))
    assert [level.requests for level in told.levels] == ([1] * 3 if len(arrivals) == 1 else [3, 1, 1])


def test_nobody_comes() -> None:
    told = where(small(**{"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}}))
    assert told.levels == ()
    assert np.isnan(told.wait_mean_s)


def test_two_pools_have_a_way_between_them() -> None:
    """A prompt takes a step of 1/16 s, its KV 0.25 s to the other pool, where three more words take 3/64 s."""
    trace: Trace = read_trace(b"arrival_s,prompt_tokens,output_tokens\n0,49,4\n")
    pools = {"prefill_replicas": 1, "decode_replicas": 1, "transfer_gbps": 1e6, "transfer_latency_s": 0.25}
    document = {
        "traffic": {"process": "trace", "trace": {"source": f"sha256:{trace.sha256}"}},
        "performance": {"kind": "linear", "overhead_s": 15 / 1024, "token_s": 1 / 1024},
        "batching": {"policy": "disaggregated", "disaggregated": pools},
        "slo": [],
        "run": {"horizon_s": None, "warmup_s": 0, "seeds": 1},
    }
    result = simulate(Scenario.from_dict(document), trace, waits=True)
    found = {part: float(values[0]) for part, values in parts(result).items()}
    assert found["prompt"] == 1 / 16
    assert found["handover"] == pytest.approx(0.25, rel=1e-3)
    assert found["answer"] == pytest.approx(3 / 64)
    assert sum(found.values()) == pytest.approx(float(result.e2e_s[0]))
