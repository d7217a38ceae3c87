"""Short ways to write down traffic and a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scenario import Run, Traffic
from engine.traffic import Trace, read_trace


def traffic(**settings: Any) -> Traffic:
    return Traffic.model_validate(settings)


def run(horizon_s: float | None = 900.0) -> Run:
    return Run.model_validate({"horizon_s": horizon_s, "warmup_s": 0.0})


def constant(value: int) -> dict[str, Any]:
    return {"dist": "constant", "value": value}


def request_class(name: str = "chat", prompt: int = 100, output: int = 20, **settings: Any) -> dict[str, Any]:
    return {"name": name, "prompt_tokens": constant(prompt), "output_tokens": constant(output), **settings}


def trace_of(*rows: str, columns: str = "arrival_s,prompt_tokens,output_tokens") -> Trace:
    return read_trace("\n".join((columns, *rows, "")).encode())


UNIFORMS = np.random.default_rng(20260801).random(20_000)
"""A fixed sample, from a generator that the engine doesn't use."""

GRID = np.concatenate(([0.0, 2.0**-53], np.arange(1, 4096) / 4096, [1 - 2.0**-53]))
"""Uniforms in rising order, ends included."""
