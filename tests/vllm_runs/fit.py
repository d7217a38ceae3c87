"""Fits a linear profile to each recorded run and writes `tests/truth/vllm_profiles.json`.

`python -m tests.vllm_runs.fit [name of a run ...]`, with HEADROOM_DATA as for the tests; a few minutes a run.

A coefficient never promises more than the data sheet: it is the least time that the hardware could take, and more. The
search is Nelder and Mead's simplex over the logarithms of what comes on top, restarted twice; it draws nothing at
random, so the same data, engine and libraries give the same profile.

The same search under batching rules that the recorded servers didn't follow says what the proof can tell apart.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from engine import Result, Scenario, Trace
from engine.machine import replica_model
from engine.outcome import Meter
from engine.serving import Fleet, StepLog, run_fleet
from engine.study.prompts import prompts_at_once
from engine.traffic import generate
from tests.vllm_runs.recorded import RUNS, Floats, Recorded, data_folder, read
from tests.vllm_runs.replay import NONE, PERCENTILES_WITHIN, PROFILES, Changes, Profile, figures, replay

SEARCHES = ((0.5, 250), (0.3, 200), (0.1, 150))
"""Each starts where the one before ended: the reach of its first simplex in natural logarithms, and most replays."""
SURPLUS = 0.2
"""What the search starts with on top of the data sheet's times, as a share of them."""
HOST = {"overhead_s": 3e-3, "seq_s": 3e-5}
"""Where the search starts for what no data sheet says: work of the host, for a step and for each request in it."""


@dataclass(frozen=True)
class DataSheet:
    """What a run's hardware and model promise, of all accelerators together."""

    bytes_per_s: float
    flops: float
    weights: float
    """Parameters that each token is multiplied with: all but the input embedding."""
    kv_bytes_per_token: float
    pair_flops: float
    """Floating-point operations for one token looking at another, over all layers: 4 layers * query heads * head."""

    def least(self) -> Profile:
        """The coefficients at full speed, two bytes a weight; 0 for what no data sheet says."""
        times = {
            "overhead_s": 0.0,
            "weights_s": 2 * self.weights / self.bytes_per_s,
            "token_s": 2 * self.weights / self.flops,
            "seq_s": 0.0,
            "kv_token_s": self.kv_bytes_per_token / self.bytes_per_s,
            "prefill_pair_s": self.pair_flops / self.flops,
        }
        return {name: rounded(value) for name, value in times.items()}


OTHER_RULES: tuple[dict[str, object], ...] = (
    {"batching.kv_policy": "reserve"},
    {"batching.policy": "prefill_first"},
    {"batching.policy": "static"},
)
"""Settings that the recorded servers didn't have."""
HOW = (
    "Linear profiles fitted by tests/vllm_runs/fit.py to two recorded vLLM 0.19.0 runs, seconds: `profile` under the "
    "run's own settings, `other_rules` under changed ones, `least` from data sheets, below which no coefficient may "
    "go. Runs: casys-kaist/LLMServingSim@5daddb21a545658d5150b535712d0494584b5278."
)

# Bandwidth and dense bf16 speed: data sheets of the RTX 4090 and of the RTX PRO 6000 Blackwell (twice). Shapes: the
# models' published configurations.
SHEETS = {
    "RTX4090_Llama-3.1-8B": DataSheet(1.008e12, 165.2e12, 7.5e9, 2 * 2 * 32 * 8 * 128, 4 * 32 * 32 * 128),
    "RTXPRO6000_Qwen3-32B": DataSheet(2 * 1.792e12, 2 * 467.8e12, 32.0e9, 2 * 2 * 64 * 8 * 128, 4 * 64 * 64 * 128),
}


def rounded(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.3e}")


def run_alone(s: Scenario, trace: Trace) -> Result:
    """What `simulate` returns, without measuring the replica's capacity, which takes longer than the replay itself."""
    seed = s.run.seed
    requests = [generate(s.traffic, s.run, seed, trace)]
    model = replica_model(s, prompts_at_once(s.batching, requests))
    steps: list[StepLog] = []
    served = run_fleet(Fleet.of(s, model), requests, seed, steps.append)
    return Result(s, model, served, Meter(1, 1, 0.0, None), lambda: StepLog.joined(steps), None, (), 0.0, seed)


def distance(recorded: Recorded, profile: Profile, changes: Changes = NONE) -> float:
    """How far a replay is from its recording: five roots of mean squares, each relative to the run's own size.

    First tokens and last tokens of every request against the makespan, the curves of running and waiting against their
    peaks, and the figures that the test asserts against the real ones, the more the closer they have to be.
    """
    ours = replay(recorded, profile, changes, run=run_alone)
    parts = (
        (ours.first_token_s - recorded.first_token_s) / recorded.makespan_s,
        (ours.finish_s - recorded.finish_s) / recorded.makespan_s,
        (ours.running - recorded.running) / recorded.running.max(),
        (ours.waiting - recorded.waiting) / recorded.waiting.max(),
        np.array([f.difference * PERCENTILES_WITHIN / f.within for f in figures(recorded, ours)]),
    )
    return float(sum(np.sqrt(np.mean(part**2)) for part in parts))


def fit(recorded: Recorded, least: Profile, changes: Changes = NONE) -> Profile:
    """The profile above `least` that brings the replay nearest to the recording, with four significant digits."""
    start = np.log([HOST.get(name, SURPLUS * floor) for name, floor in least.items()])

    def profile_at(x: Floats) -> Profile:
        return {name: rounded(floor + extra) for (name, floor), extra in zip(least.items(), np.exp(x), strict=True)}

    def cost(x: Floats) -> float:
        return distance(recorded, profile_at(x), changes)

    for reach, evaluations in SEARCHES:
        start = _simplex(cost, start, reach, evaluations)
    return profile_at(start)


def _simplex(cost: Callable[[Floats], float], start: Floats, reach: float, evaluations: int) -> Floats:
    corners = np.vstack([start, start + reach * np.eye(start.size)])
    options = {"initial_simplex": corners, "maxfev": evaluations, "xatol": 1e-3, "fatol": 1e-5, "adaptive": True}
    return np.asarray(minimize(cost, start, method="Nelder-Mead", options=options).x, np.float64)


def main(names: list[str]) -> None:
    """Fit the named runs, and replace their entries in the file."""
    data = data_folder()
    stored = json.loads(PROFILES.read_text()) if PROFILES.exists() else {}
    runs = stored.setdefault("runs", {})
    for name in names or RUNS:
        recorded, least = read(data, name), SHEETS[name].least()
        others = [
            {"changes": changes, "profile": fit(recorded, least, changes)}
            for changes in OTHER_RULES
            if "batching.kv_policy" not in changes or recorded.kv_capacity_tokens is not None
        ]
        runs[name] = {"profile": fit(recorded, least), "least": least, "other_rules": others}
        print(name, json.dumps(runs[name], indent=1))
        PROFILES.write_text(json.dumps({"how": HOW, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
