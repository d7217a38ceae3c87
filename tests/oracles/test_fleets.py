"""Fleets whose parts react to one another, against what is known of them: backlogs, retries, two choices, throttling.

`tests/truth/fleet_oracles.csv` has the rows. Those about two choices are limits for many replicas. The mean of a fleet
of 200 is within 3 % of them, but not at a load of 0.99, where only two of 200 are idle on average; how often a queue is
long isn't, and is compared with a Markov chain of 200 replicas as well.
"""

from __future__ import annotations

import csv
import heapq
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Scenario, simulate
from engine.outcome import Result
from engine.serving.coupled.buckets import Buckets
from engine.serving.coupled.throttle import refusal_probability
from tests.oracles import two_choices
from tests.oracles.estimate import Floats

TABLE = Path(__file__).resolve().parent.parent / "truth" / "fleet_oracles.csv"
STEPS = 1024
"""Steps of a service, on average."""


def rows(family: str) -> dict[str, dict[str, float]]:
    """Known values by parameters (JSON) and quantity."""
    found: dict[str, dict[str, float]] = {}
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["name"] == family:
                found.setdefault(row["params_json"], {})[row["quantity"]] = float(row["value"])
    return found


def single_servers(replicas: int, rate_rps: float, output: dict[str, Any], **sections: dict[str, Any]) -> Scenario:
    """Replicas that serve one request at a time for as many steps of 1/1024 s as it has output tokens."""
    document: dict[str, Any] = {
        "traffic": {
            "rate_rps": rate_rps,
            "classes": [{"name": "all", "prompt_tokens": {"dist": "constant", "value": 1}, "output_tokens": output}],
        },
        "performance": {"kind": "linear", "overhead_s": 1.0 / STEPS},
        "batching": {"max_num_seqs": 1, "max_num_batched_tokens": 1},
        "fleet": {"replicas": replicas},
        "slo": [],
    }
    for name, keys in sections.items():
        document[name] = {**document.get(name, {}), **keys}
    return Scenario.from_dict(document)


EXPONENTIAL = {"dist": "geometric", "mean": STEPS}


@pytest.mark.parametrize(("text", "known"), rows("Fluid_backlog").items())
def test_a_backlog_grows_and_drains_as_a_fluid(text: str, known: dict[str, float]) -> None:
    p = json.loads(text)
    service, pace = {"dist": "constant", "value": 128}, {"overhead_s": 1.0 / (128 * p["cap"])}
    plan = {"kind": "steps", "points": [[0.0, p["lam_peak"] / p["lam_after"]], [float(p["T"]), 1.0]]}
    s = single_servers(
        1,
        p["lam_after"],
        service,
        traffic={"process": "deterministic", "shape": plan},
        performance=pace,
        run={"horizon_s": 4.0 * p["T"], "warmup_s": 0.0, "seeds": 1},
    )
    seen = simulate(s).requests
    wait = seen.scheduled_s.fillna(np.inf) - seen.arrival_s
    queue = [((seen.arrival_s <= t) & (seen.scheduled_s > t)).sum() for t in np.arange(0.0, 3.0 * p["T"], 0.5)]
    peak = int(np.argmax(queue))
    empty = next(i for i in range(peak, len(queue)) if queue[i] <= 1)
    assert max(queue) == pytest.approx(known["peak_queue"], rel=0.02)
    assert wait.max() == pytest.approx(known["max_FIFO_delay"], rel=0.02)
    assert 0.5 * (empty - peak) == pytest.approx(known["drain_time_after_peak"], rel=0.02)
    assert wait.sum() == pytest.approx(known["total_delay_area"], rel=0.02)


def attempts_of(result: Result, since_s: float, until_s: float) -> pd.DataFrame:
    """Attempts per request that first came in [since, until): how many, and the state of the last."""
    seen = result.requests
    early = (
        seen[(seen.attempt == 0) & (seen.arrival_s >= since_s) & (seen.arrival_s < until_s)]
        .set_index(["seed", "request"])
        .index
    )
    mine = seen.set_index(["seed", "request"]).loc[early]
    return mine.groupby(level=[0, 1]).agg(count=("attempt", "size"), last=("state", "last"))


@pytest.mark.parametrize(("text", "known"), rows("Retry_amplification").items())
def test_failures_multiply_attempts(text: str, known: dict[str, float]) -> None:
    """One server that holds one request loses a / (1 + a) of what is offered; long waits keep attempts independent."""
    p = json.loads(text)
    retries = {"max_retries": p["max_retries"], "backoff_s": 20.0}
    each = known["attempts_per_request"]
    if p["p_fail"] == 1.0:
        limit, rate = 0, 1.0
    else:
        limit, rate = 1, p["p_fail"] / (1 - p["p_fail"]) / each
    s = single_servers(
        1, rate, EXPONENTIAL, traffic={"client": retries}, admission={"max_outstanding": limit},
        run={"horizon_s": 500.0, "warmup_s": 0.0, "seeds": 16},
    )  # fmt: skip
    found = attempts_of(simulate(s), 150.0, 350.0)
    assert found["count"].mean() == pytest.approx(each, rel=0.02)
    assert (found["last"] != "completed").mean() == pytest.approx(known["P_request_fails"], rel=0.03)


