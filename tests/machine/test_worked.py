"""The example beside the equations, and one measurement of the user's own."""

from __future__ import annotations

import pytest

from engine import Scenario, simulate
from engine.machine import replica_model, scale_from_measurement, worked_example

SERVICE = Scenario.from_dict(
    {
        "model": {"name": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16"},
        "parallelism": {"tp": 1},
        "traffic": {
            "process": "closed",
            "closed": {"users": 16, "think_s": 0.0, "ramp_s": 10.0},
            "classes": [
                {
                    "name": "chat",
                    "prompt_tokens": {"dist": "uniform", "low": 400, "high": 600},
                    "output_tokens": {"dist": "uniform", "low": 100, "high": 300},
                }
            ],
        },
        "fleet": {"replicas": 1},
        "run": {"seeds": 1, "horizon_s": 120.0, "warmup_s": 30.0},
    }
)


def test_the_parts_of_a_step_are_the_replica_s_step() -> None:
    worked = worked_example(SERVICE)
    assert worked is not None
    for step in (worked.writing, worked.reading):
        whole = replica_model(SERVICE).step_s(step.tokens, step.requests, step.context_tokens, step.pairs)
        assert step.seconds == pytest.approx(whole, rel=1e-9)
    assert worked.reading.tokens - worked.writing.tokens == 500
    assert worked.context_tokens == pytest.approx(600.0)
    assert (worked.seats, worked.capped_by) == (256, "max_num_seqs")
    assert worked_example(SERVICE.replace({"batching.kv_capacity_tokens": 6_050})).seats == 10  # type: ignore[union-attr]


def test_without_lengths_there_is_no_example() -> None:
    assert worked_example(SERVICE.replace({"traffic": {"process": "trace", "trace": {"source": "given"}}})) is None


@pytest.mark.parametrize("slower", [0.7, 1.0, 1.6])
def test_after_one_measurement_the_engine_itself_gives_it_back(slower: float) -> None:
    """Measured TPOT: what the uncorrected engine has in closed loop, times a factor; found again within 5 %."""
    tpot = simulate(SERVICE).summary()["latency_s"]["tpot"]["mean"]  # type: ignore[index]
    scale = scale_from_measurement(SERVICE, "tpot", tpot * slower, 16, 500, 200)
    corrected = SERVICE.replace({"performance.scale": {"tpot": scale.tpot, "prefill": scale.prefill}})
    again = simulate(corrected).summary()["latency_s"]["tpot"]["mean"]  # type: ignore[index]
    assert again == pytest.approx(tpot * slower, rel=0.05)
