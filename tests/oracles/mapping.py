"""From a queue of the oracle table to the scenario that should behave like it.

A request with a prompt of one token and O output tokens takes O steps, so one slot of the batch is a server, and a
service is as many steps as the request has tokens. The steps are short: `FINENESS` of them pass between two
completions of a full batch, so what the queue in continuous time and the one in steps can differ by is small.

A new family of queues is one function here and one line in `MAPPINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

FINENESS = 4096
"""Steps between two completions of a full batch, on average: a service has this many times the number of servers."""

Parameters = Mapping[str, Any]
Pace = Callable[[NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Queue:
    """A scenario without its `run`, and what sizing and reading need to know about it."""

    document: dict[str, Any]
    rate_rps: float
    capacity_rps: float
    """Completions per second while everybody is busy."""
    service_s: float
    """Mean time in service; an upper bound where it depends on the load."""
    steps: float
    """Mean steps of a service, which are the output tokens of a request."""
    step_s: float
    """Length of a step; the longest where steps differ."""
    servers: int
    """Requests served at a time, at most."""
    squared_cvs: tuple[float, float]
    """Squared coefficients of variation of the gaps between arrivals and of the services."""
    effort: float
    """Requests that its rows take, in those that a formula says for its mean wait (`sizing.requests_needed`); by trial.

    Above 1 where high percentiles are the hardest to know, below where the draws explain much of the spread.
    """
    pace: Pace | None = None
    """Completions per second by how many are in the system, where that number alone decides what comes (Markov)."""
    steps_per_token: float = 1.0
    """Steps that stand for one token of the oracle's."""

    @property
    def load(self) -> float:
        """Offered work over capacity."""
        return self.rate_rps / self.capacity_rps

    def saturated(self) -> dict[str, Any]:
        """The document with twice as much traffic as can be served."""
        return {**self.document, "traffic": {**self.document["traffic"], "rate_rps": 2.0 * self.capacity_rps}}


def poisson_to_servers(rate_rps: float, servers: int, service_s: float, dist: str, effort: float) -> Queue:
    """Poisson arrivals, `servers` servers, services `geometric` (exponential in the limit) or `constant`."""
    steps = FINENESS * servers
    return Queue(
        document=_document(rate_rps, servers, _output(dist, steps), {"overhead_s": service_s / steps}),
        rate_rps=rate_rps,
        capacity_rps=servers / service_s,
        service_s=service_s,
        steps=steps,
        step_s=service_s / steps,
        servers=servers,
        squared_cvs=(1.0, 1.0 if dist == "geometric" else 0.0),
        effort=effort,
        pace=(lambda n: np.minimum(n, servers) / service_s) if dist == "geometric" else None,
    )


def mm1(p: Parameters) -> Queue:
    """M/M/1."""
    return poisson_to_servers(p["lam"], 1, 1.0 / p["mu"], "geometric", effort=0.85)


def mmc(p: Parameters) -> Queue:
    """M/M/c."""
    return poisson_to_servers(p["lam"], p["c"], 1.0 / p["mu"], "geometric", effort=0.9 if p["c"] < 8 else 0.6)


def md1(p: Parameters) -> Queue:
    """M/D/1."""
    return poisson_to_servers(p["lam"], 1, p["D"], "constant", effort=1.2)


def continuous_batching(p: Parameters) -> Queue:
    """n <= B requests in the batch, each one token further every a + b n seconds; the others wait in line.

    Tokens are cut into steps: so many times more tokens, so many times shorter steps.
    """
    slots, steps = p["B"], FINENESS * p["B"]
    scale = steps / p["mean_tokens"]
    fixed_s, each_s = p["a"] / scale, p["b"] / scale
    step_s = fixed_s + each_s * slots

    def pace(n: NDArray[np.int64]) -> NDArray[np.float64]:
        batch = np.minimum(n, slots)
        return batch / (steps * (fixed_s + each_s * batch))

    return Queue(
        document=_document(p["lam"], slots, _output("geometric", steps), {"overhead_s": fixed_s, "seq_s": each_s}),
        rate_rps=p["lam"],
        capacity_rps=slots / (steps * step_s),
        service_s=steps * step_s,
        steps=steps,
        step_s=step_s,
        servers=slots,
        squared_cvs=(1.0, 1.0),
        effort=0.8,
        pace=pace,
        steps_per_token=scale,
    )


MAPPINGS: Mapping[str, Callable[[Parameters], Queue]] = MappingProxyType(
    {
        "MM1": mm1,
        "MD1": md1,
        "MMc": mmc,
        "ContBatch_CTMC": continuous_batching,
    }
)
"""One line a family of the table's `name` column."""


def _output(dist: str, steps: float) -> dict[str, Any]:
    return {"dist": "constant", "value": steps} if dist == "constant" else {"dist": dist, "mean": steps}


def _document(rate_rps: float, slots: int, output: dict[str, Any], performance: dict[str, float]) -> dict[str, Any]:
    one_token = {"dist": "constant", "value": 1}
    return {
        "traffic": {
            "rate_rps": rate_rps,
            "process": "poisson",
            "classes": [{"name": "all", "prompt_tokens": one_token, "output_tokens": output}],
        },
        "performance": {"kind": "linear", **performance},
        "batching": {"max_num_seqs": slots, "max_num_batched_tokens": slots},
        "fleet": {"replicas": 1},
        "slo": [],
    }
