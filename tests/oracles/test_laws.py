"""Laws that hold in every run, whatever the lengths, the limits and the luck: Little's law, flow balance, PASTA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from engine import Result, Scenario, Trace, read_trace, simulate
from engine.serving import REJECT_REASONS

Floats = NDArray[np.float64]
ROUNDING = 1e-9

SMALL = {
    "performance": {"kind": "linear", "overhead_s": 0.01, "token_s": 5e-5, "seq_s": 2e-4, "kv_token_s": 1e-7},
    "batching": {"max_num_seqs": 16, "max_num_batched_tokens": 256},
    "fleet": {"replicas": 1},
    "slo": [],
}
"""One replica with short steps, small prompts and few slots."""

FLEETS: dict[str, dict[str, Any]] = {
    "ample": {},
    "preempting": {"batching.kv_capacity_tokens": 2600},
    "reserving": {"batching.kv_capacity_tokens": 2600, "batching.kv_policy": "reserve"},
    "refusing": {"admission.max_outstanding": 20},
    "three at random": {"fleet.replicas": 3, "fleet.routing.policy": "random"},
}


def rush() -> Trace:
    """A trace of two classes that no fleet here keeps up with."""
    rng = np.random.default_rng(20_250_101)
    arrival = np.cumsum(rng.exponential(0.05, 800))
    prompt, output = rng.integers(1, 600, 800), rng.integers(1, 150, 800)
    kind = np.where(rng.random(800) < 0.3, "long", "short")
    lines = [f"{t!r},{p},{o},{k}" for t, p, o, k in zip(arrival.tolist(), prompt, output, kind, strict=True)]
    return read_trace("\n".join(["arrival_s,prompt_tokens,output_tokens,class", *lines, ""]).encode())


@pytest.fixture(scope="module", params=FLEETS.values(), ids=FLEETS.keys())
def emptied(request: pytest.FixtureRequest) -> Result:
    """A run that starts empty and goes on until it is empty again."""
    trace = rush()
    source = {"process": "trace", "trace": {"source": f"sha256:{trace.sha256}"}}
    run = {"horizon_s": None, "warmup_s": 0, "seeds": 1}
    return simulate(Scenario.from_dict({**SMALL, "traffic": source, "run": run}).replace(request.param), trace)


def served(result: Result) -> pd.DataFrame:
    """The rows of those who were let in."""
    rows = result.requests
    return rows[rows["state"] != "rejected"]


def integral(result: Result, column: str) -> float:
    """Request seconds below a column of the timeline."""
    return float((result.timeline[column] * result.timeline["width_s"]).sum())


def test_littles_law_over_a_run_from_empty_to_empty(emptied: Result) -> None:
    rows, length = served(emptied), float(emptied.timeline["width_s"].sum())
    in_system = (integral(emptied, "queue") + integral(emptied, "running")) / length
    rate, sojourn = len(rows) / length, float((rows["left_s"] - rows["arrival_s"]).mean())
    assert in_system == pytest.approx(rate * sojourn, rel=ROUNDING)


def test_littles_law_of_the_batch_and_of_the_queue(emptied: Result) -> None:
    rows = served(emptied)
    if rows["preemptions"].any():  # back in the queue: rows don't say for how long
        assert integral(emptied, "queue") > float((rows["scheduled_s"] - rows["arrival_s"]).sum()) * (1 + ROUNDING)
        return
    working = float((rows["finish_s"] - rows["scheduled_s"]).sum())
    assert integral(emptied, "running") == pytest.approx(working, rel=ROUNDING)
    assert float(emptied.usage.batch_s.sum()) == pytest.approx(working, rel=ROUNDING)
    waiting = float((rows["scheduled_s"] - rows["arrival_s"]).sum())
    assert integral(emptied, "queue") == pytest.approx(waiting, rel=ROUNDING)


def test_every_token_is_made_once(emptied: Result) -> None:
    length = float(emptied.timeline["width_s"].sum())
    made = emptied.summary()["throughput"]["output_tokens_per_s"] * length  # type: ignore[index]
    assert made == pytest.approx(float(served(emptied)["output_tokens"].sum()), rel=ROUNDING)


def test_the_fleets_do_what_their_names_say(emptied: Result, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    requests = emptied.summary()["requests"]
    assert (emptied.summary()["preemptions"] > 0) == (name == "preempting")  # type: ignore[operator]
    assert (requests["rejected"] > 0) == (name == "refusing")  # type: ignore[index]
    assert requests["unfinished"] == 0  # type: ignore[index]


@pytest.mark.parametrize("changes", FLEETS.values(), ids=FLEETS.keys())
def test_flow_balance_of_every_seed_and_class(changes: dict[str, Any]) -> None:
    classes = [
        {"name": "short", "weight": 3.0, "prompt_tokens": {"dist": "uniform", "low": 1, "high": 300}},
        {"name": "long", "weight": 1.0, "prompt_tokens": {"dist": "uniform", "low": 200, "high": 900}},
    ]
    output = {"dist": "geometric", "mean": 60}
    traffic = {"rate_rps": 20.0, "classes": [{**kind, "output_tokens": output} for kind in classes]}
    run = {"horizon_s": 40, "warmup_s": 0, "seeds": 4, "seed": 20_250_101}
    result = simulate(Scenario.from_dict({**SMALL, "traffic": traffic, "run": run}).replace(changes))
    rows = result.requests
    ended = {
        "completed": rows["finish_s"].notna() & (rows["left_s"] == rows["finish_s"]),
        "rejected": rows["reason"].notna() & (rows["left_s"] == rows["arrival_s"]) & rows["scheduled_s"].isna(),
        "timed_out": pd.Series(False, rows.index),  # nobody has a deadline here
        "unfinished": rows["left_s"].isna() & rows["finish_s"].isna(),
    }
    assert all(((rows["state"] == state) == seen).all() for state, seen in ended.items())
    groups = rows.groupby(["seed", "class"], observed=False)
    assert len(groups) == 8
    balance = pd.DataFrame(ended).groupby([rows["seed"], rows["class"]], observed=False).sum()
    assert (balance.sum(axis=1) == groups.size()).all()
    assert balance["completed"].all()
    requests = result.summary()["requests"]
    assert {state: requests[state] for state in ended} == balance.sum().to_dict()  # type: ignore[index]
    assert requests["offered"] == len(rows)  # type: ignore[index]
    check_levels(result.timeline, rows)


def check_levels(timeline: pd.DataFrame, rows: pd.DataFrame) -> None:
    """At the end of every bin, who came less who left is who is there."""
    gone = ["completed", "timed_out", *(f"rejected_{reason}" for reason in REJECT_REASONS)]
    for seed, bins in timeline.groupby("seed"):
        level = (bins["offered"] - bins[gone].sum(axis=1)).cumsum().to_numpy()
        edges = (bins["t_s"] + bins["width_s"]).to_numpy()
        mine = rows[rows["seed"] == seed]
        came = np.searchsorted(np.sort(mine["arrival_s"].to_numpy()), edges)
        left = np.searchsorted(np.sort(mine["left_s"].dropna().to_numpy()), edges, side="right")
        np.testing.assert_array_equal(level, came - left)


def found_and_average(arrivals: dict[str, Any]) -> tuple[Floats, Floats]:
    """(seeds,): the mean number that an arrival finds in the system, and the number in the system averaged over time.

    The first is summed over arrivals and divided by their expected count: so, with Poisson arrivals, both have the same
    mean over any stretch of time, a start with nobody there included.
    """
    rate, horizon_s, seeds = 6.0, 300.0, 24
    lengths = {
        "prompt_tokens": {"dist": "uniform", "low": 1, "high": 200},
        "output_tokens": {"dist": "geometric", "mean": 50},
    }
    traffic = {"rate_rps": rate, **arrivals, "classes": [lengths]}
    run = {"horizon_s": horizon_s, "warmup_s": 0, "seeds": seeds, "seed": 20_250_101}
    result = simulate(Scenario.from_dict({**SMALL, "traffic": traffic, "run": run}))
    a = result.run.attempts
    found = np.zeros(seeds)
    for i in range(seeds):
        mine = slice(int(a.seed_start[i]), int(a.seed_start[i + 1]))
        came, left = a.arrival_s[mine], np.sort(a.left_s[mine])  # nan, for "not yet", sorts last
        found[i] = (np.arange(came.size) - np.searchsorted(left, came)).sum() / (rate * horizon_s)
    t = result.timeline
    area = ((t["queue"] + t["running"]) * t["width_s"]).groupby(t["seed"]).sum()
    return found, area.to_numpy() / horizon_s


def test_poisson_arrivals_see_time_averages_and_bursts_do_not() -> None:
    found, average = found_and_average({"process": "poisson"})
    gap = found - average
    half_width = float(stats.t.isf(0.0005, gap.size - 1)) * gap.std(ddof=1) / gap.size**0.5
    assert abs(gap.mean()) <= half_width
    assert half_width < 0.1 * average.mean(), "an interval that could show a difference"
    found, average = found_and_average({"process": "gamma", "cv": 3.0})
    assert found.mean() > 1.3 * average.mean()
    assert (found > average).all()
