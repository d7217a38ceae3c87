"""Policies side by side: the figures are those of a run, by hand, and two pools are shared out best."""

from __future__ import annotations

from typing import Any

import pytest

from engine.scenario import Scenario, ScenarioError
from engine.study import POLICIES, Figure, PolicyName, PolicyOutcome, policy_outcome, simulate
from engine.study import policies as module
from engine.study.suggest import shortened

POOLS = "batching.disaggregated"


def service(rate: float, prompt: int, output: int, **changes: Any) -> Scenario:
    """Two replicas with a linear profile and lengths that are always the same; ``__`` stands for a dot."""
    base = Scenario.from_dict(
        {
            "traffic": {
                "rate_rps": rate,
                "classes": [
                    {
                        "prompt_tokens": {"dist": "constant", "value": prompt},
                        "output_tokens": {"dist": "constant", "value": output},
                    }
                ],
            },
            "performance": {"kind": "linear", "overhead_s": 0.01, "token_s": 1e-4},
            "slo": [{"metric": "max_itl", "threshold_s": 0.05, "target": 0.95}],
            "run": {"seeds": 3, "horizon_s": 120.0, "warmup_s": 10.0},
        }
    )
    return base.replace({path.replace("__", "."): value for path, value in changes.items()})


class TestByHand:
    """One request at a time: every step lasts a second, so do all gaps but the one with the way between two pools."""

    LONELY = service(
        0.05, 10, 3, traffic__process="deterministic", performance__overhead_s=1.0, performance__token_s=0.0,
        batching__disaggregated__transfer_latency_s=0.5, batching__disaggregated__transfer_gbps=1e6,
        slo__0__threshold_s=1.25, run__horizon_s=400.0,
    )  # fmt: skip

    @pytest.mark.parametrize("policy", POLICIES)
    def test_a_lonely_request(self, policy: PolicyName) -> None:
        told = policy_outcome(self.LONELY, policy)
        longest = 1.5 if policy == "disaggregated" else 1.0
        assert {key: figure.value for key, figure in told.ttft_s.items()} == dict.fromkeys(("p50", "p95", "p99"), 1.0)
        assert told.stall_s["p50"].value == pytest.approx(longest, abs=1e-4)
        assert told.stall_s["max"].value == pytest.approx(longest, abs=1e-4)
        assert told.itl_s["p99"].value == pytest.approx(longest, rel=0.004)
        assert told.output_tokens_per_s.value == pytest.approx(0.15, rel=0.05)
        assert told.attainment is not None
        assert told.attainment.value == (0.0 if policy == "disaggregated" else 1.0)
        assert (told.replicas, told.accelerators, told.runs) == (2, 2 * self.LONELY.parallelism.tp, 3)

    def test_equal_runs_have_no_width(self) -> None:
        told = policy_outcome(self.LONELY, "disaggregated")
        assert told.ttft_s["p95"] == Figure(1.0, 1.0, 1.0)
        assert told.stall_s["max"].low is None, "a maximum has no interval"


BUSY = service(9.0, 400, 60, fleet__replicas=4)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_figures_are_those_of_the_run(policy: PolicyName) -> None:
    told = policy_outcome(BUSY, policy, requests_per_replica=100)
    result = simulate(shortened(BUSY, None, 100, 8).replace(told.changes))
    summary: Any = result.summary()
    assert told.horizon_s == result.run.horizon_s.max()
    for name, mine in (("ttft", told.ttft_s), ("itl", told.itl_s)):
        for key, figure in mine.items():
            assert [figure.low, figure.high] == summary["latency_s"][name]["ci95"][key]
            assert figure.value == summary["latency_s"][name][key]
    longest = result.max_itl_s[result.observed]
    assert told.stall_s["max"].value == longest.max()
    assert told.output_tokens_per_s.value == summary["throughput"]["output_tokens_per_s"]
    assert told.output_tokens_per_s.low is not None
    assert told.output_tokens_per_s.low < told.output_tokens_per_s.value
    assert told.attainment is not None
    assert told.attainment.value == summary["slo"][0]["attainment"]
    assert [told.attainment.low, told.attainment.high] == summary["slo"][0]["ci95"]
    assert told.answered == summary["requests"]["completed"]
    assert told.answered + told.unanswered == summary["requests"]["offered"]
    assert told.capacity_rps == pytest.approx(4 * summary["replica"]["capacity_rps"])


@pytest.fixture(scope="module")
def busy() -> dict[PolicyName, PolicyOutcome]:
    return {policy: policy_outcome(BUSY, policy, requests_per_replica=150) for policy in POLICIES}


