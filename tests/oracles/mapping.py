"""From a queue of the oracle table to the scenario that should behave like it.

A request with a prompt of one token and O output tokens takes O steps, so one slot of the batch is a server, and a
service is as many steps as the request has tokens. The steps are short: `FINENESS` of them pass between two
completions of a full batch, so what the queue in continuous time and the one in steps can differ by is small.

A new family of queues is one function here and one line in `MAPPINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

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
    """Length of a step, the longest where steps differ: what answers may be off by. 0 where services are steps."""
    servers: int
    """Requests served at a time, at most, by a replica."""
    squared_cvs: tuple[float, float]
    """Squared coefficients of variation of the gaps between arrivals and of the services.

    Of gaps that depend on each other, the limit of variance over mean of the number of arrivals in a long time.
    """
    effort: float
    """Requests that its rows take, in those that a formula says for its mean wait (`sizing.requests_needed`); by trial.

    Above 1 where high percentiles are the hardest to know, below where the draws explain much of the spread.
    """
    pace: Pace | None = None
    """Completions per second by how many are in the system, where that number alone decides what comes (Markov)."""
    steps_per_token: float = 1.0
    """Steps that stand for one token of the oracle's."""
    replicas: int = 1
    """Queues of their own, each with its share of the traffic."""
    most: int | None = None
    """Requests in the system, at most (with impatience: about); None: no limit, and the load is below 1."""

    @property
    def load(self) -> float:
        """Offered work over capacity."""
        return self.rate_rps / self.capacity_rps

    def saturated(self) -> dict[str, Any]:
        """The document with twice as much traffic as can be served."""
        return _changed(self.document, traffic={"rate_rps": 2.0 * self.capacity_rps})

    def poisson(self) -> dict[str, Any]:
        """The document with as much traffic, but Poisson."""
        return _changed(self.document, traffic={"process": "poisson"})


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


def mdc(p: Parameters) -> Queue:
    """M/D/c, and M/D/1."""
    c = p.get("c", 1)
    return poisson_to_servers(p["lam"], c, p["D"], "constant", effort=1.2 if c == 1 else 0.95)


def mmck(p: Parameters) -> Queue:
    """M/M/c/K: who finds K in the system is refused."""
    return _limited(poisson_to_servers(p["lam"], p["c"], 1.0 / p["mu"], "geometric", effort=0.5), p["K"])


def erlang_b(p: Parameters) -> Queue:
    """M/M/c/c with the load `a` in mean services, here seconds."""
    return _limited(poisson_to_servers(p["a"], p["c"], 1.0, "geometric", effort=0.45), p["c"])


def mmc_with_patience(p: Parameters) -> Queue:
    """M/M/c+D: who waits `patience` seconds leaves.

    The queue is about as long as what can be served within the patience: for sizes, not for the answer.
    """
    queue = poisson_to_servers(p["lam"], p["c"], 1.0 / p["mu"], "geometric", effort=0.45)
    document = _changed(queue.document, admission={"queue_timeout_s": p["patience"]})
    return replace(queue, document=document, most=p["c"] + ceil(queue.capacity_rps * p["patience"]))


def mg1(p: Parameters) -> Queue:
    """M/G/1 with a mean service of a second."""
    squared_cv, classes = SERVICES[p["service"]](p)
    effort = 0.65 if squared_cv <= 1.0 else 1.85 if p["service"] == "lognormal_scv4" else 1.1
    queue = poisson_to_servers(p["lam"], 1, 1.0, "geometric", effort)
    document = _changed(queue.document, traffic={"classes": classes})
    return replace(queue, document=document, squared_cvs=(1.0, squared_cv), pace=None)


def gim1(p: Parameters) -> Queue:
    """G/M/1 with gamma or deterministic gaps."""
    squared_cv = p["ca2"]
    effort = 1.3 if squared_cv > 2.0 else 1.0 if squared_cv >= 1.0 else 1.15 if squared_cv else 1.6
    queue = poisson_to_servers(p["lam"], 1, 1.0 / p["mu"], "geometric", effort)
    process = {"gamma": {"process": "gamma", "cv": squared_cv**0.5}, "deterministic": {"process": "deterministic"}}
    document = _changed(queue.document, traffic=process[p["interarrival"]])
    return replace(queue, document=document, squared_cvs=(squared_cv, 1.0), pace=None)


