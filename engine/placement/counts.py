"""How many chips of each type any packing needs at least, and the least that such numbers cost.

For any price on a replica of each item, a chip of a type holds at most so much worth, and the chips in use together
must hold what all replicas are worth. Every set of prices is one such inequality; whole numbers of chips that keep
all of them are a tighter bound than the relaxation that the prices came from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.placement.problem import Problem

_MOST_GRID = 2_000_000
_SLACK = 1e-7
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Need:
    """What a replica of each item is worth, all of them together, and the `most` that a chip of each type can hold."""

    replica: tuple[float, ...]
    worth: float
    most: tuple[float, ...]

    def slack(self, counts: Sequence[int]) -> float:
        """Worth that so many chips could hold beyond what there is: no chip can stay further below its most."""
        return _sum(self, counts) - self.worth


@dataclass(frozen=True, slots=True)
class Counted:
    """Costs, and chips of each type that cost them: shapes (n,) and (n, types)."""

    cost: NDArray[np.float64]
    counts: NDArray[np.int64]


def holds_everything(problem: Problem, needs: Sequence[Need]) -> bool:
    """Whether the whole stock keeps every inequality; if not there is no packing."""
    stock = [problem.stock(t) for t in range(len(problem.chips))]
    return all(_sum(need, stock) >= need.worth * (1 - _SLACK) for need in needs)


def _sum(need: Need, counts: Sequence[int]) -> float:
    return sum(most * count for most, count in zip(need.most, counts, strict=True))


def cheaper_counts(problem: Problem, needs: Sequence[Need], bound: float, cost: float) -> Counted | None:
    """All numbers of chips that keep every need and cost at least `bound` and less than `cost`, cheapest first.

    None where there are too many combinations to look at.
    """
    axes = []
    for t, chip in enumerate(problem.chips):
        most = problem.stock(t) if chip.cost <= 0 else min(problem.stock(t), int(cost / chip.cost + _SLACK))
        axes.append(np.arange(most + 1))
    if math.prod(axis.size for axis in axes) > _MOST_GRID:
        return None
    grid = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
    total = _weighted([chip.cost for chip in problem.chips], grid)
    good = (total >= bound - _TOLERANCE) & (total < cost - _TOLERANCE)
    grid, total = [axis[good] for axis in grid], total[good]
    good = np.ones(total.size, bool)
    for need in needs:
        good &= _weighted(need.most, grid) >= need.worth * (1 - _SLACK)
    order = np.argsort(total[good], kind="stable")
    return Counted(total[good][order], np.array([axis[good][order] for axis in grid]).T)


def _weighted(weights: Sequence[float], grid: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    total = np.zeros(grid[0].size)
    for weight, axis in zip(weights, grid, strict=True):
        total += weight * axis
    return total
