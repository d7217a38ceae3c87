"""Mean waits in steady state. Rates are per second, times seconds; infinite where the load is 1 or more."""

from __future__ import annotations

import math


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival to M/M/c waits; ``load`` is the share of all servers' capacity that is offered.

    Erlang 1917: by his B recursion over the servers, B(k) = a B(k-1) / (k + a B(k-1)), C = B / (1 - load (1 - B)).
    """
    if load >= 1.0:
        return 1.0
    offered, blocked = servers * load, 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1.0 - load * (1.0 - blocked))


def pollaczek_khinchine(rate_rps: float, service_s: float, service_scv: float) -> float:
    """Mean wait in M/G/1, exact: load / (1 - load) * (1 + scv) / 2 * mean service.

    Pollaczek 1930, Khinchine 1932. ``service_scv``: squared coefficient of variation of a service.
    """
    load = rate_rps * service_s
    return math.inf if load >= 1.0 else load / (1.0 - load) * 0.5 * (1.0 + service_scv) * service_s


def kingman(rate_rps: float, service_s: float, arrival_scv: float, service_scv: float) -> float:
    """Mean wait in GI/G/1 in heavy traffic (Kingman 1961): an approximation, exact for Poisson arrivals."""
    return allen_cunneen(rate_rps, service_s, 1, arrival_scv, service_scv)


def allen_cunneen(rate_rps: float, service_s: float, servers: int, arrival_scv: float, service_scv: float) -> float:
    """Mean wait in GI/G/c: that of M/M/c times the mean of both squared coefficients of variation.

    Allen, Probability, Statistics, and Queueing Theory, 1990, section 5.6. Exact for M/G/1 and M/M/c, else an
    approximation. ``rate_rps`` arrive at all ``servers`` together.
    """
    load = rate_rps * service_s / servers
    if load >= 1.0:
        return math.inf
    waits = erlang_c(servers, load) * service_s / (servers * (1.0 - load))
    return 0.5 * (arrival_scv + service_scv) * waits