def mmpp_to_servers(p: Parameters) -> Queue:
    """MMPP(2)/M/c: bursts at the rate `lam1` end at the rate `r12`, calm at `lam2` ends at `r21`."""
    rate_rps = mmpp_rate(p)
    queue = poisson_to_servers(rate_rps, p["c"], 1.0 / p["mu"], "geometric", effort=0.9)
    ends, begins = p["r12"], p["r21"]
    # Variance over mean of counts in the long run, less 1: Heffes and Lucantoni, IEEE J. Sel. Areas Commun. 4, 1986.
    spread = 2.0 * (p["lam1"] - p["lam2"]) ** 2 * ends * begins / ((ends + begins) ** 3 * rate_rps)
    document = _changed(queue.document, traffic=mmpp_traffic(p))
    return replace(queue, document=document, squared_cvs=(1.0 + spread, 1.0), pace=None)


def mmpp_traffic(p: Parameters) -> dict[str, Any]:
    """The keys of `traffic` that make MMPP(2)."""
    rate_rps, burst_fraction = mmpp_rate(p), p["r21"] / (p["r12"] + p["r21"])
    bursts = {"burst_ratio": p["lam1"] / rate_rps, "burst_fraction": burst_fraction, "mean_burst_s": 1.0 / p["r12"]}
    return {"rate_rps": rate_rps, "process": "mmpp", "mmpp": bursts}


def mmpp_rate(p: Parameters) -> float:
    """Arrivals per second of MMPP(2) in the long run."""
    return float((p["lam1"] * p["r21"] + p["lam2"] * p["r12"]) / (p["r12"] + p["r21"]))


def priorities(p: Parameters) -> Queue:
    """M/M/1 with two classes: the first goes ahead in the queue, nobody is interrupted."""
    assert p["discipline"] == "nonpreemptive priority, 2 classes"
    queue = poisson_to_servers(p["lam1"] + p["lam2"], 1, 1.0 / p["mu"], "geometric", effort=0.85)
    classes = [_class(f"class {k}", _output("geometric", FINENESS), p[f"lam{k}"], priority=k) for k in (1, 2)]
    # How long each class waits isn't a matter of the number in the system alone.
    return replace(queue, document=_changed(queue.document, traffic={"classes": classes}), pace=None)


def round_robin(p: Parameters) -> Queue:
    """N servers with queues of their own that take turns: each is E_N/M/1."""
    rate_rps = p["N"] * p["rho"] * p["mu"]
    effort = 1.4 if p["rho"] < 0.8 else 0.95 if p["N"] == 2 else 0.6
    queue = poisson_to_servers(rate_rps, 1, 1.0 / p["mu"], "geometric", effort)
    fleet = {"replicas": p["N"], "routing": {"policy": p["policy"]}}
    return replace(
        queue,
        document=_changed(queue.document, fleet=fleet),
        capacity_rps=p["N"] * p["mu"],
        squared_cvs=(1.0 / p["N"], 1.0),
        pace=None,
        replicas=p["N"],
    )


def bulk(p: Parameters) -> Queue:
    """M/D^[1,B]/1: up to B at a time are served in a + b m seconds, m of them; who comes meanwhile waits.

    Requests of one token are a step each: the step is the service, and nothing is cut into smaller ones.
    """
    most = p["B"]
    service_s = p["a"] + p["b"] * most
    return Queue(
        document=_document(p["lam"], most, _output("constant", 1), {"overhead_s": p["a"], "seq_s": p["b"]}),
        rate_rps=p["lam"],
        capacity_rps=most / service_s,
        service_s=service_s,
        steps=1.0,
        step_s=0.0,
        servers=most,
        squared_cvs=(1.0, 0.0),
        effort=1.2 if most == 1 else 9.0,
    )


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


def continuous_batching_limited(p: Parameters) -> Queue:
    """The same, but who finds K in the system is refused."""
    return _limited(replace(continuous_batching(p), effort=0.2), p["K"])


