"""The wait against the load: equal to the closed form where that is exact, and several times the service."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from engine import Scenario, read_trace
from engine.scenario import preset
from engine.study import LoadCurve, load_curve
from engine.theory import pollaczek_khinchine

MONDAY = preset("monday").scenario
ALONE = {"batching.max_num_seqs": 1, "fleet.replicas": 1, "traffic.process": "poisson"}


@cache
def curve(changes: tuple[tuple[str, Any], ...] = ()) -> LoadCurve:
    found = load_curve(MONDAY.replace(dict(changes)))
    assert found is not None
    return found


def at(found: LoadCurve, load: float) -> int:
    return int(np.flatnonzero(found.load == load)[0])


def test_one_request_after_the_other_waits_as_pollaczek_and_khinchine_say() -> None:
    found = curve(tuple(ALONE.items()))
    assert found.seats == 1
    for i, load in enumerate(found.load):
        if 0.1 < load < 0.9:
            assert abs(found.wait_s[i] - found.single_s[i]) <= 1.3 * found.half_width_s[i] + 0.03 * found.single_s[i]
        assert found.seats_s[i] == pytest.approx(found.single_s[i]), "with one seat both are the same queue"
        assert found.busy[i] == pytest.approx(load, abs=0.06)


def test_under_load_the_wait_is_several_times_the_service_though_the_accelerators_are_not_always_busy() -> None:
    found = curve(tuple(ALONE.items()))
    i = at(found, 0.8)
    times = found.wait_s[i] / found.service_s[i]
    print(f"at a load of 80 %: wait {times:.1f} times the service, accelerators busy {found.busy[i]:.0%}")
    assert times > 2.5
    assert found.busy[i] < 0.87


def test_the_stages_of_a_pipeline_are_busy_by_the_load() -> None:
    """One request alone, and no prompts to share a step with: both stages have work exactly while two are there."""
    two = {"batching.max_num_seqs": 2, "parallelism.pp": 2, "run.seeds": 1}
    found = curve(tuple((ALONE | two).items()))
    assert found.seats == 2
    for i, load in enumerate(found.load):
        if 0.1 < load < 0.9:
            assert found.busy[i] == pytest.approx(load, abs=0.06)


def test_a_group_waits_near_what_its_seats_say_at_high_load_and_half_a_step_at_low() -> None:
    found = curve()
    high = [at(found, load) for load in (0.9, 0.95)]
    assert found.seats > 10
    for i in high:
        assert found.wait_s[i] == pytest.approx(found.seats_s[i], rel=0.6)
        assert found.wait_s[i] < found.single_s[i], "one request after the other waits longer"
    low = at(found, 0.1)
    assert found.seats_s[low] < 1e-6 < found.wait_s[low] < 0.05, "no formula knows of the step that is under way"
    assert (np.diff(found.service_s) > 0).all(), "a larger group is slower for each"
    assert (found.p95_s >= 0).all()
    assert found.own_load == pytest.approx(0.465, abs=0.03)
    assert found.limited_by == "kv", "it is memory that sets the number of seats here"


def test_long_prompts_keep_all_seats_longer_at_once_which_no_formula_knows() -> None:
    found = load_curve(preset("long-prompt").scenario)
    assert found is not None
    assert found.limited_by == "max_num_seqs"
    assert found.wait_s[at(found, 0.9)] > 10 * found.seats_s[at(found, 0.9)]


def test_closed_forms_are_those_of_theory() -> None:
    found = curve(tuple(ALONE.items()))
    i = at(found, 0.5)
    scv = 2 * found.single_s[i] * found.capacity_rps * (1 - 0.5) / 0.5 - 1
    assert found.single_s[i] == pytest.approx(
        pollaczek_khinchine(0.5 * found.capacity_rps, 1 / found.capacity_rps, scv)
    )


def test_users_and_traces_have_a_curve_too() -> None:
    rows = "".join(f"{t},{100 + t},20\n" for t in range(200))
    trace = read_trace(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode())
    quick = {
        "performance": {"kind": "linear", "overhead_s": 0.02, "token_s": 1e-4},
        "batching": {"max_num_seqs": 4},
        "fleet": {"replicas": 1},
    }
    for traffic in (
        {"process": "closed", "closed": {"users": 8}},
        {"process": "trace", "trace": {"source": f"sha256:{trace.sha256}"}},
    ):
        found = load_curve(Scenario.from_dict({**quick, "traffic": traffic}), trace)
        assert found is not None
        assert found.own_load is None
        assert found.seats == 4
        assert found.wait_s[-1] > found.wait_s[0]


def test_nothing_that_fits_has_no_curve() -> None:
    assert load_curve(MONDAY.replace({"batching.kv_capacity_tokens": 1})) is None