def test_other_people_s_prompts_stall_who_shares_a_step_with_them(busy: dict[PolicyName, PolicyOutcome]) -> None:
    """A step without a prompt lasts at most 0.01 s and 0.1 ms a seat, a prompt of 400 adds 0.04 s."""
    stall = {policy: told.stall_s["p99"].value or 0.0 for policy, told in busy.items()}
    assert stall["static"] < 0.05, "nobody joins a group that writes"
    assert stall["chunked"] > 0.05
    assert stall["prefill_first"] > stall["chunked"], "and there they wait for whole prompts, several at once"
    assert stall["disaggregated"] < stall["chunked"], "but for the way between the pools"
    assert all(told.accelerators == busy["chunked"].accelerators for told in busy.values())


def test_every_split_is_tried_and_the_best_is_taken(busy: dict[PolicyName, PolicyOutcome]) -> None:
    told = busy["disaggregated"]
    assert [(split.prefill_replicas, split.decode_replicas) for split in told.splits] == [(1, 3), (2, 2), (3, 1)]
    assert told.split is not None
    assert told.split.rank == max(split.rank for split in told.splits)
    assert told.changes[f"{POOLS}.prefill_replicas"] == told.split.prefill_replicas
    assert BUSY.replace(told.changes).replicas == 4
    assert all(busy[policy].split is None and not busy[policy].splits for policy in POLICIES[:3])


@pytest.mark.parametrize(("prompt", "output", "prefill"), [(4000, 4, 3), (20, 400, 1)])
def test_the_best_split_follows_the_traffic(prompt: int, output: int, prefill: int) -> None:
    """Long prompts want readers, long answers writers: each at nine tenths of what three replicas of a kind can do."""
    s = service(
        0.9 * 3 / 0.41 if prompt > output else 0.9 * 3 * 16 / (400 * 0.0116), prompt, output, fleet__replicas=4,
        batching__max_num_seqs=16, slo__0={"metric": "e2e", "threshold_s": 20.0},
    )  # fmt: skip
    told = policy_outcome(s, "disaggregated", requests_per_replica=100)
    assert told.split is not None
    assert told.split.prefill_replicas == prefill


def test_a_promise_about_first_words_does_not_starve_those_who_write() -> None:
    """Two writers of 16 seats complete 2 * 16 / (399 * 0.0116) = 6.9 a second, one alone 3.5, and 5 come."""
    s = service(
        5.0, 400, 400, fleet__replicas=3, batching__max_num_seqs=16, slo__0={"metric": "ttft", "threshold_s": 0.08}
    )
    told = policy_outcome(s, "disaggregated", requests_per_replica=100)
    one, two = told.splits
    assert (one.keeps_up, two.keeps_up) == (True, False)
    assert (two.attainment or 0.0) > (one.attainment or 0.0), "all that the promise is about"
    assert told.split == one


def test_of_large_fleets_those_splits_are_tried_that_can_complete_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SPLITS", 3)
    told = policy_outcome(service(4.0, 4000, 4, fleet__replicas=8), "disaggregated", requests_per_replica=30)
    assert [split.prefill_replicas for split in told.splits] == [5, 6, 7]


def test_a_scenario_with_two_pools_compares_as_many_replicas() -> None:
    apart = BUSY.replace({"batching.policy": "disaggregated", f"{POOLS}.prefill_replicas": 3})
    told = policy_outcome(apart, "chunked", requests_per_replica=50)
    assert told.replicas == 4
    assert apart.replace(told.changes).replicas == 4


def test_one_replica_is_too_few_for_two_pools() -> None:
    with pytest.raises(ScenarioError) as raised:
        policy_outcome(BUSY.replace({"fleet.replicas": 1}), "disaggregated")
    assert str(raised.value) == "fleet.replicas: 1 is too few for two pools of replicas; use 2 or more"


def test_what_does_not_go_with_the_policy_is_said() -> None:
    with pytest.raises(ScenarioError, match=r"admission\.discipline\.kind"):
        policy_outcome(BUSY.replace({"admission.discipline": {"kind": "codel"}}), "static")
    with pytest.raises(ScenarioError, match=r"fleet\.routing\.policy"):
        policy_outcome(BUSY.replace({"fleet.routing.policy": "least_kv"}), "disaggregated")


def test_without_a_promise_answers_decide() -> None:
    told = policy_outcome(BUSY.replace({"slo": []}), "disaggregated", requests_per_replica=60, seeds=1)
    assert told.attainment is None
    assert told.split is not None
    assert told.split.goodput_rps == max(split.goodput_rps for split in told.splits)
    assert told.ttft_s["p95"].low is None, "one run has no spread"
