"""The sidebar's controls against the scenario: both ways, and nothing else changes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from engine.scenario import Scenario, ScenarioError
from engine.scenario.paths import changes
from engine.scenario.presets import presets
from tests.scenario.strategies import scenarios
from ui.control import position
from ui.controls import POOLS, apply, burstiness_word, controls
from ui.settings import ONLY_WITH, name_of
from ui.settings import settings as settings_of

MONDAY = presets()[0].scenario


def shown(base: Scenario) -> dict[str, Any]:
    return {key: control.value for key, control in controls(base).items()}


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_a_preset_survives_its_controls(preset: Any) -> None:
    assert apply(preset.scenario, shown(preset.scenario)) == preset.scenario


@settings(max_examples=200, deadline=None)
@given(scenarios())
def test_any_scenario_survives_its_controls(base: Scenario) -> None:
    values = shown(base)
    assert apply(base, values) == base
    for control in controls(base).values():
        if control.value is None:
            assert control.null, "an empty box says what that stands for"
        elif not isinstance(control.value, str):
            assert control.low is None or control.low <= control.value
            assert control.high is None or control.value <= control.high
        if control.stops:
            assert list(control.stops) == sorted(set(control.stops))
            assert len({position(stop) for stop in control.stops}) == len(control.stops)
            assert control.nearest_stop(float(control.value)) in control.stops
            assert len(control.stops) < 400
        if control.choices is not None:
            assert control.value in control.choices


@pytest.mark.parametrize(
    ("key", "value", "path", "expected"),
    [
        ("model.name", "Llama-3.1-8B", "model.name", "Llama-3.1-8B"),
        ("model.weight_dtype", "int4", "model.weight_dtype", "int4"),
        ("hardware.accelerator", "H200-SXM-141GB", "hardware.accelerator", "H200-SXM-141GB"),
        ("parallelism.tp", 8, "parallelism.tp", 8),
        ("parallelism.pp", 2, "parallelism.pp", 2),
        ("fleet.replicas", 7, "fleet.replicas", 7),
        ("traffic.rate_rps", 3.25, "traffic.rate_rps", 3.25),
        ("traffic.classes.0.prompt_tokens.mean", 900.0, "traffic.classes.0.prompt_tokens.mean", 900.0),
        ("traffic.classes.0.output_tokens.mean", 90.0, "traffic.classes.0.output_tokens.mean", 90.0),
        ("slo.0.threshold_s", 1.25, "slo.0.threshold_s", 1.25),
        ("target_percent", 99.9, "slo.0.target", 0.999),
        ("batching.policy", "static", "batching.policy", "static"),
        ("batching.max_num_seqs", 64, "batching.max_num_seqs", 64),
        ("batching.max_model_len", 8192, "batching.max_model_len", 8192),
        ("batching.gpu_memory_utilization", 0.8, "batching.gpu_memory_utilization", 0.8),
        ("admission.max_outstanding", 0, "admission.max_outstanding", 0),
        ("admission.queue_timeout_s", 3.5, "admission.queue_timeout_s", 3.5),
        ("admission.rate_limit.rate_rps", 5.0, "admission.rate_limit", {"rate_rps": 5.0, "burst": 5.0}),
        ("traffic.client.timeout_s", 30.0, "traffic.client.timeout_s", 30.0),
    ],
)
def test_a_control_sets_its_setting_and_no_other(key: str, value: Any, path: str, expected: Any) -> None:
    found = apply(MONDAY, shown(MONDAY) | {key: value})
    assert changes(MONDAY.to_dict(), found.to_dict()) == {path: expected}


@pytest.mark.parametrize(
    ("base", "value", "expected"),
    [
        ("poisson", 1.0, ("poisson", 1.0)),
        ("poisson", 2.0, ("gamma", 2.0)),
        ("poisson", 0.0, ("deterministic", 1.0)),
        ("deterministic", 0.0, ("deterministic", 1.0)),
        ("deterministic", 1.0, ("poisson", 1.0)),
        ("gamma", 1.0, ("gamma", 1.0)),
        ("gamma", 0.0, ("deterministic", 3.0)),
    ],
)
def test_burstiness_stands_for_three_processes(base: str, value: float, expected: tuple[str, float]) -> None:
    cv = 3.0 if base == "gamma" else 1.0
    scenario = Scenario.from_dict({"traffic": {"process": base, "cv": cv}})
    found = apply(scenario, {"burstiness": value})
    assert (found.traffic.process, found.traffic.cv) == expected


def test_a_trace_brings_its_own_rate_and_lengths() -> None:
    trace = {"process": "trace", "trace": {"source": f"sha256:{'0' * 64}"}}
    replay = Scenario.from_dict({"traffic": trace, "run": {"horizon_s": None}})
    keys = controls(replay)
    assert "fleet.replicas" in keys
    assert not [key for key in keys if key.startswith(("traffic.rate", "traffic.classes")) or key == "burstiness"]


def test_lengths_without_a_single_figure_have_no_control() -> None:
    length = {"dist": "uniform", "low": 1, "high": 9}
    spread = Scenario.from_dict({"traffic": {"classes": [{"prompt_tokens": length}]}})
    assert not [key for key in controls(spread) if "prompt" in key]


def test_without_a_promise_there_is_nothing_to_set() -> None:
    assert not [key for key in controls(Scenario.from_dict({"slo": []})) if key.startswith(("slo", "target"))]


def test_a_clash_is_said_in_words() -> None:
    with pytest.raises(ScenarioError, match="more than 20,000,000"):
        apply(MONDAY, shown(MONDAY) | {"traffic.rate_rps": 100_000.0})


def test_the_usual_sliders_move_by_ratio_and_hold_the_present_value() -> None:
    rate = controls(MONDAY)["traffic.rate_rps"]
    steps = [b / a for a, b in pairwise(rate.stops)]
    assert max(steps) < 1.25
    assert MONDAY.traffic.rate_rps in rate.stops
    assert controls(MONDAY)["fleet.replicas"].whole


def test_burstiness_is_put_into_words() -> None:
    said = [burstiness_word(value) for value in (0.0, 0.5, 1.0, 2.0, 4.0, 9.0)]
    assert said == ["like clockwork", "rather even", "independent", "clumped", "bursty", "very bursty"]


LIMITED = MONDAY.replace(
    {
        "admission.max_outstanding": 9,
        "admission.rate_limit": {"rate_rps": 3.0, "burst": 7.0},
        "admission.shed": {"ttft_s": 1.5},
        "traffic.client.throttle": {"k": 1.5, "window_s": 60.0},
        "traffic.client.timeout_s": 12.0,
        "batching.reserve_output_tokens": 500,
    }
)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("admission.max_outstanding", "admission.max_outstanding"),
        ("admission.rate_limit.rate_rps", "admission.rate_limit"),
        ("admission.shed.ttft_s", "admission.shed"),
        ("traffic.client.throttle.k", "traffic.client.throttle"),
        ("traffic.client.timeout_s", "traffic.client.timeout_s"),
        ("batching.reserve_output_tokens", "batching.reserve_output_tokens"),
    ],
)
def test_an_emptied_box_is_null(key: str, path: str) -> None:
    found = apply(LIMITED, shown(LIMITED) | {key: None})
    assert changes(LIMITED.to_dict(), found.to_dict()) == {path: None}


def test_a_rate_limit_keeps_its_burst_when_its_rate_changes() -> None:
    limit = apply(LIMITED, shown(LIMITED) | {"admission.rate_limit.rate_rps": 4.0}).admission.rate_limit
    assert limit is not None
    assert (limit.rate_rps, limit.burst) == (4.0, 7.0)


def test_what_is_off_is_switched_on_by_a_number_and_keeps_the_rest_when_it_changes() -> None:
    on = apply(MONDAY, shown(MONDAY) | {"admission.shed.ttft_s": 0.7, "admission.rate_limit.rate_rps": 5.0})
    assert on.admission.shed is not None
    assert on.admission.rate_limit is not None
    assert (on.admission.shed.ttft_s, on.admission.rate_limit.burst) == (0.7, 5.0)
    throttle = apply(LIMITED, shown(LIMITED) | {"traffic.client.throttle.k": 3.0}).traffic.client.throttle
    assert throttle is not None
    assert (throttle.k, throttle.window_s) == (3.0, 60.0)


def test_an_order_of_the_queue_comes_with_its_usual_figures() -> None:
    base = MONDAY.replace({"admission.discipline": {"kind": "codel", "target_s": 0.3}})
    assert apply(base, shown(base)) is base
    assert apply(base, shown(base) | {"admission.discipline.kind": "fifo"}).admission.discipline.kind == "fifo"
    assert apply(MONDAY, shown(MONDAY) | {"admission.discipline.kind": "codel"}).to_dict() == (
        MONDAY.replace({"admission.discipline": {"kind": "codel"}}).to_dict()
    )


def test_the_engine_settings_have_the_engine_s_names() -> None:
    found = settings_of(MONDAY)
    names = {name_of(path) for path in found}
    assert {
        "--max-num-seqs",
        "--max-num-batched-tokens",
        "--gpu-memory-utilization",
        "--max-model-len",
        "--max-num-queued-tokens",
        "--max-num-queued-reqs",
    } <= names
    assert len(names) == len(found)
    assert all(f"`{name_of(path)}`" in control.label for path, control in found.items())
    assert {"shed", "discipline", "throttle", "rate_limit", "max_retries", "retry_budget_ratio"} <= names
    assert {"autoscaler", "metric", "target", "min_replicas", "count_starting", "provision_s"} <= names
    assert {"chunked", "prefill_first", "static", "disaggregated"} == set(found["batching.policy"].choices or {})
    assert set(ONLY_WITH) < set(found)


def test_two_pools_have_sizes_of_their_own() -> None:
    found = controls(MONDAY)
    apart = apply(MONDAY, shown(MONDAY) | {"batching.policy": "disaggregated", POOLS[0]: 3, POOLS[1]: 5})
    assert apart.replicas == 8
    assert apart.fleet.replicas == MONDAY.fleet.replicas == MONDAY.replicas
    assert [found[pool].value for pool in POOLS] == [1, 1]


def test_people_in_a_closed_loop_have_a_control_instead_of_a_rate() -> None:
    keys = controls(Scenario.from_dict({"traffic": {"process": "closed"}}))
    assert "traffic.closed.users" in keys
    assert "traffic.rate_rps" not in keys


def test_yes_and_no_are_a_list_of_two() -> None:
    keys = controls(MONDAY)
    assert keys["autoscaler.count_starting"].value == "yes"
    off = apply(MONDAY, shown(MONDAY) | {"autoscaler.count_starting": "no"})
    assert off.autoscaler.count_starting is False
    assert controls(off)["autoscaler.count_starting"].value == "no"


def test_chips_of_a_replica_are_those_of_all_stages() -> None:
    base = Scenario.from_dict({"parallelism": {"tp": 4, "pp": 2}})
    drawn = controls(base)
    assert drawn["parallelism.tp"].choices[4] == "8 chips"
    assert drawn["parallelism.pp"].label.startswith("`--pipeline-parallel-size`")


@pytest.mark.parametrize(
    ("split", "chips", "eight"),
    [
        ({"tp": 4}, "4 chips", {"parallelism.tp": 8}),
        ({"tp": 4, "ep": 4}, "4 chips", {"parallelism.tp": 8, "parallelism.ep": 8}),
        ({"tp": 1, "ep": 4}, "4 chips", {"parallelism.ep": 8}),
        ({"tp": 4, "sp": "operators"}, "8 chips", {"parallelism.tp": 8}),
    ],
)
def test_more_chips_are_split_as_the_present_ones(split: dict[str, Any], chips: str, eight: dict[str, int]) -> None:
    control = controls(Scenario.from_dict({"parallelism": split}))["parallelism.tp"]
    assert control.choices is not None
    assert (control.value, control.choices[control.value]) == (4, chips)
    assert control.changes(8) == eight
