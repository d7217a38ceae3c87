"""Short ways to write down traffic and a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.scenario import Run, Traffic
from engine.traffic import Trace, TraceError, read_trace


def traffic(**settings: Any) -> Traffic:
    return Traffic.model_validate(settings)


def run(horizon_s: float | None = 900.0) -> Run:
    return Run.model_validate({"horizon_s": horizon_s, "warmup_s": 0.0})


def constant(value: int) -> dict[str, Any]:
    return {"dist": "constant", "value": value}


def request_class(name: str = "chat", prompt: int = 100, output: int = 20, **settings: Any) -> dict[str, Any]:
    return {"name": name, "prompt_tokens": constant(prompt), "output_tokens": constant(output), **settings}


def complaint(data: bytes | Path, format: str = "auto") -> str:
    """What is said about a trace that can't be read; always one line."""
    with pytest.raises(TraceError) as error:
        read_trace(data, format)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


def trace_of(*rows: str, columns: str = "arrival_s,prompt_tokens,output_tokens") -> Trace:
    return read_trace("\n".join((columns, *rows, "")).encode())


def talk(
    timestamp: object = 9, input_length: object = 700, output_length: object = 5, hash_ids: object = "[1, 2]"
) -> str:
    """A line of a Mooncake trace, each value as JSON text."""
    return (
        f'{{"timestamp": {timestamp}, "input_length": {input_length}, "output_length": {output_length}, '
        f'"hash_ids": {hash_ids}}}'
    )


UNIFORMS = np.random.default_rng(20260801).random(20_000)
"""A fixed sample, from a generator that the engine doesn't use."""

GRID = np.concatenate(([0.0, 2.0**-53], np.arange(1, 4096) / 4096, [1 - 2.0**-53]))
"""Uniforms in rising order, ends included."""

HEADER = "arrival_s,prompt_tokens,output_tokens"
FULL = f"{HEADER},cached_prefix_tokens,priority,class"
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
BURSTGPT = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
MOONCAKE = '{"timestamp": .., "input_length": .., "output_length": .., "hash_ids": [..]}'
"""What trace files of each format look like, in words where a line isn't a header."""

TOKENS = "expected a whole number of tokens"
RANGE = "expected 1 to 16,777,216 tokens"
"""What stands behind a bad number of tokens."""
