"""A fleet small enough to work out by hand: a replica serves one request a second, one after the other.

A request comes every 2 s, from second 100 on every 0.5 s. One replica is ready; the HPA looks at the rate of the last
15 s every 15 s, and a start takes 40 s.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from engine import Result, Scenario, simulate

ONE = {"dist": "constant", "value": 1}
QUEUE = {"name": "no wait", "metric": "queue", "threshold_s": 0.5, "target": 0.9}
STARTUP = {"provision_s": 10, "image_pull_s": 15, "weights_load_s": 10, "warmup_s": 5}
SCENARIO = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 0.5,
            "process": "deterministic",
            "shape": {"kind": "steps", "points": [[100, 4.0]]},
            "classes": [{"name": "one", "prompt_tokens": ONE, "output_tokens": ONE}],
        },
        "performance": {"kind": "linear", "overhead_s": 1.0},
        "hardware": {"price_per_gpu_hour": 3.6},
        "parallelism": {"tp": 1},
        "batching": {"max_num_seqs": 1},
        "fleet": {"replicas": 1, "routing": {"policy": "least_outstanding", "report_interval_s": 0}},
        "autoscaler": {"policy": "hpa", "metric": "rate", "target": 0.7, "metric_window_s": 15, "startup": STARTUP},
        "slo": [QUEUE],
        "run": {"horizon_s": 600, "warmup_s": 0, "seeds": 1},
    }
)


@cache
def _run(changes: str) -> Result:
    return simulate(SCENARIO.replace(eval(changes)))  # the text of a dict, so that it can be remembered


def run(changes: dict[str, Any] | None = None) -> Result:
    """The result with settings changed; it isn't computed twice."""
    return _run(repr(changes or {}))


def accounted(result: Result) -> bool:
    """Whether nothing is lost: every attempt is in one of the states."""
    found = result.summary()["requests"]
    assert isinstance(found, dict)
    return bool(found["offered"] == sum(found[s] for s in ("completed", "rejected", "timed_out", "unfinished")))