MAPPINGS: Mapping[str, Callable[[Parameters], Queue]] = MappingProxyType(
    {
        "MM1": mm1,
        "MD1": mdc,
        "MMc": mmc,
        "ContBatch_CTMC": continuous_batching,
        "MMcK": mmck,
        "ErlangB": erlang_b,
        "MDc": mdc,
        "MG1": mg1,
        "GIM1": gim1,
        "MM1_priority": priorities,
        "MMc_plus_D": mmc_with_patience,
        "MMPP2_M_c": mmpp_to_servers,
        "Bulk_M_D_1B_1": bulk,
        "ContBatch_CTMC_K": continuous_batching_limited,
        "RoundRobin_N_expo_servers": round_robin,
    }
)
"""One line a family of the table's `name` column that is a queue."""

ARRIVALS = "MMPP2"
"""The family that is about arrivals alone (`test_arrivals`)."""


Service = Callable[[Parameters], tuple[float, list[dict[str, Any]]]]


def _one_class(squared_cv: float, output: dict[str, Any]) -> Service:
    return lambda p: (squared_cv, [_class("all", output)])


def _lognormal(squared_cv: float) -> Service:
    return _one_class(squared_cv, {"dist": "lognormal", "mean": FINENESS, "cv": squared_cv**0.5})


def _erlang(stages: int) -> dict[str, Any]:
    """A table of lengths: the Erlang distribution in cells of 1/64 of its mean, each at the middle of its mass."""
    cell = FINENESS // 64
    edges = np.arange(8 * 64 + 1) * cell
    scale = FINENESS / stages
    mass = np.diff(stats.gamma.cdf(edges, stages, scale=scale))
    middle = FINENESS * np.diff(stats.gamma.cdf(edges, stages + 1, scale=scale)) / mass
    return {"dist": "empirical", "values": np.rint(middle).astype(int).tolist(), "weights": mass.tolist()}


def _hyperexponential(p: Parameters) -> tuple[float, list[dict[str, Any]]]:
    """Two classes with exponential services of 1 / mu1 and 1 / mu2 seconds, drawn with p and 1 - p."""
    rates = {"mu1": p["p"], "mu2": 1.0 - p["p"]}
    return p["scv"], [_class(mu, _output("geometric", FINENESS / p[mu]), share) for mu, share in rates.items()]


SERVICES: Mapping[str, Service] = MappingProxyType(
    {
        "erlang4": _one_class(0.25, _erlang(4)),
        "uniform_0_2": _one_class(1.0 / 3.0, {"dist": "uniform", "low": 1, "high": 2 * FINENESS - 1}),
        "lognormal_scv1": _lognormal(1.0),
        "lognormal_scv4": _lognormal(4.0),
        "H2_balanced_means": _hyperexponential,
    }
)
"""Services of M/G/1 by the table's names: squared coefficient of variation, and classes."""


def _output(dist: str, steps: float) -> dict[str, Any]:
    return {"dist": "constant", "value": steps} if dist == "constant" else {"dist": dist, "mean": steps}


def _class(name: str, output: dict[str, Any], weight: float = 1.0, priority: int = 0) -> dict[str, Any]:
    one_token = {"dist": "constant", "value": 1}
    named = {"name": name, "weight": weight, "priority": priority}
    return {**named, "prompt_tokens": one_token, "output_tokens": output}


def _document(rate_rps: float, slots: int, output: dict[str, Any], performance: dict[str, float]) -> dict[str, Any]:
    return {
        "traffic": {"rate_rps": rate_rps, "process": "poisson", "classes": [_class("all", output)]},
        "performance": {"kind": "linear", **performance},
        "batching": {"max_num_seqs": slots, "max_num_batched_tokens": slots},
        "fleet": {"replicas": 1},
        "slo": [],
    }


def _changed(document: dict[str, Any], **sections: dict[str, Any]) -> dict[str, Any]:
    """The document with these keys of its sections set."""
    return {**document, **{name: {**document.get(name, {}), **keys} for name, keys in sections.items()}}


def _limited(queue: Queue, most: int) -> Queue:
    return replace(queue, document=_changed(queue.document, admission={"max_outstanding": most}), most=most)
