"""A recorded run served again by the engine, and how far the two are apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from engine import Result, Scenario, Trace, read_trace, simulate
from tests.vllm_runs.recorded import Floats, Recorded

PROFILES = Path(__file__).resolve().parent.parent / "truth" / "vllm_profiles.json"
MAKESPAN_WITHIN, PERCENTILES_WITHIN, CORRELATED_ABOVE = 0.01, 0.06, 0.95
"""What a replay has to reach: relative differences, and the correlation of the curves."""
Profile = dict[str, float]
"""The coefficients of a linear performance profile, in seconds."""
Changes = Mapping[str, object]
"""Settings by path that take the place of a run's own."""
NONE: Changes = MappingProxyType({})


@dataclass(frozen=True)
class Replay:
    """What the engine says of a run, in the order and on the clock of the recording."""

    arrival_s: Floats
    scheduled_s: Floats
    first_token_s: Floats
    finish_s: Floats
    running: Floats
    """(ticks,): at the recording's ticks, from averages over each second."""
    waiting: Floats
    kv_usage: Floats
    """(ticks,): share of the KV capacity; nan where it is unlimited."""
    preemptions: int
    completed: int


@dataclass(frozen=True)
class Figure:
    """One number of a run."""

    name: str
    ours: float
    real: float
    within: float
    """The relative difference that is allowed."""

    @property
    def difference(self) -> float:
        """Relative to the real one."""
        return self.ours / self.real - 1


@cache
def stored() -> dict[str, Any]:
    """What `fit.py` found, by run: `profile`, `least`, and `other_rules`, each with its `changes` and `profile`."""
    runs: dict[str, Any] = json.loads(PROFILES.read_text())["runs"]
    return runs


def stored_profile(name: str) -> Profile:
    """The profile that `fit.py` found for a run."""
    profile: Profile = stored()[name]["profile"]
    return profile


def scenario_of(recorded: Recorded, profile: Profile, changes: Changes = NONE) -> Scenario:
    """The run's engine settings with a profile as its performance; every attempt runs to its end."""
    return Scenario.from_dict(
        {
            "name": recorded.name,
            "traffic": {"process": "trace", "trace": {"source": f"{recorded.name}.csv", "format": "requests"}},
            "performance": {"kind": "linear", **profile},
            "batching": {
                "policy": "chunked",
                "kv_policy": "on_demand",
                "max_num_seqs": recorded.max_num_seqs,
                "max_num_batched_tokens": recorded.max_num_batched_tokens,
                "kv_capacity_tokens": recorded.kv_capacity_tokens,
            },
            "fleet": {"replicas": 1},
            "run": {"horizon_s": None, "warmup_s": 0, "seeds": 1},
        }
    ).replace(dict(changes))


def trace_of(recorded: Recorded, arrival_s: Floats) -> Trace:
    """The run's requests as a trace file of format `requests`, read back."""
    columns = zip(arrival_s.tolist(), recorded.prompt_tokens.tolist(), recorded.output_tokens.tolist(), strict=True)
    lines = ["arrival_s,prompt_tokens,output_tokens", *(f"{t!r},{p},{o}" for t, p, o in columns)]
    return read_trace("\n".join(lines).encode(), "requests")


def replay(
    recorded: Recorded,
    profile: Profile,
    changes: Changes = NONE,
    arrival_s: Floats | None = None,
    run: Callable[[Scenario, Trace], Result] = simulate,
) -> Replay:
    """Serve the run's requests; `arrival_s` (n,), if given, takes the place of the recorded arrivals."""
    arrival_s = recorded.arrival_s if arrival_s is None else arrival_s
    result = run(scenario_of(recorded, profile, changes), trace_of(recorded, arrival_s))
    served, seconds = result.requests, result.timeline
    middle = (seconds["t_s"] + seconds["width_s"] / 2).to_numpy(np.float64)

    def at_ticks(column: str) -> Floats:
        return np.asarray(np.interp(recorded.tick_s, middle, seconds[column].to_numpy(np.float64)))

    return Replay(
        arrival_s=arrival_s,
        scheduled_s=served["scheduled_s"].to_numpy(np.float64),
        first_token_s=served["first_token_s"].to_numpy(np.float64),
        finish_s=served["finish_s"].to_numpy(np.float64),
        running=at_ticks("running"),
        waiting=at_ticks("queue"),
        kv_usage=at_ticks("kv_usage"),
        preemptions=int(served["preemptions"].sum()),
        completed=int((served["state"] == "completed").sum()),
    )


def percentile(values: Floats, share: float) -> float:
    """The smallest value with at least that share of the sample at or below it, as the engine takes percentiles."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def figures(recorded: Recorded, ours: Replay) -> tuple[Figure, ...]:
    """Makespan, and percentiles of TTFT and E2E, seconds; each side from the arrivals of the replay."""
    found = [Figure("makespan", float(ours.finish_s.max()), recorded.makespan_s, MAKESPAN_WITHIN)]
    for name, mine, real in (
        ("TTFT", ours.first_token_s, recorded.first_token_s),
        ("E2E", ours.finish_s, recorded.finish_s),
    ):
        for share in (0.5, 0.95):
            mine_s, real_s = (percentile(end - ours.arrival_s, share) for end in (mine, real))
            found.append(Figure(f"{name} p{share * 100:.0f}", mine_s, real_s, PERCENTILES_WITHIN))
    return tuple(found)


def tpot_error(recorded: Recorded, ours: Replay) -> float:
    """Root mean square over requests of the relative difference in time per token; no profile was fitted to it."""
    tokens = recorded.output_tokens - 1
    mine, real = ((run.finish_s - run.first_token_s) / tokens for run in (ours, recorded))
    return float(np.sqrt(np.mean((mine / real - 1) ** 2)))


def reaches(recorded: Recorded, ours: Replay) -> bool:
    """Whether a replay is as near to its recording as it has to be, in every figure and in both curves."""
    curves = ((ours.running, recorded.running), (ours.waiting, recorded.waiting))
    return all(abs(figure.difference) <= figure.within for figure in figures(recorded, ours)) and all(
        correlation(*pair) > CORRELATED_ABOVE for pair in curves
    )


def correlation(ours: Floats, real: Floats) -> float:
    """Pearson's, over the recording's ticks."""
    return float(np.corrcoef(ours, real)[0, 1])
