"""Runs that can be worked out by hand: one replica, one request at a time, one second each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import Result, Scenario, simulate
from engine.traffic import read_trace

RTT_S = 0.25


NOBODY = [1000.0]
"""After the run."""


def run_of(arrivals: Sequence[float], **changes: Any) -> Result:
    """Requests that come at these seconds; ``__`` in a changed setting's name stands for a dot."""
    rows = "".join(f"{t},1,1\n" for t in sorted(arrivals))
    trace = read_trace(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode())
    scenario = Scenario.from_dict(
        {
            "traffic": {"process": "trace", "trace": {"source": "given"}},
            "performance": {"kind": "linear", "overhead_s": 1.0},
            "batching": {"max_num_seqs": 1},
            "fleet": {"replicas": 1},
            "slo": [{"threshold_s": 2.5, "target": 0.9, "window_s": 60.0}],
            "run": {"horizon_s": 300.0, "warmup_s": 0.0, "seeds": 1},
        }
    ).replace({key.replace("__", "."): value for key, value in changes.items()})
    return simulate(scenario, trace)


BUSY = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 1.8,
            "client": {
                "ttft_timeout_s": 6.0, "max_retries": 1, "backoff_s": 30.0, "network_rtt_s": RTT_S,
            },
            "classes": [
                {
                    "prompt_tokens": {"dist": "constant", "value": 1},
                    "output_tokens": {"dist": "geometric", "mean": 8},
                }
            ],
        },
        "performance": {"kind": "linear", "overhead_s": 0.125},
        "batching": {"max_num_seqs": 1},
        "fleet": {"replicas": 2},
        "admission": {"max_outstanding": 4},
        "slo": [{"metric": "ttft", "threshold_s": 3.0, "target": 0.6, "window_s": 60.0}],
        "run": {"horizon_s": 160.0, "warmup_s": 20.0, "seeds": 3},
    }
)  # fmt: skip
"""As much as can be served: some are refused, some give up, some are under way at the end, most try again."""
