"""Fitting the constants to a table of measurements, and trying them on blocks that were left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.machine.calibration.features import features_of
from engine.machine.calibration.fit import Problem, fitted, problem_of, residuals, solve, weights_of
from engine.machine.calibration.judged import Judged, judge
from engine.machine.calibration.layout import readable
from engine.machine.calibration.rows import Point
from engine.machine.calibration.table import read_measurements
from engine.machine.constants import family_of
from engine.scenario import ScenarioError

Floats = NDArray[np.float64]


ROUNDS_HELD_OUT = 30
"""Of a fit without a block: predictions then change by a tenth of a percent more at most."""


@cache
def first_constants() -> dict[str, Any]:
    """Where the fit starts and what it is tied to; values for what no measurement says anything about."""
    text = resources.files("engine.machine.calibration").joinpath("first.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@dataclass(frozen=True, slots=True)
class Training:
    """A table ready for fitting. Each measurement once: of one run's latency and total rate the latency counts."""

    points: list[Point]
    problem: Problem
    weights: Floats

    @classmethod
    def read(cls, path: str | Path) -> Training:
        """The points of a table. Raises ScenarioError for a file that isn't one, or that has nothing to fit."""
        judged = once(judge(read_measurements(path), first_constants()))
        if not judged.points:
            raise ScenarioError.of(str(path), "", "has no row that can be fitted", "give measurements; see --evaluate")
        features = features_of(judged.points, judged.plans, first_constants())
        return cls(judged.points, problem_of(features, first_constants()), weights_of(judged.points))


def once(judged: Judged) -> Judged:
    """Without points that say what another of the same configuration and metric says already."""
    seen: set[Hashable] = set()
    kept = []
    for row, point in enumerate(judged.points):
        key = (point.metric, round(point.value, 4), point.configuration)
        twin = (point.metric, point.configuration) if point.metric == "batch_latency" else key
        if twin not in seen:
            kept.append(row)
        seen |= {key, twin}
    points, plans = [judged.points[row] for row in kept], [judged.plans[row] for row in kept]
    return Judged(points, plans, judged.excluded, judged.mapped)


def refit(path: str | Path) -> str:
    """The constants fitted to a table, as the text of constants.json."""
    training = Training.read(path)
    table = fitted(training.problem, solve(training.problem, training.weights), first_constants())
    return readable(table) + "\n"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Points with the relative errors of predictions by constants that were fitted without their block, (points,).

    `known`: whether the rest had the point's accelerator family, and its engine: else nothing could be learnt.
    """

    points: list[Point]
    errors: Floats
    known: NDArray[np.bool_]


def cross_validate(training: Training, block: Callable[[Point], Hashable]) -> HeldOut:
    """Each block predicted by constants fitted to all others."""
    blocks = [block(point) for point in training.points]
    errors, known = np.empty(len(blocks)), np.zeros(len(blocks), np.bool_)
    for held in dict.fromkeys(blocks):
        out = np.array([one == held for one in blocks])
        beta = solve(training.problem, training.weights * ~out, rounds=ROUNDS_HELD_OUT)
        errors[out] = np.exp(residuals(training.problem, beta)[out]) - 1
        rest = [point for point, left in zip(training.points, out.tolist(), strict=True) if not left]
        families, engines = {family_of(point.accelerator) for point in rest}, {point.engine for point in rest}
        for row in np.flatnonzero(out).tolist():
            point = training.points[row]
            known[row] = family_of(point.accelerator) in families and point.engine in engines
    return HeldOut(training.points, errors, known)


def by_block(point: Point) -> Hashable:
    """Source, accelerator, model and engine."""
    return point.block


def by_family(point: Point) -> Hashable:
    """The accelerator's family: what to expect of one that nobody measured."""
    return family_of(point.accelerator)