@pytest.mark.parametrize(("text", "known"), rows("Retry_layers").items())
def test_layers_multiply_attempts(text: str, known: dict[str, float]) -> None:
    p = json.loads(text)
    client = {"max_retries": p["attempts_per_layer"] - 1, "retry_layers": p["layers"], "backoff_s": 0.1}
    s = single_servers(
        1, 1.0, EXPONENTIAL, traffic={"client": client}, admission={"max_outstanding": 0},
        run={"horizon_s": 100.0, "warmup_s": 0.0, "seeds": 1},
    )  # fmt: skip
    assert (attempts_of(simulate(s), 0.0, 70.0)["count"] == known["max_amplification"]).all()


@pytest.mark.parametrize(("text", "known"), rows("SRE_adaptive_throttle").items())
def test_clients_throttle_by_the_book(text: str, known: dict[str, float]) -> None:
    p = json.loads(text)
    found = refusal_probability(np.array([float(p["requests"])]), np.array([float(p["accepts"])]), p["K"])
    assert found[0] == pytest.approx(known["P_reject_locally"], abs=1e-12)


@given(
    rate=st.floats(0.1, 20.0),
    burst=st.integers(1, 30),
    gaps=st.lists(st.floats(0.0, 3.0), min_size=1, max_size=60),
    window=st.floats(0.0, 20.0),
)
@settings(max_examples=200, deadline=None)
def test_no_window_lets_more_through_than_the_bucket_holds(
    rate: float, burst: int, gaps: list[float], window: float
) -> None:
    bucket, times = Buckets(rate, burst, 1), np.cumsum(gaps)
    passed = np.array([t for t in times if bucket.passes(np.array([0]), np.array([t]))[0]])
    for start in passed:
        assert ((passed >= start) & (passed <= start + window)).sum() <= burst + rate * window + 1e-6


# -- many replicas -----------------------------------------------------------------------------------------------------


def sojourn(policy: str, load: float, *, replicas: int, horizon_s: float, seeds: int, **routing: Any) -> Result:
    """Single servers with exponential services behind a router."""
    s = single_servers(
        replicas, load * replicas, EXPONENTIAL, fleet={"routing": {"policy": policy, **routing}},
        run={"horizon_s": horizon_s, "warmup_s": 0.0, "seeds": seeds, "seed": 71},
    )  # fmt: skip
    return simulate(s)


def mean_sojourn(result: Result, since_s: float, until_s: float) -> float:
    """Of those that came in [since, until), who have all left."""
    seen = result.requests
    settled = seen[(seen.arrival_s >= since_s) & (seen.arrival_s < until_s)]
    assert settled.finish_s.notna().mean() > 0.9999
    return float((settled.finish_s - settled.arrival_s).mean())


TWO = {text: known for text, known in rows("PowerOfD_meanfield").items() if json.loads(text)["d"] == 2}
NEAR = [(text, known) for text, known in TWO.items() if json.loads(text)["lam"] <= 0.95]
"""One choice is M/M/1, which has oracles of its own; more than two aren't offered."""


@pytest.mark.accept
@pytest.mark.parametrize(("text", "known"), NEAR)
def test_two_choices_are_near_their_limit(text: str, known: dict[str, float]) -> None:
    """The mean within 3 % of the limit's, and every frequency what a Markov chain of 200 replicas has, within the
    noise of both; where both are known to 1 % and the chain is within 1 % of the limit, the engine is within 3 %."""
    load = json.loads(text)["lam"]
    result = sojourn("power_of_two", load, replicas=200, horizon_s=260.0, seeds=12, report_interval_s=0.0)
    mean = mean_sojourn(result, 40.0, 240.0)
    print(text, "W_mean", known["W_mean"], mean)
    assert mean == pytest.approx(known["W_mean"], rel=0.03)
    ours, spread = _levels(_shares(result, 40.0, 240.0, 200))
    chain, chain_spread = _levels(np.array([two_choices.shares(load, 200, 40.0, 1240.0, seed) for seed in range(8)]))
    likely = [k for k in range(1, two_choices.LEVELS) if known.get(f"P(queue>={k})", 0.0) > 1e-3]
    assert len(likely) >= 3
    for k in likely:
        value = known[f"P(queue>={k})"]
        print(f"  P(queue>={k}): limit {value:.5f}, chain {chain[k]:.5f}, engine {ours[k]:.5f} +- {2 * spread[k]:.5f}")
        assert abs(ours[k] - chain[k]) < 3 * np.hypot(spread[k], chain_spread[k])
        known_well = max(spread[k], chain_spread[k]) < 0.01 * value
        if known_well and abs(chain[k] / value - 1) < 0.01:
            assert ours[k] == pytest.approx(value, rel=0.03)


def _levels(found: Floats) -> tuple[Floats, Floats]:
    """Mean over repetitions and its standard error, by level."""
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(found.shape[0])


