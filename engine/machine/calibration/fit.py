"""The fit: constants that make predictions near measurements, near their first values where measurements are few.

Unknowns are logarithms of constants. A residual is the logarithm of predicted over measured; what it costs grows like
that of Student's t with few degrees of freedom, so that wrong rows count little. Every deployment has the same
weight; sources with many deployments are tempered. Each constant is tied to its first value, and related ones to each
other, by a normal prior: a family with no rows keeps its first values. Solved by Gauss-Newton steps with reweighting,
from fixed starts, in a fixed number of rounds: the same on every machine but for the last digits, which are rounded.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engine.machine.calibration.features import ARITHMETIC, READS, Features, Path, Price
from engine.machine.calibration.rows import Point
from engine.machine.calibration.scoring import equal_weights
from engine.machine.constants import ENGINES

Floats = NDArray[np.float64]
ROUNDS = 200
SMALLEST_STEP = 1e-7
LEAST_BEND = 0.1
HALVINGS = 30
NOTHING_S = 1e-30  # stands for no time at all, and is no number that processors are slow with when multiplied
SCALE = 0.1
"""Residual at which a row counts half."""
DEGREES = 3.0
SOURCE_POWER = 0.25
DIGITS = 4
SHARES = frozenset(
    {
        "eta_c",
        "eta_m",
        "eta_kv",
        "eta_a",
        "eta_mla",
        "eta_link",
        "block_fp8_compute",
        "block_fp8_reads",
        "weight_only_compute",
    }
)
MOST_SHARE = 0.98


def get(table: Mapping[str, Any], path: Path) -> float:
    """The constant at a path."""
    found: Any = table
    for key in path:
        found = found[key]
    return float(found)


def put(table: dict[str, Any], path: Path, value: float) -> None:
    """Replace the constant at a path."""
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value


@dataclass(frozen=True, slots=True)
class Problem:
    """A fit.

    `amounts` (points, STEPS, k): what each step of a point pays of its k prices, whose numbers `price` (points, k) has.
    `exponents` (prices, unknowns): a price's logarithm is their product with the unknowns. Ties are rows of `prior`
    (ties, unknowns), each a combination of unknowns over its width, and `target` (ties,), where it should be.
    """

    amounts: Floats
    price: NDArray[np.int64]
    exponents: Floats
    share: NDArray[np.bool_]
    """(prices,): whether what the price divides by is a share of a peak, cut to 1."""
    overlap: float
    log_measured: Floats
    log_tokens: Floats
    throughput: NDArray[np.bool_]
    unknowns: tuple[Path, ...]
    start: Floats
    prior: Floats
    target: Floats
    low: Floats
    high: Floats


def problem_of(features: Features, first: Mapping[str, Any], widths: Mapping[str, float] | None = None) -> Problem:
    """The fit of features, starting from and tied to the first constants."""
    numbers: dict[Price, int] = {}
    price = np.array([[numbers.setdefault(one, len(numbers)) for one in prices] for prices in features.prices])
    used = set(price[features.amounts.any(axis=1)].tolist())
    paths = {path: None for one, row in numbers.items() if row in used for path in (*one.times, *one.over)}
    unknowns = tuple(sorted(paths))
    column = {path: place for place, path in enumerate(unknowns)}
    exponents = np.zeros((len(numbers), len(unknowns)))
    for one, row in numbers.items():
        if row in used:
            for path in one.times:
                exponents[row, column[path]] += 1.0
            for path in one.over:
                exponents[row, column[path]] -= 1.0
    start = np.log([get(first, path) for path in unknowns])
    prior, target = _ties(unknowns, start, column, widths or {})
    bounds = np.array([_bounds(path) for path in unknowns])
    throughput = ~np.isnan(features.tokens)
    return Problem(
        amounts=features.amounts,
        price=price,
        exponents=exponents,
        share=np.array([one.share for one in numbers]),
        overlap=get(first, ("shared", "overlap")),
        log_measured=features.log_measured,
        log_tokens=np.log(np.where(throughput, features.tokens, 1.0)),
        throughput=throughput,
        unknowns=unknowns,
        start=start,
        prior=prior,
        target=target,
        low=bounds[:, 0],
        high=bounds[:, 1],
    )


WIDTHS: Mapping[str, float] = MappingProxyType(
    {
        "eta_c": 0.5,
        "eta_m": 0.2,
        "eta_kv": 0.25,
        "eta_a": 0.3,
        "eta_mla": 0.5,
        "eta_link": 0.3,
        "alpha_s": 0.4,
        "moe": 0.3,
        "moe_compute": 0.3,
        "block_fp8_compute": 0.3,
        "block_fp8_reads": 0.15,
        "weight_only_compute": 0.5,
        "arithmetic": 0.15,
        "reads": 0.15,
        "kv": 0.1,
        "older": 0.6,
        "device": 0.08,
        "cut_down": 0.5,
        "consumer": 0.2,
        "only_old": 0.12,
        "ov_s": 0.7,
        "layer_s": 0.5,
        "moe_s": 0.7,
        "seq_s": 0.7,
        "launch_s": 1.0,
        "frontend_s": 0.8,
        "inprocess_s": 0.5,
    }
)
"""Standard deviations of the logarithms of constants from their first values; `older`: of engines of old."""


CUT_DOWN = frozenset({"H20-96GB"})
"""Accelerators whose makers slow their arithmetic down for the market: their shares of peak follow no other's."""
CONSUMER = frozenset({"RTX 3090", "RTX 4090", "RTX 5090"})
"""Consumer cards: with 32-bit sums they compute at half rate, of which they reach a larger share."""
ONLY_OLD = frozenset({"cdna2", "cdna3", "gaudi"})
"""Families of which only rows with software of 2024 are known: those say more about that software."""


