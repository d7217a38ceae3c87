"""What cross-validation says of the constants: a table for the reader, and bands for the app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.machine.calibration.rows import Point
from engine.machine.calibration.scoring import Scored, equal_weights, leaf, weighted_quantile
from engine.machine.calibration.training import HeldOut, Training, by_block, by_family, cross_validate
from engine.machine.constants import class_of, family_of

GOALS: tuple[tuple[str, Callable[[Point], bool], tuple[float, float], tuple[float, float]], ...] = (
    (
        "dense throughput, batch latency",
        lambda p: p.dense and p.metric in ("output_tok_s", "batch_latency"),
        (12.0, 35.0),
        (8.0, 22.0),
    ),
    ("dense TPOT", lambda p: p.dense and p.metric == "tpot", (18.0, 35.0), (12.0, 28.0)),
    ("dense TTFT, concurrency 1-4", lambda p: p.dense and p.metric == "ttft_low_load", (20.0, 50.0), (12.0, 35.0)),
    (
        "MoE TPOT, throughput",
        lambda p: not p.dense and p.metric in ("tpot", "output_tok_s"),
        (25.0, 55.0),
        (16.0, 40.0),
    ),
    ("all", lambda p: True, (16.0, 40.0), (10.0, 30.0)),
)
"""Class of measurement, which points it has, median and 90th percentile in percent: at most, and as a goal."""
OWN_POINT = ("after one own point", (12.0, 40.0), (8.0, 30.0))


def cross_validation(path: str | Path) -> dict[str, Any]:
    """What accuracy.json holds, from a table of measurements. Raises ScenarioError for a file that isn't one."""
    return report(Training.read(path))


def report(training: Training) -> dict[str, Any]:
    """`held_out`: rows of the table; `bands`: by family, engine and class; `classes`, `new_family`: by class.

    A band is [median, 90th percentile, deployments], absolute errors in percent of blocks left out; `new_family` of
    accelerators of whose whole family nothing was known. `devices`: deployments in the fit by accelerator.
    """
    held = cross_validate(training, by_block)
    known = _of(held).where(held.known.tolist())
    others = _of(cross_validate(training, by_family))
    keys = [(family_of(p.accelerator), p.engine, class_of(p.model)) for p in held.points]
    bands: dict[str, Any] = {}
    for key in sorted(set(keys)):
        family, engine, kind = key
        band = _band(_of(held).where(one == key for one in keys))
        bands.setdefault(family, {}).setdefault(engine, {})[kind] = band
    return {
        "held_out": _table(known),
        "bands": bands,
        "classes": _by_class(known),
        "new_family": _by_class(others),
        "devices": _deployments([p.accelerator.name for p in training.points], training.points),
        "engines": _deployments([f"{p.engine} {class_of(p.model)}" for p in training.points], training.points),
    }


def _of(held: HeldOut) -> Scored:
    return Scored(held.points, held.errors)


def _table(known: Scored) -> list[dict[str, Any]]:
    rows = []
    for name, has, must, goal in GOALS:
        found = leaf(known.where(map(has, known.points)))
        rows.append({"class": name, **(found or {}), "must": must, "goal": goal})
    corrected = leaf(after_one_point(known))
    name, must, goal = OWN_POINT
    rows.append({"class": name, **(corrected or {}), "must": must, "goal": goal})
    for kind, dense in (("dense", True), ("moe", False)):
        rows.append({"class": f"all {kind}", **(leaf(known.where(p.dense == dense for p in known.points)) or {})})
    return rows


def after_one_point(known: Scored) -> Scored:
    """The rest of each deployment when one of its own TPOTs or rates has scaled the profile.

    The point in the middle of the deployment's (by requests at once) is measured; whatever else it has, TTFT aside
    which a decode measurement says nothing of, is predicted with its correction.
    """
    rows: dict[object, list[int]] = {}
    for row, point in enumerate(known.points):
        if point.metric != "ttft_low_load":
            rows.setdefault(point.deployment_key, []).append(row)
    kept: list[int] = []
    errors: list[float] = []
    for members in rows.values():
        ordered = sorted(members, key=lambda row: (known.points[row].seqs, known.points[row].line))
        own = ordered[len(ordered) // 2]
        slower = _in_time(known, own)
        for row in members:
            if row != own:
                inverse = known.points[row].metric == "output_tok_s"
                ratio = _in_time(known, row) / slower
                kept.append(row)
                errors.append((1 / ratio if inverse else ratio) - 1)
    return Scored([known.points[row] for row in kept], np.array(errors))


def _in_time(known: Scored, row: int) -> float:
    """Predicted over measured seconds."""
    ratio = 1 + float(known.errors[row])
    return 1 / ratio if known.points[row].metric == "output_tok_s" else ratio


def _band(scored: Scored) -> list[float]:
    weights, index = equal_weights([point.deployment_key for point in scored.points])
    apes = 100 * np.abs(scored.errors)
    median, high = (round(weighted_quantile(apes, weights, share), 1) for share in (0.5, 0.9))
    return [median, high, int(index.max()) + 1]


def _by_class(scored: Scored) -> dict[str, list[float]]:
    return {
        kind: _band(scored.where(class_of(p.model) == kind for p in scored.points))
        for kind in sorted({class_of(p.model) for p in scored.points})
    }


def _deployments(names: Sequence[str], points: Sequence[Point]) -> dict[str, int]:
    found: dict[str, set[object]] = {}
    for name, point in zip(names, points, strict=True):
        found.setdefault(name, set()).add(point.deployment_key)
    return {name: len(found[name]) for name in sorted(found)}
