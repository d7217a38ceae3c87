"""What a monitoring system reads from a histogram: quantiles between the edges of its buckets, and shares only at them.

``histogram_quantile`` is that of Prometheus for classic histograms (Prometheus documentation, "Query functions";
``promql/quantile.go``): linear inside a bucket, from 0 in the first, and the last finite edge for whatever lies above
it. ``histogram_edges.csv`` holds the default buckets of vLLM (``vllm/v1/metrics/loggers.py``) and of Prometheus'
clients.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from engine.outcome.spread import Floats, quantile

_TABLE = Path(__file__).parent / "histogram_edges.csv"
BUCKETS: Mapping[str, str] = {
    "ttft": "vllm_ttft", "tpot": "vllm_tpot", "max_itl": "vllm_tpot", "e2e": "vllm_e2e", "queue": "vllm_e2e",
}  # fmt: skip
"""Buckets of the histogram that has each metric; of a request's longest gap there is none, the gaps' own stand in."""
QUANTILES = (0.5, 0.9, 0.95, 0.99)


@cache
def edges() -> dict[str, Floats]:
    """Upper edges of every known set of buckets, ascending, seconds; the last bucket, above all of them, has none."""
    found: dict[str, list[float]] = {}
    with _TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["buckets"], []).append(float(row["le_s"]))
    return {name: np.array(values) for name, values in found.items()}


def cumulative(values: Floats, upper: Floats) -> Floats:
    """(edges + 1,): how many of ``values`` (n,) are at or below each edge, then all: what a histogram exports."""
    below = np.searchsorted(np.sort(values), upper, side="right")
    return np.append(below, values.size).astype(np.float64)


def histogram_quantile(q: float, upper: Floats, counts: Floats) -> float:
    """The ``q`` quantile that Prometheus computes from cumulative ``counts`` (edges + 1,); ``nan`` without any.

    ``upper`` (edges,) are positive, ascending; ``q`` is from 0 to 1. Unit of the result: that of the edges.
    """
    if not counts[-1]:
        return float("nan")
    rank = q * counts[-1]
    bucket = int(np.searchsorted(counts[:-1], rank, side="left"))
    if bucket == upper.size:
        return float(upper[-1])
    start, before = (float(upper[bucket - 1]), float(counts[bucket - 1])) if bucket else (0.0, 0.0)
    inside = counts[bucket] - before
    return start + (float(upper[bucket]) - start) * float((rank - before) / inside) if inside else start


@dataclass(frozen=True, slots=True)
class Snapped:
    """A threshold among the edges at which a histogram can count; seconds."""

    asked_s: float
    below_s: float | None
    """The next edge at or below it; ``None``: there is none."""
    above_s: float | None
    """The next at or above it."""
    edge_s: float
    """Where an alert can stand: the nearer of the two by ratio, of equally near ones the stricter."""

    @property
    def exact(self) -> bool:
        """Whether the threshold is an edge."""
        return self.edge_s == self.asked_s


def snap(threshold_s: float, upper: Floats) -> Snapped:
    """The edge for a threshold."""
    below, above = upper[upper <= threshold_s], upper[upper >= threshold_s]
    low = float(below[-1]) if below.size else None
    high = float(above[0]) if above.size else None
    if low is None or high is None:
        edge = low if high is None else high
        assert edge is not None, "there are edges"
    else:
        edge = low if threshold_s * threshold_s <= low * high else high
    return Snapped(threshold_s, low, high, edge)


@dataclass(frozen=True, slots=True)
class Read:
    """One quantile as it is, and as the histogram has it; seconds."""

    q: float
    true_s: float
    read_s: float
    bucket_s: tuple[float, float]
    """The edges between which it was read; the upper one infinite above the last."""

    @property
    def error(self) -> float | None:
        """Relative; ``None`` where the true one is 0."""
        return self.read_s / self.true_s - 1.0 if self.true_s > 0 else None


def readings(values: Floats, upper: Floats) -> tuple[Read, ...]:
    """Usual quantiles of ``values`` (n,) beside what a histogram with these edges says; empty without values."""
    if not values.size:
        return ()
    ordered, counts = np.sort(values), cumulative(values, upper)
    around = np.concatenate([[0.0], upper, [np.inf]])
    found = []
    for q in QUANTILES:
        at = int(np.searchsorted(counts[:-1], q * counts[-1], side="left"))
        between = (float(around[at]), float(around[at + 1]))
        found.append(Read(q, quantile(ordered, q), histogram_quantile(q, upper, counts), between))
    return tuple(found)
