"""A table of measurements against the shipped constants: the figures that `calibrate --evaluate` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.machine.calibration.judged import Judged, constants_of, judge
from engine.machine.calibration.prediction import Plan, predict
from engine.machine.calibration.rows import Point
from engine.machine.calibration.scoring import Scored, table
from engine.machine.calibration.table import read_measurements
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.steptime import analytic_terms

BASELINE_COMPUTE, BASELINE_MEMORY = 0.6, 0.8
"""Shares of peak that the comparison takes: a careful engineer's roofline."""


def evaluate(path: str | Path) -> dict[str, Any]:
    """The errors of the shipped constants on a table, in percent, equal weight per deployment.

    `{configurations, points, excluded: {reason: n}, coverage, overall, by_metric, by_class, by_accelerator, by_source,
    baseline}`; see `scoring.leaf` for a leaf (null where there is no point). `baseline` has the same five tables for a
    roofline at fixed shares. Raises ScenarioError for a file that isn't such a table.
    """
    judged = judge(read_measurements(path))
    return {
        "configurations": len({point.configuration for point in judged.points}),
        "points": len(judged.points),
        "excluded": judged.excluded,
        "coverage": {
            "mapped": judged.mapped,
            "predicted": len(judged.points),
            "share": round(len(judged.points) / judged.mapped, 4) if judged.mapped else None,
        },
        **table(scored(judged, predictions(judged))),
        "baseline": table(scored(judged, baseline(judged))),
    }


def scored(judged: Judged, predicted: NDArray[np.float64]) -> Scored:
    """Relative errors of predictions, (points,)."""
    measured = np.array([point.value for point in judged.points], np.float64)
    return Scored(judged.points, predicted / measured - 1)


def predictions(judged: Judged) -> NDArray[np.float64]:
    """What the shipped constants say of every point, (points,), in its unit."""
    return _each(judged, lambda plan, d, c: predict(plan, d, c))


def baseline(judged: Judged) -> NDArray[np.float64]:
    """What a roofline at fixed shares of the peaks says, (points,): no host, no links, no latencies."""
    return _each(judged, _roofline)


def _each(judged: Judged, say: Any) -> NDArray[np.float64]:
    pairs: Sequence[tuple[Point, Plan]] = list(zip(judged.points, judged.plans, strict=True))
    said = (say(plan, point.deployment, constants_of(point)) for point, plan in pairs)
    return np.fromiter(said, np.float64, len(pairs))


def _roofline(plan: Plan, d: Deployment, c: Constants) -> float:
    """Each step lasts as long as the slower of arithmetic and reads."""
    compute = dict.fromkeys(("eta_c", "eta_c16", "eta_a", "eta_mla"), BASELINE_COMPUTE)
    memory = dict.fromkeys(("eta_m", "eta_m16", "eta_kv"), BASELINE_MEMORY)
    names = ("block_fp8_compute", "block_fp8_reads", "weight_only_compute", "moe_touched", "moe_compute", "overlap")
    plain = dict.fromkeys(names, 1.0)
    count, tokens, requests, context, pairs = plan.steps.T
    longest = {"arithmetic": np.zeros_like(count), "reads": np.zeros_like(count)}
    for term in analytic_terms(d, replace(c, **compute, **memory, **plain), tokens=tokens):
        side = {"compute": "arithmetic", "attention": "arithmetic", "weights": "reads", "kv": "reads"}.get(term.name)
        if side is not None:
            rest = term.seq_s * requests + term.kv_token_s * context + term.pair_s * pairs
            longest[side] = longest[side] + term.base + rest
    seconds = float(count @ np.maximum(longest["arithmetic"], longest["reads"]))
    return float(plan.predicted(seconds))
