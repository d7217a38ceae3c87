"""Scenarios for tests of what replicas can complete: one class of requests, a linear profile."""

from __future__ import annotations

from typing import Any

from engine.scenario import Scenario

PROFILE = {"overhead_s": 0.002, "weights_s": 0.010, "token_s": 0.00005, "kv_token_s": 2e-8}


def one_class(prompt: Any, output: Any, profile: dict[str, float] | None = None, **batching: Any) -> Scenario:
    """One replica, or one in each pool; lengths are constants (whole numbers), or means of lognormal ones."""

    def length(value: Any) -> dict[str, Any]:
        if isinstance(value, int):
            return {"dist": "constant", "value": value}
        return {"dist": "lognormal", "mean": value, "cv": 1.0, "max": int(20 * value)}

    return Scenario.from_dict(
        {
            "traffic": {"classes": [{"prompt_tokens": length(prompt), "output_tokens": length(output)}]},
            "performance": {"kind": "linear", **(profile or PROFILE)},
            "batching": batching,
            "fleet": {"replicas": 1},
        }
    )
