"""Kubernetes' HPA v2, first half: from a metric to a number of replicas.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go, and
`computeReplicasForMetrics` of horizontal.go. Levels and targets are whole numbers (Kubernetes' milli-units), divided as
Go divides them: an average and a utilisation are cut to whole units before they are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

TOLERANCE = 0.1
"""How far a ratio may be from 1 without any effect (`--horizontal-pod-autoscaler-tolerance`)."""

Number = int | float


@dataclass(frozen=True, slots=True)
class Load:
    """The samples of some pods, summed: their levels, what they are measured against, and how many there are."""

    level: Number
    base: Number
    """What the pods request (a `Resource` metric), or their number (a `Pods` metric)."""
    pods: int

    def __add__(self, other: Load) -> Load:
        return Load(self.level + other.level, self.base + other.base, self.pods + other.pods)


NOTHING = Load(0, 0, 0)

Ratio = Callable[[Load], float]
"""Level per target; 1 is right."""


def average_ratio(target: Number) -> Ratio:
    """Of a `Pods` metric: the mean level, cut to whole units, per `target`."""
    return lambda load: load.level // load.base / target


def utilization_ratio(target_percent: Number) -> Ratio:
    """Of a `Resource` metric: the percentage of the requests that is used, cut to a whole one, per `target_percent`."""
    return lambda load: load.level * 100 // load.base / target_percent


def idle(load: Load) -> Load:
    """The same pods with nothing to do."""
    return Load(0, load.base, load.pods)


def within(ratio: float, tolerance: float) -> bool:
    """Whether a ratio is near enough to 1, the tolerance itself included."""
    return 1 - tolerance <= ratio <= 1 + tolerance


def by_pods(
    current: int,
    ready: int,
    sampled: Load,
    missing: Load,
    unready: Load,
    ratio: Ratio,
    tolerance: float = TOLERANCE,
) -> int | None:
    """Replicas by a `Pods` or `Resource` metric; ``None`` when no ready pod has a sample: the metric has failed.

    `ready` pods have a sample that counts, all of them in `sampled`. `missing` pods have none: they are filled in
    against the change, at their level in `missing` when it is downward and as idle when it is upward. `unready` pods
    count as idle when the change is upward and not at all otherwise. What remains of the change after that is made,
    unless it has turned round.
    """
    if not sampled.pods or not sampled.base:
        return None
    first = ratio(sampled)
    if not missing.pods and not (unready.pods and first > 1):
        return current if within(first, tolerance) else math.ceil(first * ready)
    filled = sampled
    if first < 1:
        filled += missing
    elif first > 1:
        filled += idle(missing) + idle(unready)
    second = ratio(filled)
    if within(second, tolerance) or (first < 1) != (second < 1):
        return current
    replicas = math.ceil(second * filled.pods)
    return current if (second < 1 and replicas > current) or (second > 1 and replicas < current) else replicas


def by_value(current: int, ready: int, value: Number, target: Number, tolerance: float = TOLERANCE) -> int:
    """Replicas by an `Object` or `External` metric with a `Value` target: ready replicas times the ratio.

    A known trap: with none of several replicas ready it asks for none. From zero it asks for the ratio itself.
    """
    ratio = value / target
    if not current:
        return math.ceil(ratio)
    return current if within(ratio, tolerance) else math.ceil(ratio * ready)


def by_average_value(current: int, value: Number, target: Number, tolerance: float = TOLERANCE) -> int:
    """Replicas by an `Object` or `External` metric with an `AverageValue` target: the value, shared by all of them."""
    if current and within(value / (target * current), tolerance):
        return current
    return math.ceil(value / target)


def combined(current: int, proposals: Iterable[int | None]) -> int | None:
    """The highest of the metrics' proposals; ``None``, no decision: all have failed, or one has and it goes down."""
    proposals = list(proposals)
    known = [proposal for proposal in proposals if proposal is not None]
    if not known or (len(known) < len(proposals) and max(known) < current):
        return None
    return max(known)
