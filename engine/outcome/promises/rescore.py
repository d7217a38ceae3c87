"""One run, judged by a promise with one of its parts chosen otherwise: how much of a number is the choice's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from engine.outcome.objectives import attain
from engine.outcome.result import Result
from engine.scenario import Objective

from .histogram_quantile import Snapped
from .windows import Kind, fitting, slice_s, windows

Part = Literal["now", "place", "failures", "metric", "threshold", "window"]
FROM_ARRIVAL = ("queue", "ttft", "e2e")
"""Metrics that the same threshold can be asked of."""
_PLACES = ("server", "gateway", "client")
_FAILURES = (("rejected", "timed_out", "unfinished"), ("timed_out", "unfinished"), ())
TARGETS = (0.9, 0.95, 0.99, 0.999)
"""Usual targets, at which every choice is shown to be kept or not."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The same run under one choice."""

    part: Part
    """What is chosen otherwise; ``now``: nothing."""
    value: Any
    """The choice: a place, failures, a metric, a threshold in seconds; of windows (kind, length in seconds), the kind
    being rolling, calendar or slice."""
    chosen: bool
    """Whether the promise says just that."""
    share: float | None
    """Requests in time, of windows those that kept the promise; ``None`` where nothing counts."""
    ci95: tuple[float, float] | None
    good: int
    valid: int

    def kept(self, target: float) -> bool | None:
        """Whether a target is met; ``None`` where nothing counts."""
        return None if self.share is None else self.share >= target


def changed(objective: Objective, **terms: Any) -> Objective:
    """The promise with terms of its own."""
    return Objective(**{**objective.model_dump(), **terms})


def choices(result: Result, objective: Objective, edge: Snapped) -> tuple[Choice, ...]:
    """Every choice, the present one first; ``edge`` is the threshold among a histogram's."""
    return tuple(_choices(result, objective, edge))


def _choices(result: Result, objective: Objective, edge: Snapped) -> Iterator[Choice]:
    yield judged(result, objective, "now", None, objective)
    for place in _PLACES:
        yield judged(result, objective, "place", place, changed(objective, measured_at=place))
    for failures in _FAILURES:
        yield judged(result, objective, "failures", failures, changed(objective, failures=failures))
    if objective.metric in FROM_ARRIVAL:
        for metric in FROM_ARRIVAL:
            yield judged(result, objective, "metric", metric, changed(objective, metric=metric))
    thresholds = {edge.below_s, edge.above_s, objective.threshold_s, objective.threshold_s / 2}
    for threshold in sorted(t for t in thresholds if t):
        yield judged(result, objective, "threshold", threshold, changed(objective, threshold_s=threshold))
    yield from _windows(result, objective)


def judged(result: Result, now: Objective, part: Part, value: Any, then: Objective) -> Choice:
    """The run under another promise, told as a choice of ``part``."""
    found = attain(then, result.scored(then), result.counted, result.run.attempts.seed_start)
    interval = None if found.ci95 is None else (found.ci95[0], found.ci95[1])
    same = part == "now" or _terms(now) == _terms(then)
    return Choice(part, value, same, found.attainment, interval, found.good, found.valid)


def _terms(o: Objective) -> tuple[object, ...]:
    return (o.metric, o.threshold_s, o.measured_at, frozenset(o.failures))


def _windows(result: Result, objective: Objective) -> Iterator[Choice]:
    """Windows that move along, windows one after the other, and slices, which are short windows."""
    length = float(result.run.horizon_s.min(initial=np.inf)) - result.warmup_s
    if not 0 < length < np.inf:
        return
    scored, fits = result.scored(objective), fitting(length, objective.window_s)
    several: list[tuple[str, Kind, float]] = [("rolling", "rolling", fits), ("calendar", "calendar", fits)]
    if slice_s(result) < fits:
        several.append(("slice", "calendar", slice_s(result)))
    for name, kind, window in several:
        w = windows(result, scored, objective.target, window, kind)
        same = name == objective.window and window == objective.window_s
        yield Choice("window", (name, window), same, w.share, w.ci95, w.kept, w.count)
