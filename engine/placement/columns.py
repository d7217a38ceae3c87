"""The linear relaxation over all patterns, by generating columns: a lower bound, and the patterns that it needs.

Gilmore and Gomory (1961): the relaxation's prices of replicas and of scarce chips decide which pattern would be worth
adding, a knapsack; when none is, the bound stands. A replica's way of running is free in the relaxation, so that it
needs one row an item and one a chip type.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from engine.placement.counts import Need
from engine.placement.patterns import Pattern, limits
from engine.placement.problem import ROOM, Kind, Problem

_CELLS = 4096
"""Of a knapsack whose sizes have no common measure: rounded up to find patterns, down to bound them."""
_EXACT_CELLS = 16_384
_MICRO = 1e6
_WORTH_ADDING = 1e-7

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A proven lower bound on the cost, the patterns generated, and the prices that prove it.

    `replica` has a value an item, `chip` a premium a chip type: no pattern's replicas are worth more than its chip's
    cost and premium. `needs` are all prices that were tried, as what chips must hold together.
    """

    bound: float
    patterns: tuple[Pattern, ...]
    replica: Floats
    chip: Floats
    needs: tuple[Need, ...]


def relax(problem: Problem, kinds: Sequence[Kind], start: Sequence[Pattern], deadline: float) -> Relaxation:
    """The relaxation's bound from some patterns to start with, by `deadline` (of `time.monotonic`) at the latest."""
    patterns = list(dict.fromkeys([*start, *_alone(problem, kinds)]))
    stock = np.array([problem.stock(t) for t in range(len(problem.chips))], float)
    cost = np.array([chip.cost for chip in problem.chips])
    penalty = 1.0 + float(stock @ cost)
    wanted = np.array([item.replicas for item in problem.items], float)
    sacks = [_Knapsack(problem, kinds, t) for t in range(len(problem.chips))]
    best = (-np.inf, np.zeros(len(wanted)), np.zeros(len(stock)))
    known, needs = set(patterns), [_volume(problem, kinds)]
    while True:
        replica, chip = _prices(patterns, kinds, cost, stock, wanted, penalty)
        found, most = [], np.zeros(len(stock))
        for t, sack in enumerate(sacks):
            pattern, worth, most[t] = sack.fill(replica)
            if worth > cost[t] + chip[t] + _WORTH_ADDING and pattern not in known:
                found.append(pattern)
        needs.append(Need(tuple(replica), float(wanted @ replica), tuple(most)))
        best = max(best, _proof(replica, chip, most, cost, stock, wanted), key=lambda proof: proof[0])
        if not found or time.monotonic() > deadline:
            bound, replica, chip = best
            return Relaxation(bound, tuple(patterns), replica, chip, tuple(needs))
        patterns += found
        known |= set(found)


def _volume(problem: Problem, kinds: Sequence[Kind]) -> Need:
    """The plainest need: GB, each item's where it takes least."""
    gb = tuple(
        min((kind.gb * kind.tp for kind in kinds if kind.item == i), default=0.0) for i in range(len(problem.items))
    )
    worth = sum(size * item.replicas for size, item in zip(gb, problem.items, strict=True))
    return Need(gb, worth, tuple(problem.usable(t) * (1 + ROOM) for t in range(len(problem.chips))))


def _alone(problem: Problem, kinds: Sequence[Kind]) -> list[Pattern]:
    """Each kind by itself, as often as it fits."""
    found = []
    for j, (kind, most) in enumerate(zip(kinds, limits(problem, kinds), strict=True)):
        many = min(most, int(problem.usable(kind.chip) * (1 + ROOM) / kind.gb))
        found.append(Pattern(kind.chip, tuple(many if i == j else 0 for i in range(len(kinds)))))
    return found


def _prices(
    patterns: Sequence[Pattern], kinds: Sequence[Kind], cost: Floats, stock: Floats, wanted: Floats, penalty: float
) -> tuple[Floats, Floats]:
    """Dual values of the relaxation over some patterns: of a replica of each item, of a scarce chip of each type."""
    share = np.zeros((len(kinds), len(wanted)))
    for j, kind in enumerate(kinds):
        share[j, kind.item] = 1.0 / kind.tp
    counts = np.array([pattern.counts for pattern in patterns], float)
    types = np.array([pattern.chip for pattern in patterns])
    placed = (counts @ share).T  # replicas of each item in each pattern
    of_type = (types[None, :] == np.arange(len(stock))[:, None]).astype(float)
    rows = np.block([[-placed, -np.eye(len(wanted))], [of_type, np.zeros((len(stock), len(wanted)))]])
    weights = np.concatenate([cost[types], np.full(len(wanted), penalty)])
    solved = linprog(weights, A_ub=rows, b_ub=np.concatenate([-wanted, stock]), method="highs")
    duals = -np.minimum(solved.ineqlin.marginals, 0.0)
    return duals[: len(wanted)], duals[len(wanted) :]


