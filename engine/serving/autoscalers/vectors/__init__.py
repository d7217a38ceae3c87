"""Test cases of autoscalers, answered by the functions that the simulation runs on.

A table has the columns `algorithm` and `inputs_json`; others (`expected`, `source_path`) are passed over. A new kind of
case is one function in a file here and one line in `ALGORITHMS`. Keys that a kind doesn't know are remarks.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from . import hpa, others, runs
from .inputs import Inputs
from .table import read_rows

ALGORITHMS: Final = MappingProxyType[str, Callable[[Inputs], Any]](
    {
        "k8s-hpa-v2": hpa.decision,
        "k8s-hpa-v2 stabilization": hpa.stabilization,
        "k8s-hpa-v2 rate-limit": hpa.rate_limit,
        "k8s-hpa-v2 behavior": runs.behavior,
        "k8s-hpa legacy up-limit": hpa.up_limit,
        "keda fallback": others.keda_fallback,
        "knative-kpa": runs.knative,
        "ray-serve desired": others.ray_desired,
        "ray-serve delay": runs.ray_delay,
        "aibrix-apa": others.aibrix,
    }
)
"""What answers each kind of case."""


def answer_vectors(data: bytes) -> list[Any]:
    """One answer a row of a CSV table, objects and lists ready for JSON, in the shape of the column `expected`.

    Raises `ScenarioError` naming the row (the one below the header is 1), the key, what is wrong with it and what
    would be accepted.
    """
    return [ALGORITHMS[algorithm](inputs) for algorithm, inputs in read_rows(data, tuple(ALGORITHMS))]


__all__ = ["ALGORITHMS", "Inputs", "answer_vectors"]