def _width(path: Path, widths: Mapping[str, float]) -> float:
    known = {**WIDTHS, **widths}
    name = next(key for key in reversed(path) if not key.isdigit())
    if path[0] == "devices":
        special = "cut_down" if path[1] in CUT_DOWN else "consumer" if path[1] in CONSUMER else "device"
        return known[special]
    if path[0] == "families" and path[1] in ONLY_OLD:
        return known["only_old"]
    if name in ("arithmetic", "reads", "kv") and path[1] not in ENGINES:
        return known["older"]
    return known[name]


def _ties(
    unknowns: Sequence[Path],
    start: Floats,
    numbers: Mapping[Path, int],
    widths: Mapping[str, float],
) -> tuple[Floats, Floats]:
    """Prior rows: (ties, unknowns) and (ties,), in widths."""
    rows, targets = [], []
    for number, path in enumerate(unknowns):
        row = np.zeros(len(unknowns))
        width = _width(path, widths)
        if len(path) == 4 and path[2] in ("eta_c", "eta_m") and path[3] != "16":
            # The ratio to 16 bits is better known than either.
            wide = numbers.get((*path[:3], "16"))
            row[number] = 1 / (width / 2)
            target = start[number] / (width / 2)
            if wide is not None:
                row[wide] = -row[number]
                target -= start[wide] / (width / 2)
        else:
            row[number], target = 1 / width, start[number] / width
        rows.append(row)
        targets.append(target)
    return np.array(rows), np.array(targets)


def _bounds(path: Path) -> tuple[float, float]:
    if SHARES & set(path):
        return math.log(0.02), math.log(MOST_SHARE)
    return math.log(1e-9), math.log(10.0)


def residuals(p: Problem, beta: Floats) -> Floats:
    """(points,): logarithms of predicted over measured."""
    return _residuals(p, beta)[0]


def _residuals(p: Problem, beta: Floats) -> tuple[Floats, Floats]:
    """Residuals (points,), and (points, k) by how much each grows with the logarithm of each of its prices."""
    exponent = p.exponents @ beta
    cut = p.share & (exponent < 0)  # a product of shares above 1 is cut to 1
    prices = np.exp(np.where(cut, 0.0, exponent))
    paid = p.amounts * prices[p.price][:, None, :]
    parts = [np.maximum(paid[:, :, group].sum(axis=2), NOTHING_S) for group in (ARITHMETIC, READS)]
    both = np.maximum(*parts)
    both = both * sum((part / both) ** p.overlap for part in parts) ** (1 / p.overlap)
    seconds = both.sum(axis=1) + paid[:, :, READS.stop :].sum(axis=(1, 2))
    for group, part in zip((ARITHMETIC, READS), parts, strict=True):
        paid[:, :, group] *= ((part / both) ** (p.overlap - 1))[:, :, None]
    residual = np.where(p.throughput, p.log_tokens - np.log(seconds), np.log(seconds)) - p.log_measured
    sign = np.where(p.throughput, -1.0, 1.0) / seconds
    return residual, paid.sum(axis=1) * ~cut[p.price] * sign[:, None]