def _proof(
    replica: Floats, chip: Floats, most: Floats, cost: Floats, stock: Floats, wanted: Floats
) -> tuple[float, Floats, Floats]:
    """The better of two ways to make prices honest: dearer chips, or cheaper replicas; each bounds the cost below."""
    dearer = np.maximum(chip, most - cost)
    ratio = np.where(most > 0, (cost + chip) / np.maximum(most, 1e-300), 1.0)
    cheaper = replica * min(1.0, float(ratio.min(initial=1.0)))
    ways = [(float(wanted @ r - stock @ c), r, c) for r, c in ((replica, dearer), (cheaper, chip))]
    return max(ways, key=lambda way: way[0])


class _Knapsack:
    """The most valuable filling of a chip of one type, by dynamic programming over its memory in cells."""

    def __init__(self, problem: Problem, kinds: Sequence[Kind], chip: int) -> None:
        self._chip, self._kinds = chip, kinds
        self._mine = [j for j, kind in enumerate(kinds) if kind.chip == chip]
        most, usable = limits(problem, kinds), problem.usable(chip)
        whole = [round(kinds[j].gb * _MICRO) for j in self._mine]
        cap = int(usable * (1 + ROOM) * _MICRO)  # whole sizes fit exactly when their sum is no more than this
        unit = gcd(cap, *whole)
        exact = all(abs(size / _MICRO - kinds[j].gb) <= ROOM for size, j in zip(whole, self._mine, strict=True))
        self._exact = exact and cap // max(unit, 1) <= _EXACT_CELLS
        if self._exact:
            self._cells, self._up = cap // unit, [size // unit for size in whole]
            self._down = self._up
        else:
            cell = usable * (1 + ROOM) / _CELLS
            self._cells = _CELLS
            self._up = [int(np.ceil(kinds[j].gb / cell - 1e-9)) for j in self._mine]
            self._down = [int(kinds[j].gb / cell) for j in self._mine]
        self._most = [min(most[j], self._cells // max(up, 1)) for j, up in zip(self._mine, self._up, strict=True)]
        self._fit = [min(most[j], self._cells // max(low, 1)) for j, low in zip(self._mine, self._down, strict=True)]

    def fill(self, replica: Floats) -> tuple[Pattern, float, float]:
        """(best pattern, its worth, what no pattern's worth exceeds) when a replica of each item has a price."""
        values = [float(replica[self._kinds[j].item]) / self._kinds[j].tp for j in self._mine]
        counts, worth = self._best(self._up, self._most, values)
        whole = [0] * len(self._kinds)
        for j, many in zip(self._mine, counts, strict=True):
            whole[j] = many
        bound = worth if self._exact else self._best(self._down, self._fit, values)[1]
        return Pattern(self._chip, tuple(whole)), worth, bound

    def _best(self, sizes: list[int], most: list[int], values: list[float]) -> tuple[list[int], float]:
        """Counts and value of the best filling; copies of a kind in bundles of 1, 2, 4, ..."""
        best = np.zeros(self._cells + 1)
        steps: list[tuple[int, int, int, NDArray[np.bool_]]] = []
        for at, (size, many, value) in enumerate(zip(sizes, most, values, strict=True)):
            bundle = 1
            while many > 0 and value > 0:
                bundle = min(bundle, many)
                many -= bundle
                need = size * bundle
                if need <= self._cells:
                    with_it = best[: self._cells + 1 - need] + value * bundle
                    better = with_it > best[need:] + 1e-12
                    best[need:] = np.where(better, with_it, best[need:])
                    steps.append((at, bundle, need, better))
                bundle *= 2
        counts, left = [0] * len(sizes), self._cells
        for at, bundle, need, better in reversed(steps):
            if left >= need and better[left - need]:
                counts[at] += bundle
                left -= need
        return counts, float(best[self._cells])
