"""Ways of saying no: which there are, and what they do when more is asked than can be served."""

from __future__ import annotations

from typing import Any

import pytest

from engine.scenario import Scenario
from engine.study import Tried, Way, try_way, ways
from engine.traffic import read_trace

ONE = {"dist": "constant", "value": 1}
# One request at a time, one second each: one a second can be served.
BUSY = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 1.3,
            "classes": [{"prompt_tokens": ONE, "output_tokens": ONE}],
        },
        "performance": {"kind": "linear", "overhead_s": 1.0},
        "batching": {"max_num_seqs": 1},
        "fleet": {"replicas": 1},
        "slo": [{"threshold_s": 3.5, "target": 0.95}],
        "run": {"horizon_s": 300.0, "warmup_s": 30.0, "seeds": 2},
    }
)
RETRYING = BUSY.replace(
    {
        "traffic.client.ttft_timeout_s": 5.0,
        "traffic.client.on_timeout": "ignore",
        "traffic.client.max_retries": 2,
    }
)


def kinds(scenario: Scenario) -> list[str]:
    return [way.kind for way in ways(scenario)]


def best(scenario: Scenario, kind: str) -> Tried:
    found = [try_way(scenario, way) for way in ways(scenario) if way.kind == kind]
    return max(found, key=lambda tried: tried.fates.in_time)


def test_the_present_one_comes_first_and_caps_last() -> None:
    found = kinds(BUSY)
    assert found[0] == "now"
    assert set(found) == {"now", "shed", "queue_timeout", "codel", "lifo", "rate_limit", "cap"}
    assert found[found.index("cap") :] == ["cap"] * found.count("cap")


def test_clients_have_ways_of_their_own() -> None:
    assert {"throttle", "budget", "abort"} <= set(kinds(RETRYING))
    aborting = RETRYING.replace({"traffic.client.on_timeout": "abort", "traffic.client.retry_budget_ratio": 0.05})
    assert not {"budget", "abort"} & set(kinds(aborting))


def test_each_way_stands_alone() -> None:
    capped = BUSY.replace({"admission.max_outstanding": 3, "admission.shed": {"ttft_s": 1.0}})
    by_kind = {way.kind: way for way in ways(capped)}
    assert capped.replace(by_kind["everybody"].changes) == BUSY
    assert capped.replace(by_kind["queue_timeout"].changes) == BUSY.replace({"admission.queue_timeout_s": 2.8})
    assert capped.replace(by_kind["now"].changes) == capped


def test_limits_follow_the_promise_and_the_capacity() -> None:
    value = {way.kind: way.value for way in ways(BUSY)}
    assert (value["shed"], value["queue_timeout"], value["lifo"]) == (1.8, 2.8, 3.5)
    assert value["rate_limit"] == pytest.approx(0.95, rel=0.03)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"traffic.process": "closed", "traffic.rate_rps": 4.0}, {"rate_limit", "throttle", "budget"}),
        ({"batching.policy": "static"}, {"codel", "lifo"}),
    ],
)
def test_what_isn_t_possible_is_left_out(changes: dict[str, Any], missing: set[str]) -> None:
    found = set(kinds(BUSY.replace(changes)))
    assert "cap" in found
    assert not missing & found


def test_saying_no_keeps_the_others_in_time() -> None:
    now, shed, cap = (best(BUSY, kind) for kind in ("now", "shed", "cap"))
    assert now.fates.shares["in_time"] < 0.3
    assert shed.fates.shares["in_time"] > 0.6
    assert cap.fates.shares["in_time"] > 0.6
    assert (cap.fates.of_let_in or 0.0) > 0.95
    assert (now.wasted or 0.0) > 0.7 > 0.1 > (cap.wasted or 0.0)
    assert cap.goodput_rps > 2 * now.goodput_rps
    assert (now.runs, now.horizon_s) == (2, 300.0)


def test_a_retry_budget_keeps_the_load_down() -> None:
    now, budget = best(RETRYING, "now"), best(RETRYING, "budget")
    assert (budget.attempts or 0.0) < 1.15 < (now.attempts or 0.0)


def test_nothing_that_fits_leaves_no_caps_to_try() -> None:
    tight = BUSY.replace({"batching.kv_capacity_tokens": 1})
    assert kinds(tight) == ["now", "shed", "queue_timeout", "codel", "lifo"]
    assert try_way(tight, Way("now", {})).fates.of_let_in is None


def test_a_trace_can_be_tried() -> None:
    trace = read_trace(("arrival_s,prompt_tokens,output_tokens\n" + "50,1,1\n" * 8).encode())
    replay = BUSY.replace(
        {"traffic.process": "trace", "traffic.trace.source": "given", "traffic.rate_rps": 4.0, "run.seeds": 1}
    )
    found = {way.kind: way for way in ways(replay, trace)}
    now = try_way(replay, found["now"], trace).fates
    assert (now.in_time, now.late) == (3, 5)
