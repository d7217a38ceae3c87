"""The error budget over a promise's window: how much of it a run uses up, and how fast at worst."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.outcome.objectives import Scored
from engine.outcome.result import Result
from engine.outcome.spread import Floats
from engine.scenario import Objective

from .windows import arrivals_of, slice_s

_POINTS = 300


def downtime_s(target: float, window_s: float) -> float:
    """How long nothing at all may work in a window, at even traffic: the budget as time, seconds."""
    return (1.0 - target) * window_s


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left of it over a run, as shares of the whole; below 0 it is overdrawn."""

    window_s: float
    from_s: float
    """Where counting begins: the end of the warm-up."""
    time_s: Floats
    """(points,): times in the run."""
    left: Floats
    """(points,): mean over runs."""
    worst: Floats
    """(points,): of the run that went lowest."""
    used: float
    """Share of one window's budget that bad requests of a run cost, mean over runs; may be more than 1."""
    pace: float
    """Burn rate over the whole run."""
    steepest: float
    """The highest burn rate of a slice."""
    slice_s: float
    steepest_at_s: float
    """The middle of that slice."""
    resets_s: Floats
    """When a new window begins, after the first."""


def budget(result: Result, objective: Objective, scored: Scored) -> Budget | None:
    """The budget's course; ``None`` where none is allowed, nothing counts, or a run has no length.

    A window's budget is 1 - target of the requests that come in it at the run's mean rate. A rolling window looks back
    over its length; calendar windows begin at the end of the warm-up, each with a new budget.
    """
    start, end = result.warmup_s, float(result.run.horizon_s.min(initial=np.inf))
    total = int((scored.valid & result.counted).sum())
    seeds, window = result.run.attempts.seeds, objective.window_s
    if objective.target >= 1 or not total or not end > start:
        return None
    whole = (1.0 - objective.target) * total / float((result.run.horizon_s - start).sum()) * window
    time = np.linspace(start, end, _POINTS)
    since = _since(time, start, window, objective.window)
    bad = scored.valid & ~scored.good & result.counted
    spent = np.empty((seeds, time.size))
    for seed, times in enumerate(arrivals_of(result, bad)):
        # At or after the window's beginning, up to now.
        spent[seed] = np.searchsorted(times, time, side="right") - np.searchsorted(times, since, side="left")
    left = 1.0 - spent / whole
    slice_, burn, at = _steepest(result, objective, scored)
    resets = np.arange(start + window, end, window) if objective.window == "calendar" else np.empty(0)
    return Budget(
        window_s=window,
        from_s=start,
        time_s=time,
        left=left.mean(axis=0),
        worst=left[int(np.argmin(left.min(axis=1)))],
        used=float(bad.sum()) / seeds / whole,
        pace=float(bad.sum()) / total / (1.0 - objective.target),
        steepest=burn,
        slice_s=slice_,
        steepest_at_s=at,
        resets_s=resets,
    )


def _since(time: Floats, start: float, window_s: float, kind: str) -> Floats:
    """(points,): from when on the window at each time looks."""
    if kind == "rolling":
        return np.maximum(time - window_s, start)
    return np.asarray(start + np.floor((time - start) / window_s) * window_s)


def _steepest(result: Result, objective: Objective, scored: Scored) -> tuple[float, float, float]:
    """(length, burn rate, middle) of the worst slice, all runs together; a burn rate of 0 without any."""
    width = slice_s(result)
    a, start = result.run.attempts, result.warmup_s
    counted = scored.valid & result.counted
    slot: NDArray[np.int64] = ((a.arrival_s[counted] - start) // width).astype(np.int64)
    valid = np.bincount(slot)
    bad = np.bincount(slot, ~scored.good[counted])
    share = np.divide(bad, valid, out=np.zeros(valid.size), where=valid > 0)
    at = int(np.argmax(share))
    return width, float(share[at]) / (1.0 - objective.target), start + (at + 0.5) * width
