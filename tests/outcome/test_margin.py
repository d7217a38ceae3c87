"""Whether a verdict would turn, against the same scenario simulated with longer and shorter steps."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome.margin import Doubt, backlog_s, doubt, shares_in_time
from engine.outcome.story import story

OVERHEAD_S = 0.02
SERVICE = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 8.0,
            "process": "gamma",
            "cv": 1.5,
            "classes": [
                {
                    "name": "chat",
                    "prompt_tokens": {"dist": "constant", "value": 200},
                    "output_tokens": {"dist": "geometric", "mean": 100},
                }
            ],
        },
        "performance": {"kind": "linear", "overhead_s": OVERHEAD_S, "token_s": 1e-5},
        "batching": {"max_num_seqs": 12},
        "fleet": {"replicas": 2},
        "slo": [{"threshold_s": 1.0, "target": 0.9}],
        "run": {"seeds": 4, "horizon_s": 400.0, "warmup_s": 60.0},
    }
)


def slower(s: Scenario, factor: float) -> Scenario:
    """The scenario with steps that take `factor` times as long."""
    return s.replace({"performance.overhead_s": OVERHEAD_S * factor, "performance.token_s": 1e-5 * factor})


@pytest.mark.parametrize("factor", [0.8, 0.9, 1.0, 1.1, 1.2])
@pytest.mark.parametrize("changes", [{}, {"fleet.replicas": 3}, {"traffic.rate_rps": 7.0}])
def test_shares_in_time_are_those_of_a_simulation(factor: float, changes: dict[str, object]) -> None:
    service = SERVICE.replace(changes)
    now, then = simulate(service), simulate(slower(service, factor))
    fleet_rps = (now.capacity_rps or 0.0) * service.fleet.replicas
    estimated = shares_in_time(now, service.slo[0], fleet_rps, factor)[0]
    assert estimated == pytest.approx(then.attainments[0].attainment, abs=1e-12 if factor == 1.0 else 0.08)


def test_a_fifth_more_goes_a_good_part_of_the_way_to_the_simulation() -> None:
    now, then = simulate(SERVICE), simulate(slower(SERVICE, 1.2))
    fleet_rps = (now.capacity_rps or 0.0) * 2
    estimated = shares_in_time(now, SERVICE.slo[0], fleet_rps, 1.2)[0]
    before, real = now.attainments[0].attainment, then.attainments[0].attainment
    assert before - real > 0.1
    assert abs(estimated - real) < 0.6 * (before - real)


def test_refusals_change_with_the_capacity() -> None:
    full = SERVICE.replace({"admission.max_outstanding": 12, "traffic.rate_rps": 20.0})
    now, then = simulate(full), simulate(slower(full, 1.2))
    fleet_rps = (now.capacity_rps or 0.0) * 2
    estimated = shares_in_time(now, full.slo[0], fleet_rps, 1.2)[0]
    assert estimated == pytest.approx(then.attainments[0].attainment, abs=0.03)


def test_a_backlog_by_hand() -> None:
    rows = "".join(f"{t},1,1\n" for t in (0.0, 1.0, 1.5, 10.0))
    from engine.traffic import read_trace

    trace = read_trace(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode())
    changes = {"traffic": {"process": "trace", "trace": {"source": "given"}}, "run.warmup_s": 0.0, "run.seeds": 1}
    result = simulate(SERVICE.replace({**changes, "run.horizon_s": 60.0}), trace)
    np.testing.assert_allclose(backlog_s(result, 2.0), [0.0, 1.0, 2.5, 0.0])
    np.testing.assert_allclose(backlog_s(result, 0.25), [0.0, 0.0, 0.0, 0.0])


def test_only_what_is_near_its_target_is_in_doubt() -> None:
    result = simulate(SERVICE.replace({"fleet.replicas": 4}))
    kept = result.attainments[0].attainment or 0.0
    easy, near = SERVICE.slo[0], SERVICE.replace({"slo.0.target": round(kept, 4) - 0.001, "slo.0.threshold_s": 1.0})
    fleet_rps = (result.capacity_rps or 0.0) * 4
    assert kept > 0.99
    assert doubt(result, easy, 8.0, fleet_rps, 0.1) == Doubt()
    assert doubt(result, near.slo[0], 8.0, fleet_rps, 0.9).overall
    assert doubt(result, easy, 0.95 * fleet_rps, fleet_rps, 0.1).overload
    assert not doubt(result, easy, 0.8 * fleet_rps, fleet_rps, 0.1).overload


def test_a_measured_profile_leaves_no_doubt_and_fitted_constants_may() -> None:
    assert story(simulate(SERVICE)).doubt == Doubt()
    fitted = SERVICE.replace(
        {"performance": {"kind": "analytic"}, "run.seeds": 2, "run.horizon_s": 120.0, "slo.0.threshold_s": 0.05}
    )
    told = story(simulate(fitted))
    assert told.verdict in ("broken", "overloaded")
    assert told.doubt == Doubt()  # nobody can have a first word in 50 ms, with or without an error of the step times
