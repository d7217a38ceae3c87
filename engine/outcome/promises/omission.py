"""What a load tester that waits for its answers doesn't see (coordinated omission, Gil Tene).

A tester with c connections sends the next request when an answer is there. While the service stalls it sends nothing,
and the people who would have come then aren't in its figures. Read off a run: of the requests that came, a tester is
there for those that find one of its connections free, and takes their times as they are.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from engine.outcome.result import Result
from engine.outcome.spread import Floats, quantile

Bools = NDArray[np.bool_]
MOST = 20_000
"""Requests of one run that are read."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Figures of a set of times, seconds."""

    requests: int
    mean_s: float
    p50_s: float
    p75_s: float
    p99_s: float

    @classmethod
    def of(cls, values: Floats) -> Seen:
        """Of times (n,), n > 0."""
        ordered = np.sort(values)
        p50, p75, p99 = (quantile(ordered, q) for q in (0.5, 0.75, 0.99))
        return cls(values.size, float(values.mean()), p50, p75, p99)


@dataclass(frozen=True, slots=True)
class Omission:
    """One run as everybody had it, and as a closed-loop tester would have."""

    connections: int
    everybody: Seen
    tester: Seen

    @property
    def omitted(self) -> float:
        """Share of the requests at which the tester wasn't there."""
        return 1.0 - self.tester.requests / self.everybody.requests


def asked_by_tester(arrival_s: Floats, busy_s: Floats, connections: int) -> Bools:
    """(n,): which of the requests, by ascending arrival, find a free connection; each is busy for ``busy_s`` (n,)."""
    free = [-np.inf] * connections
    asked = np.zeros(arrival_s.size, np.bool_)
    for i, (arrival, busy) in enumerate(zip(arrival_s.tolist(), busy_s.tolist(), strict=True)):
        if free[0] <= arrival:
            heapq.heapreplace(free, arrival + busy)
            asked[i] = True
    return asked


def omission(arrival_s: Floats, busy_s: Floats, took_s: Floats, connections: int) -> Omission | None:
    """``took_s`` (n,): the time in question, ``nan`` for those without; ``None`` where nobody has one."""
    asked = asked_by_tester(arrival_s, busy_s, connections)
    known = ~np.isnan(took_s)
    if not (known & asked).any():
        return None
    return Omission(connections, Seen.of(took_s[known]), Seen.of(took_s[known & asked]))


def tested(result: Result, measured_s: Floats) -> Omission | None:
    """The first run with a tester who has as many connections as requests are usually under way (Little's law).

    ``None`` where too few come, and where users wait for their answers: those are such testers themselves.
    """
    if result.scenario.traffic.process == "closed":
        return None
    a = result.run.attempts
    mine = np.flatnonzero(result.counted[: a.seed_start[1]])
    mine = mine[np.argsort(a.arrival_s[mine], kind="stable")][:MOST]
    if mine.size < 2:
        return None
    arrival, end = a.arrival_s[mine], float(result.run.horizon_s[0])
    left = a.left_s[mine]
    busy = np.where(np.isnan(left), end, left) - arrival
    span = float(arrival[-1] - arrival[0])
    if span <= 0:
        return None
    connections = max(1, ceil(mine.size / span * float(np.median(busy))))
    return omission(arrival, busy, np.where(result.observed[mine], measured_s[mine], np.nan), connections)
