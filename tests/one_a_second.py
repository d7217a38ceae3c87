"""Runs that can be worked out by hand.

One replica, one request at a time, one second each: whoever finds k requests before him waits k seconds.
"""

from __future__ import annotations

from typing import Any

from engine import Result, Scenario, simulate
from engine.traffic import Trace, read_trace

SERVICE = Scenario.from_dict(
    {
        "traffic": {"process": "trace", "trace": {"source": "given"}},
        "performance": {"kind": "linear", "overhead_s": 1.0},
        "batching": {"max_num_seqs": 1},
        "fleet": {"replicas": 1},
        "slo": [{"threshold_s": 2.5, "target": 0.95}],
        "run": {"horizon_s": 720.0, "warmup_s": 0.0, "seeds": 1},
    }
)


def trace_of(*rows: tuple[float, int, int]) -> Trace:
    """A trace of (arrival, prompt tokens, output tokens)."""
    lines = "".join(f"{arrival},{prompt},{output}\n" for arrival, prompt, output in sorted(rows))
    return read_trace(f"arrival_s,prompt_tokens,output_tokens\n{lines}".encode())


def run(arrivals: list[float], output_tokens: int = 1, **changes: Any) -> Result:
    """Requests of one prompt token at these times; `changes` are settings with ``__`` for the dots."""
    scenario = SERVICE.replace({key.replace("__", "."): value for key, value in changes.items()})
    return simulate(scenario, trace_of(*((at, 1, output_tokens) for at in arrivals)))
