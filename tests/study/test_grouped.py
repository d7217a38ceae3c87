"""Both ways of grouping the same traffic."""

from __future__ import annotations

import pytest

from engine import Scenario, simulate
from engine.study import grouped

SMALL = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 1.0,
            "classes": [
                {
                    "prompt_tokens": {"dist": "constant", "value": 200},
                    "output_tokens": {"dist": "geometric", "mean": 100, "max": 600},
                }
            ],
        },
        "performance": {"kind": "linear", "overhead_s": 0.02, "seq_s": 0.0005, "token_s": 0.0001},
        "batching": {"max_num_seqs": 16},
        "fleet": {"replicas": 1},
        "run": {"seeds": 2, "horizon_s": 300.0, "warmup_s": 30.0},
    }
)


def test_a_group_that_ends_together_serves_fewer_and_lets_the_next_wait() -> None:
    found = grouped(SMALL)
    joined, static = found.continuous, found.static
    assert (joined.policy, static.policy) == ("chunked", "static")
    assert joined.offered == static.offered, "the same requests"
    assert joined.capacity_rps is not None
    assert static.capacity_rps is not None
    # Of 16 geometric answers the longest takes H(16) = 3.4 times the mean: that is how long a group lasts.
    assert 2.0 < joined.capacity_rps / static.capacity_rps < 3.6
    assert joined.ttft_p95_s is not None
    assert static.ttft_p50_s is not None
    assert static.ttft_p50_s > 10 * joined.ttft_p95_s


def test_the_figures_are_those_of_whole_runs() -> None:
    found, own = grouped(SMALL), simulate(SMALL)
    summary = own.summary()
    assert found.continuous.tokens_per_s == summary["throughput"]["output_tokens_per_s"]  # type: ignore[index]
    assert found.continuous.ttft_p95_s == own.latency["ttft"].figures["p95"]
    assert found.continuous.itl_p99_s == own.latency["itl"].figures["p99"]
    assert (found.runs, found.horizon_s) == (2, 300.0)
    assert found.course.runs == 2


@pytest.mark.parametrize(("own", "other"), [("prefill_first", "prefill_first"), ("static", "chunked")])
def test_a_scenario_s_own_policy_stands_against_static_groups(own: str, other: str) -> None:
    found = grouped(SMALL.replace({"batching.policy": own, "run.horizon_s": 60.0}))
    assert (found.continuous.policy, found.static.policy) == (other, "static")


def test_another_order_of_the_queue_is_left_out_of_static_groups() -> None:
    found = grouped(SMALL.replace({"admission.discipline": {"kind": "codel"}, "run.horizon_s": 60.0}))
    assert found.static.answered
