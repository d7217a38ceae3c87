"""The fewest replicas: so many keep the promise, one fewer don't, and more never do harm."""

from __future__ import annotations

import pytest

from engine import Scenario, simulate
from engine.study import Fewest, fewest_replicas
from engine.study.search import fewest

QUICK = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 3.0,
            "classes": [
                {
                    "prompt_tokens": {"dist": "constant", "value": 1},
                    "output_tokens": {"dist": "geometric", "mean": 8},
                }
            ],
        },
        "performance": {"kind": "linear", "overhead_s": 0.125},
        "batching": {"max_num_seqs": 1},
        "fleet": {"replicas": 2},
        "slo": [{"metric": "queue", "threshold_s": 1.0, "target": 0.9}],
        "run": {"horizon_s": 300.0, "warmup_s": 30.0, "seeds": 6},
    }
)
"""Three requests of one second a second, one at a time."""


def attainment(s: Scenario, replicas: int) -> float:
    found = simulate(s.replace({"fleet.replicas": replicas})).attainments[0].attainment
    assert found is not None
    return found


def checked(s: Scenario, **limits: int) -> Fewest:
    """The answer, after a look at what the engine says about it."""
    found = fewest_replicas(s, **limits)
    assert found is not None
    assert attainment(s, found.replicas) == found.trial(found.replicas).attainment >= s.slo[0].target  # type: ignore[union-attr]
    if found.replicas > 1:
        assert attainment(s, found.replicas - 1) == found.trial(found.replicas - 1).attainment < s.slo[0].target  # type: ignore[union-attr]
    return found


def test_so_many_keep_it_and_one_fewer_do_not() -> None:
    found = checked(QUICK)
    assert found.replicas >= 4
    assert (found.have, found.target, found.runs) == (2, 0.9, 6)
    assert found.changes == {"fleet.replicas": found.replicas}
    again = fewest_replicas(QUICK.replace(found.changes))
    assert again is not None
    assert (again.replicas, again.changes) == (found.replicas, {}), "wherever it begins"


def test_more_replicas_never_do_harm() -> None:
    found = [attainment(QUICK, count) for count in range(2, 9)]
    assert found == sorted(found)


def test_the_range_is_that_of_the_intervals() -> None:
    found = checked(QUICK.replace({"slo.0.target": 0.95}))
    assert found.perhaps is not None
    assert found.surely is not None
    assert found.perhaps <= found.replicas <= found.surely
    for trial in found.trials:
        assert trial.ci95 is not None
        assert (trial.ci95[1] >= 0.95) == (trial.replicas >= found.perhaps)
        assert (trial.ci95[0] >= 0.95) == (trial.replicas >= found.surely)


def test_stricter_promises_need_no_fewer() -> None:
    loose, strict = checked(QUICK.replace({"slo.0.target": 0.8})), checked(QUICK.replace({"slo.0.threshold_s": 0.25}))
    assert loose.replicas <= checked(QUICK).replicas <= strict.replicas


def test_one_is_enough_for_little() -> None:
    found = checked(QUICK.replace({"traffic.rate_rps": 0.05}))
    assert found.replicas == 1
    assert found.trial(0) is None


def test_one_run_has_no_range() -> None:
    found = checked(QUICK.replace({"run.seeds": 1}))
    assert (found.perhaps, found.surely) == (None, None)


def test_an_autoscaler_is_switched_off() -> None:
    found = fewest_replicas(QUICK.replace({"autoscaler.policy": "hpa", "autoscaler.max_replicas": 8}))
    assert found is not None
    assert found.changes == {"fleet.replicas": found.replicas, "autoscaler.policy": "none"}


def test_clients_who_try_again() -> None:
    patient = QUICK.replace(
        {"traffic.client.max_retries": 1, "admission.max_outstanding": 3, "slo.0.measured_at": "client",
         "run.seeds": 2, "run.horizon_s": 100.0, "slo.0.threshold_s": 3.0}
    )  # fmt: skip
    assert checked(patient).replicas >= 3


def test_what_no_number_keeps_and_what_cannot_be_judged() -> None:
    assert fewest_replicas(QUICK.replace({"slo.0.metric": "e2e", "slo.0.threshold_s": 0.1}), most=16) is None
    assert fewest_replicas(QUICK.replace({"slo": []})) is None
    silent = QUICK.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})
    assert fewest_replicas(silent) is None


@pytest.mark.parametrize("least", range(1, 20))
@pytest.mark.parametrize("guess", [1, 2, 7, 19])
def test_the_search_finds_the_least(least: int, guess: int) -> None:
    asked: list[int] = []

    def met(count: int) -> bool:
        asked.append(count)
        return count >= least

    assert fewest(met, guess, 19) == least
    assert min(asked) >= 1
    assert fewest(lambda count: False, guess, 19) is None
