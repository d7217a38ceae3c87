"""KV under way without waiting: exact rows from outside, and the engine itself where memory has no end."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.study import in_flight

TRUTH = Path(__file__).parent.parent / "truth" / "kv_in_flight.csv"
WORD_S, RATE_RPS = 1 / 32, 2.0
LONG = {
    "traffic": {
        "rate_rps": RATE_RPS,
        "classes": [
            {
                "prompt_tokens": {"dist": "lognormal", "mean": 900, "cv": 0.8},
                "output_tokens": {"dist": "lognormal", "mean": 200, "cv": 0.7},
                "cached_prefix_tokens": 100,
            }
        ],
    },
    "performance": {"kind": "linear", "overhead_s": WORD_S},
    "batching": {"max_num_seqs": 4096, "max_num_batched_tokens": 1_000_000, "kv_capacity_tokens": 1_000_000},
    "fleet": {"replicas": 1},
    "run": {"horizon_s": 600.0, "warmup_s": 120.0, "seeds": 16},
}


def rows() -> list[pytest.param]:
    with TRUTH.open() as file:
        return [
            pytest.param(json.loads(row["params_json"]), row["quantity"], float(row["value"]), id=row["quantity"])
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize(("params", "quantity", "value"), rows())
def test_the_exact_rows(params: dict[str, float], quantity: str, value: float) -> None:
    """Through a scenario's own mix, as the screen has it."""
    lengths = {"prompt_tokens": params["prompt"], "output_tokens": params["gen"]}
    constant = {name: {"dist": "constant", "value": tokens} for name, tokens in lengths.items()}
    s = Scenario.from_dict(LONG).replace({"traffic.classes": [constant]})
    found = in_flight(s, params["lam"], params["tpot"])
    assert found is not None
    exact = {"mean_KV_tokens": found.mean_tokens, "var_KV_tokens": found.sd_tokens**2}
    assert exact[quantity] == pytest.approx(value, rel=1e-12)
    assert found.conversations == pytest.approx(params["lam"] * params["gen"] * params["tpot"])


def test_it_is_what_the_engine_holds_where_nobody_waits() -> None:
    """Steps of one length, no limits: the simulated KV agrees within its own spread and one token a conversation."""
    s = Scenario.from_dict(LONG)
    frame, found = simulate(s).timeline, in_flight(s, RATE_RPS, WORD_S)
    assert found is not None
    late = frame[frame.t_s >= s.run.warmup_s]
    held = late.groupby("seed").kv_usage.mean() * s.batching.kv_capacity_tokens
    error = 3 * held.std(ddof=1) / np.sqrt(held.size)
    assert error < 0.06 * found.mean_tokens
    # A token is held from the step after it was made, and the prompt's own step takes a word's time, too.
    steps = RATE_RPS * WORD_S * 900
    assert held.mean() == pytest.approx(found.mean_tokens, abs=error + steps)
