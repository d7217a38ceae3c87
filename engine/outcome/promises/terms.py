"""Everything that a run says about the terms of its first promise: what a screen needs to help somebody choose them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.outcome.result import Result
from engine.scenario import Objective

from .alerts import Alert, alerts
from .averaging import Averaged, Part, averages
from .budget import Budget, budget, downtime_s
from .entries import Entries, entries
from .histogram_quantile import BUCKETS, Read, Snapped, edges, readings, snap
from .omission import Omission, tested
from .quantile_interval import Sure, sure
from .rescore import TARGETS, Choice, changed, choices
from .threshold import Curve, Strictest, curve, strictest, tallies
from .windows import Windows, fitting, window_starts, windows
from .windows_curve import WindowsCurve, windows_curve

_PERCENTILE = 0.99
"""The one that is averaged."""
_SURE = (0.5, 0.95, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Terms:
    """One promise over one run; seconds."""

    objective: Objective
    strictest: Strictest
    """At the promise's target."""
    by_target: tuple[Strictest, ...]
    """At usual targets, and the promise's."""
    curve: Curve | None
    choices: tuple[Choice, ...]
    windows: Windows | None
    """Of the promise's kind and length, or of a shorter one where two don't fit into a run."""
    windows_curve: WindowsCurve | None
    """The same windows against the threshold."""
    budget: Budget | None
    downtime_s: float
    """How long nothing may work in a window."""
    edge: Snapped
    """The threshold among the edges of the metric's histogram."""
    alerts: tuple[Alert, ...]
    """At that edge."""
    readings: tuple[Read, ...]
    averages: dict[Part, Averaged]
    omission: Omission | None
    sure: tuple[Sure, ...]
    """Percentiles of completed requests, and how well they are known."""
    answered: int
    """Completed requests behind them."""
    length_s: float
    """Counted part of the shortest run."""


def terms(result: Result) -> Terms | None:
    """The terms of the first promise; ``None`` without a promise."""
    if not result.scenario.slo:
        return None
    objective = result.scenario.slo[0]
    counted = entries(result, objective)
    scored, parts = result.scored(objective), tallies(counted)
    upper = edges()[BUCKETS[objective.metric]]
    edge = snap(objective.threshold_s, upper)
    countable = objective if edge.exact else changed(objective, threshold_s=edge.edge_s)
    measured = result.measured(objective)
    values = measured[result.observed]
    values = np.sort(values[~np.isnan(values)])
    length = float(result.run.horizon_s.min(initial=np.inf)) - result.warmup_s
    fits = fitting(length, objective.window_s) if 0 < length < np.inf else None
    promised = strictest(parts, objective.target)
    marks = [objective.threshold_s, *([promised.threshold_s] if promised.threshold_s else [])]
    drawn = curve(parts, *marks)
    return Terms(
        objective=objective,
        strictest=promised,
        by_target=tuple(strictest(parts, target) for target in sorted({*TARGETS, objective.target})),
        curve=drawn,
        choices=choices(result, objective, edge),
        windows=None if fits is None else windows(result, scored, objective.target, fits, objective.window),
        windows_curve=None if fits is None else _by_window(result, objective, counted, fits, drawn),
        budget=budget(result, objective, scored),
        downtime_s=downtime_s(objective.target, objective.window_s),
        edge=edge,
        alerts=alerts(result, countable, result.scored(countable)),
        readings=readings(values, upper),
        averages=averages(result, measured, _PERCENTILE),
        omission=tested(result, measured),
        sure=tuple(sure(values, q) for q in _SURE) if values.size else (),
        answered=int(values.size),
        length_s=length,
    )


def _by_window(
    result: Result, objective: Objective, counted: Entries, length_s: float, drawn: Curve | None
) -> WindowsCurve | None:
    if drawn is None:
        return None
    bounds = window_starts(result, length_s, objective.window)
    return windows_curve(counted, bounds, length_s, objective.target, drawn.threshold_s)
