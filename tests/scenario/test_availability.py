"""What isn't built yet is refused, and said so."""

from __future__ import annotations

from typing import Any

import pytest

from engine.scenario import Scenario, ScenarioError
from engine.scenario.paths import with_changes


def test_the_defaults_are_available_spelled_out() -> None:
    assert Scenario.from_dict(Scenario().to_dict()) == Scenario()


def test_the_network_is_always_available_for_it_changes_only_what_clients_measure() -> None:
    assert Scenario.from_dict({"traffic": {"client": {"network_rtt_s": 0.1}}}).traffic.client.network_rtt_s == 0.1


def test_one_urgency_for_all_is_available() -> None:
    two = [{"name": "a", "priority": 3}, {"name": "b", "priority": 3}]
    assert Scenario.from_dict({"traffic": {"classes": two}}).traffic.classes[1].priority == 3


APART = {"batching": {"policy": "disaggregated"}}
OTHER = "or batching.policy chunked, prefill_first or static"


@pytest.mark.parametrize(
    ("traffic", "more", "said"),
    [
        (
            {"process": "closed", "growth": {"prompt_factor": 2.0}},
            {},
            'traffic.growth: {"prompt_factor": 2.0, "output_factor": 1.0} is not available yet; '
            "leave it out, or use another process",
        ),
        (
            {"process": "closed"},
            {"admission": {"rate_limit": {"rate_rps": 2.0, "burst": 5}}},
            "admission.rate_limit.rate_rps: 2 is not available yet; use max_outstanding, or another process",
        ),
        (
            {"process": "closed", "client": {"max_retries": 2}},
            {},
            "traffic.client.max_retries: 2 is not available yet; use 0, or another process",
        ),
        (
            {"process": "closed", "client": {"fan_out": 20}},
            {},
            "traffic.client.fan_out: 20 is not available yet; use 1, or a process with a rate_rps",
        ),
        (
            {"process": "trace", "client": {"fan_out": 2}},
            {},
            "traffic.client.fan_out: 2 is not available yet; use 1, or a process with a rate_rps",
        ),
        (
            {"process": "closed"},
            {"fleet": {"routing": {"policy": "least_kv"}}},
            'fleet.routing.policy: "least_kv" is not available yet; use round_robin or random, or another process',
        ),
        (
            {},
            {"batching": {"policy": "static"}, "admission": {"discipline": {"kind": "codel"}}},
            'admission.discipline.kind: "codel" is not available yet; use fifo, or policy chunked or prefill_first',
        ),
        (
            {"process": "closed"},
            APART,
            f'traffic.process: "closed" is not available yet; use poisson, {OTHER}',
        ),
        (
            {},
            APART | {"fleet": {"routing": {"policy": "least_outstanding"}}},
            f'fleet.routing.policy: "least_outstanding" is not available yet; use round_robin or random, {OTHER}',
        ),
        (
            {"client": {"timeout_s": 9, "max_retries": 2}},
            APART,
            f"traffic.client.max_retries: 2 is not available yet; use 0, {OTHER}",
        ),
        (
            {"client": {"throttle": {"k": 2.0}}},
            APART,
            'traffic.client.throttle: {"k": 2.0, "window_s": 120.0} is not available yet; leave it out, ' + OTHER,
        ),
        (
            {},
            APART | {"autoscaler": {"policy": "hpa"}},
            f'autoscaler.policy: "hpa" is not available yet; use none, {OTHER}',
        ),
    ],
)
def test_what_is_not_available_together(traffic: dict, more: dict, said: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_dict({"traffic": traffic, **more})
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("batching.policy", "static", 'batching.policy: "static" is not available yet; use chunked'),
        ("batching.policy", "disaggregated", 'batching.policy: "disaggregated" is not available yet; use chunked'),
        ("parallelism.cp", 2, "parallelism.cp: 2 is not available yet; use 1"),
        ("parallelism.sp", "megatron", 'parallelism.sp: "megatron" is not available yet; use none'),
        ("batching.policy", "prefill_first", 'batching.policy: "prefill_first" is not available yet; use chunked'),
        ("traffic.process", "closed", 'traffic.process: "closed" is not available yet; use another process'),
        (
            "fleet.routing.policy",
            "least_kv",
            'fleet.routing.policy: "least_kv" is not available yet; use round_robin or random',
        ),
        ("traffic.client.max_retries", 2, "traffic.client.max_retries: 2 is not available yet; use 0"),
        ("traffic.client.throttle.k", 2.0, "traffic.client.throttle: "),
        ("autoscaler.policy", "hpa", 'autoscaler.policy: "hpa" is not available yet; use none'),
        ("admission.shed.ttft_s", 2.0, "admission.shed.ttft_s: 2 is not available yet; use max_outstanding"),
        ("admission.discipline.kind", "codel", 'admission.discipline.kind: "codel" is not available yet; use fifo'),
    ],
)
def test_what_pipelines_do_not_go_with_yet(path: str, value: Any, said: str) -> None:
    changes = {path: value}
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_dict(with_changes(Scenario().to_dict(), {"parallelism.pp": 2, **changes}))
    assert said in str(raised.value)
    assert "or parallelism.pp 1" in str(raised.value)


def test_pipelines_go_with_limits_deadlines_and_urgencies() -> None:
    s = {
        "parallelism": {"pp": 2},
        "traffic": {"client": {"timeout_s": 9.0}, "classes": [{"name": "a", "priority": 1}, {"name": "b"}]},
        "admission": {"max_outstanding": 9, "max_queued_tokens": 999, "rate_limit": {"rate_rps": 2.0, "burst": 5}},
        "batching": {"kv_policy": "reserve"},
    }
    assert Scenario.from_dict(s).parallelism.pp == 2