def _shares(result: Result, since_s: float, until_s: float, replicas: int) -> Floats:
    """(seeds, levels): share of the time in which a replica holds at least 0, 1, ... requests."""
    seen = result.requests
    above = np.zeros((result.run.horizon_s.size, two_choices.LEVELS + 1))
    for (seed, _), mine in seen.groupby(["seed", "replica"]):
        came, left = mine.arrival_s.to_numpy(), mine.left_s.dropna().to_numpy()
        times = np.concatenate([came, left, [since_s, until_s]])
        change = np.concatenate([np.ones(came.size), -np.ones(left.size), [0.0, 0.0]])
        order = np.argsort(times, kind="stable")
        times, held = np.clip(times[order], since_s, until_s), np.cumsum(change[order])
        for k in range(above.shape[1]):
            above[int(seed) - result.scenario.run.seed, k] += float((np.diff(times) * (held[:-1] >= k)).sum())
    return above / (replicas * (until_s - since_s))


@pytest.mark.accept
def test_old_reports_make_the_shortest_queue_a_herd() -> None:
    """Reports five service times old: the shortest queue is worse than no choice, two choices aren't (Mitzenmacher
    2000, How useful is old information); what a router knows it has sent itself repairs it."""
    old = {"report_interval_s": 5.0, "count_own_sends": False}

    def mean(policy: str, **routing: Any) -> float:
        result = sojourn(policy, 0.8, replicas=10, horizon_s=2000.0, seeds=8, **routing)
        return mean_sojourn(result, 200.0, 1850.0)

    none, shortest, two = mean("random"), mean("least_outstanding", **old), mean("power_of_two", **old)
    known_shortest = mean("least_outstanding", report_interval_s=5.0)
    known_two = mean("power_of_two", report_interval_s=5.0)
    print("random", none, "shortest", shortest, "two", two, "counting sends", known_shortest, known_two)
    assert shortest > 1.2 * none
    assert two < none
    assert known_shortest < none
    assert known_two < none


@pytest.mark.accept
@pytest.mark.parametrize(("text", "known"), rows("Retry_metastable_meanfield").items())
@pytest.mark.parametrize("above", [False, True])
def test_retries_settle_where_the_model_says(text: str, known: dict[str, float], above: bool) -> None:
    """From below and from above the tipping point; the trigger is a surge that ends.

    The model draws a new service for every attempt, a retry here has the lengths of the first attempt, so those that
    failed are longer than others. With a timeout of five services that decides: from below the fleet tips over, and so
    does a plain simulation of such queues, which stays where the model says when services are drawn anew.
    """
    p = json.loads(text)
    outer = sorted(value for name, value in known.items() if name.startswith("fixed_point"))
    target = outer[-1] if above else outer[0]
    if not above and len(outer) > 1 and p["timeout"] * (1 - outer[0]) < 3:
        assert plain_farm(p, anew=True) == pytest.approx(target, rel=0.05)
        target = plain_farm(p, anew=False)
        assert target > outer[1]
    client = {
        "timeout_s": float(p["timeout"]), "on_timeout": "ignore", "max_retries": p["max_retries"], "backoff_s": 5.0,
    }  # fmt: skip
    surge = {"kind": "steps", "points": [[0.0, 4.0], [60.0, 1.0]]}
    s = single_servers(
        200, 200 * p["lam"], EXPONENTIAL, fleet={"routing": {"policy": "random"}},
        traffic={"client": client, "shape": surge if above else {"kind": "steady"}},
        run={"horizon_s": 600.0, "warmup_s": 0.0, "seeds": 1, "seed": 5},
    )  # fmt: skip
    seen = simulate(s).requests
    late = float(((seen.arrival_s > 400.0) & (seen.arrival_s < 590.0)).sum()) / 190.0 / 200
    print(text, "above" if above else "below", "model", target, "simulated", late)
    assert late == pytest.approx(target, rel=0.05)


def plain_farm(p: dict[str, float], anew: bool, replicas: int = 200, backoff_s: float = 5.0) -> float:
    """Attempts per second and replica, late in a run of first-come-first-served queues whose clients give up and come
    again; ``anew``: with a service drawn anew."""
    rng = np.random.default_rng(8)
    first = np.cumsum(rng.exponential(1 / (replicas * p["lam"]), int(replicas * p["lam"] * 600)))
    coming = [(float(t), 0, float(rng.exponential())) for t in first]
    heapq.heapify(coming)
    free, late = np.zeros(replicas), 0
    while coming:
        now, attempt, service = heapq.heappop(coming)
        if now > 590.0:
            break
        late += now > 400.0
        replica = rng.integers(replicas)
        free[replica] = max(now, free[replica]) + service
        if free[replica] - now >= p["timeout"] and attempt < p["max_retries"]:
            again = now + p["timeout"] + rng.random() * backoff_s * 2**attempt
            heapq.heappush(coming, (again, attempt + 1, float(rng.exponential()) if anew else service))
    return late / 190.0 / replicas