def weights_of(points: Sequence[Point]) -> Floats:
    """(points,): 1 over a deployment's points, tempered for sources with many deployments; mean 1 a deployment."""
    each, index = equal_weights([point.deployment_key for point in points])
    sources: dict[str, set[int]] = {}
    for point, deployment in zip(points, index.tolist(), strict=True):
        sources.setdefault(point.source, set()).add(deployment)
    temper = np.array([len(sources[point.source]) ** -SOURCE_POWER for point in points])
    weights = each * temper
    return np.asarray(weights * (index.max() + 1) / weights.sum())


def solve(p: Problem, weights: Floats, scale: float = SCALE, rounds: int = ROUNDS) -> Floats:
    """The logarithms of the unknowns, (unknowns,), by Newton's steps with a curvature kept positive, never uphill."""
    kept = np.flatnonzero(weights)
    p, weights = _rows(p, kept), weights[kept] / scale**2
    ends = np.arange(len(kept) + 1) * p.price.shape[1]
    stiffness = p.prior.T @ p.prior
    beta = np.clip(p.start, p.low, p.high)
    residual, slope = _residuals(p, beta)
    cost = _cost(p, beta, residual, weights, scale)
    for _ in range(rounds):
        by_price = sparse.csr_array((slope.ravel(), p.price.ravel(), ends), shape=(len(kept), len(p.share)))
        strange = (residual / scale) ** 2
        pull = weights * (DEGREES + 1) / (DEGREES + strange)
        bend = pull * np.maximum((DEGREES - strange) / (DEGREES + strange), LEAST_BEND)
        gradient = p.exponents.T @ (by_price.T @ (pull * residual)) + p.prior.T @ (p.prior @ beta - p.target)
        among_prices = by_price.T @ (sparse.diags_array(bend) @ by_price)
        curvature = p.exponents.T @ (among_prices @ p.exponents) + stiffness
        free = ~(((beta <= p.low) & (gradient > 0)) | ((beta >= p.high) & (gradient < 0)))
        step = np.zeros_like(beta)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], -gradient[free])
        for _ in range(HALVINGS):
            moved = np.clip(beta + np.clip(step, -0.5, 0.5), p.low, p.high)
            residual, slope = _residuals(p, moved)
            found = _cost(p, moved, residual, weights, scale)
            if found <= cost:
                break
            step = step / 2
        else:
            return beta
        nearly = float(np.abs(moved - beta).max()) < SMALLEST_STEP
        beta, cost = moved, found
        if nearly:
            break
    return beta


def _cost(p: Problem, beta: Floats, residual: Floats, weights: Floats, scale: float) -> float:
    """What is minimised: Student's t of the residuals, weighed, and half the squares of the ties."""
    strange = np.log1p((residual / scale) ** 2 / DEGREES)
    tied = p.prior @ beta - p.target
    return float(scale**2 * (DEGREES + 1) / 2 * weights @ strange + tied @ tied / 2)


def _rows(p: Problem, rows: NDArray[np.int64]) -> Problem:
    """The problem of some points only."""
    names = ("amounts", "price", "log_measured", "log_tokens", "throughput")
    return replace(p, **{name: getattr(p, name)[rows] for name in names})


def fitted(p: Problem, beta: Floats, first: Mapping[str, Any]) -> dict[str, Any]:
    """The table of constants with the unknowns replaced, rounded to 4 significant digits."""
    table = copy.deepcopy(dict(first))
    for path, value in zip(p.unknowns, np.exp(beta).tolist(), strict=True):
        put(table, path, _rounded(value))
    for family in table["families"]:
        for name in ("eta_c", "eta_m"):
            _follow(table, first, ("families", family, name), set(p.unknowns))
    return table


def _follow(table: dict[str, Any], first: Mapping[str, Any], path: Path, known: set[Path]) -> None:
    """Formats that no row of a family has keep their first ratio to 16 bits."""
    wide = (*path, "16")
    for width in ("8", "4"):
        narrow = (*path, width)
        if wide in known and narrow not in known:
            ratio = get(first, narrow) / get(first, wide)
            put(table, narrow, _rounded(min(MOST_SHARE, get(table, wide) * ratio)))


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
