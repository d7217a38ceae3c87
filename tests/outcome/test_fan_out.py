"""Actions of several calls: exact for independent ones, and as issued together in a run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine import Result, Scenario, simulate
from engine.outcome.fan_out import (
    MOST_CALLS,
    at_least_one_beyond,
    call_share,
    call_times,
    fan_out,
    independent_mean,
    independent_quantile,
)

TABLE = Path(__file__).resolve().parent.parent / "truth" / "fan_out_oracles.csv"
STEPS = 1024
"""Steps of a service, on average."""


def rows(family: str) -> list[tuple[dict[str, Any], str, float]]:
    """(parameters, quantity, known value) of a family."""
    with TABLE.open(newline="") as file:
        table = [row for row in csv.DictReader(file) if row["name"] == family]
    return [(json.loads(row["params_json"]), row["quantity"], float(row["value"])) for row in table]


def even(law: Any, size: int = 1_000_000) -> np.ndarray:
    """A sample with as much in every part of a law as the law has, in ascending order."""
    return np.asarray(law.ppf((np.arange(size) + 0.5) / size))


SAMPLES = {"exp1": even(stats.expon()), "lognormal_mu0_sigma1": even(stats.lognorm(1.0))}
PARETO = even(stats.pareto(2.0))


def computed(quantity: str, calls: int) -> float:
    """A quantity of the table, by the code that the screen uses."""
    what, _, law = quantity.partition("_of_max_")
    if law:
        return independent_quantile(SAMPLES[law], calls, 0.5 if what == "median" else float(what[1:]) / 100)
    match quantity:
        case "P(max>p99)" | "P(max>p99.9)":
            return at_least_one_beyond(float(quantity[7:-1]) / 100, calls)
        case "leg_quantile_needed_for_p99_of_max" | "leg_quantile_needed_for_p50_of_max":
            return call_share(float(quantity[len("leg_quantile_needed_for_p") :][:2]) / 100, calls)
        case "E[max]_exp1":
            return independent_mean(SAMPLES["exp1"], calls)
        case "E[max]_pareto_alpha2_xm1":
            return independent_mean(PARETO, calls)
    raise AssertionError(quantity)


@pytest.mark.parametrize(("parameters", "quantity", "known"), rows("Fanout"), ids=str)
def test_independent_calls(parameters: dict[str, int], quantity: str, known: float) -> None:
    exact = quantity.startswith(("P(", "leg"))
    # Of a law with an infinite variance a few thousandths lie beyond the last of a million.
    rel = 1e-12 if exact else 4e-3 if "pareto" in quantity else 2e-3
    assert computed(quantity, parameters["n"]) == pytest.approx(known, rel=rel)


def fork_join(lam: float, calls: int) -> Result:
    """As many queues with one server each as an action has calls, one call to each: exponential services of 1 s."""
    runs = 1024 // calls
    return simulate(
        Scenario.from_dict(
            {
                "traffic": {
                    "rate_rps": lam * calls,
                    "client": {"fan_out": calls},
                    "classes": [
                        {
                            "prompt_tokens": {"dist": "constant", "value": 1},
                            "output_tokens": {"dist": "geometric", "mean": STEPS},
                        }
                    ],
                },
                "performance": {"kind": "linear", "overhead_s": 1.0 / STEPS},
                "batching": {"max_num_seqs": 1, "max_num_batched_tokens": 1},
                "fleet": {"replicas": calls},
                "slo": [],
                "run": {"seeds": runs, "horizon_s": 1500.0, "warmup_s": 300.0},
            }
        )
    )


def fork_join_cases() -> dict[tuple[float, int], dict[str, float]]:
    found: dict[tuple[float, int], dict[str, float]] = {}
    for parameters, quantity, known in rows("ForkJoin"):
        found.setdefault((parameters["lam"], parameters["n"]), {})[quantity] = known
    return found


@pytest.mark.parametrize(("case", "known"), fork_join_cases().items(), ids=str)
def test_calls_to_servers_of_their_own(case: tuple[float, int], known: dict[str, float]) -> None:
    lam, calls = case
    result = fork_join(lam, calls)
    took, _, counted = call_times(result)
    action = took.reshape(-1, calls).max(axis=1)[counted[::calls]]
    done = ~np.isnan(action)
    assert done.mean() > 0.97, "the last ones aren't over at the horizon"
    # Those who came close to the end and were quick would count more than those who came then and weren't.
    arrived = result.run.attempts.arrival_s[::calls][counted[::calls]]
    settled = done & (arrived < 1350.0)
    mean = float(action[settled].mean())
    if "W_mean" in known:
        assert mean == pytest.approx(known["W_mean"], rel=0.04)
    else:
        assert mean == pytest.approx(known["W_mean_approx"], rel=0.07), "an approximation, within 5 % it is said"
        assert mean <= known["W_mean_upper_bound"]
        alone = independent_mean(np.sort(took[counted & ~np.isnan(took)]), calls)
        assert mean < alone, "calls that are issued together meet queues of the same length more often than not"


def together(calls: int = 20, **changes: Any) -> Result:
    """A small service whose actions make several calls."""
    return simulate(
        Scenario.from_dict(
            {
                "traffic": {"rate_rps": 20.0, "client": {"fan_out": calls}},
                "performance": {"kind": "linear", "overhead_s": 0.01, "token_s": 1e-5, "seq_s": 1e-4},
                "batching": {"max_num_seqs": 32},
                "run": {"horizon_s": 200, "seeds": 4, "warmup_s": 20},
            }
        ).replace(changes)
    )


def test_an_action_is_its_slowest_call() -> None:
    result = together(5)
    found = fan_out(result)
    table = result.requests[result.requests.arrival_s >= 20]
    table = table.assign(took=table.finish_s - table.arrival_s, action=table.request // 5)
    actions = table.groupby(["seed", "action"]).took.agg(lambda took: took.max(skipna=False))
    known = np.sort(actions.dropna().to_numpy())
    assert (found.actions, found.timeless) == (actions.size, int(actions.isna().sum()))
    assert found.timeless > 0, "of the last ones some calls are under way"
    assert found.unanswered == int(table.took.isna().sum())
    assert found.action_s[0.5] == np.quantile(known, 0.5, method="inverted_cdf")
    assert found.call_s[0.95] == np.quantile(table.took.dropna(), 0.95, method="inverted_cdf")
    assert found.median_as_call == (table.took <= found.action_s[0.5]).sum() / table.took.notna().sum()
    assert found.median_ci is not None
    assert found.median_ci[0] < found.action_s[0.5] < found.median_ci[1]


def test_an_action_of_one_call_is_the_call() -> None:
    result = together(1)
    found = fan_out(result)
    assert found.action_s == found.call_s
    assert found.call_s[0.95] == result.latency["e2e"].figures["p95"]
    assert found.timeless == found.unanswered


def test_independent_calls_are_quantiles_of_the_same_run() -> None:
    result = together(20)
    found = fan_out(result)
    e2e = np.sort(result.e2e_s[result.observed])
    for calls in range(1, MOST_CALLS + 1):
        share = 0.5 ** (1 / calls)
        assert found.independent_s[0.5][calls - 1] == np.quantile(e2e, share, method="inverted_cdf")
    assert found.independent_s[0.5][0] == found.call_s[0.5]
    assert found.action_s[0.5] < found.independent_s[0.5][19], "calls issued together share their luck"


def test_a_retried_call_counts_from_its_first_attempt() -> None:
    changes = {"admission.max_outstanding": 40, "traffic.client.max_retries": 5, "run.horizon_s": 60, "run.seeds": 2}
    result = together(8, **changes)
    took, seed, counted = call_times(result)
    table = result.requests
    assert table.attempt.max() > 0
    calls = table.groupby(["seed", "request"]).agg(arrival=("arrival_s", "min"), finish=("finish_s", "max"))
    np.testing.assert_allclose(took, calls.finish - calls.arrival, equal_nan=True)
    assert seed.size == counted.size == took.size


def test_the_curves_end_at_everybody() -> None:
    found = fan_out(together(20))
    for curve in (found.call, found.action):
        assert curve.seconds.size <= 2000
        assert (np.diff(curve.seconds) >= 0).all()
        assert (np.diff(curve.share) > 0).all()
        assert curve.share[-1] == 1.0


def test_nobody_comes() -> None:
    found = fan_out(together(3, **{"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}}))
    assert (found.actions, found.timeless, found.call.seconds.size, found.median_as_call) == (0, 0, 0, None)
    assert np.isnan(found.action_s[0.5])
