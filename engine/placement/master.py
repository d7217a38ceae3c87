"""The integer programme over patterns: how many chips of each pattern, how many replicas of each kind, by HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from engine.placement.layout import lay_out
from engine.placement.patterns import Pattern
from engine.placement.problem import Kind, Packing, Problem, cost_of, groups

_OPTIMAL, _INFEASIBLE = 0, 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best packing found, if any, and below what no packing of these patterns costs (inf: there is none)."""

    packing: Packing | None
    bound: float


class Master:
    """A programme over some patterns."""

    def __init__(
        self,
        problem: Problem,
        kinds: Sequence[Kind],
        patterns: Sequence[Pattern],
        *,
        below: float | None = None,
        partly: bool = False,
    ) -> None:
        """`below`: only packings that cost no more; `partly`: leave as few replicas out as possible, then cost."""
        self._problem, self._kinds, self._patterns = problem, kinds, patterns
        self._groups, self._partly = groups(problem), partly
        self._cost: list[float] = []
        self._upper: list[float] = []
        self._rows: list[tuple[dict[int, float], float, float]] = []
        self._chips = [[(p, self._column(problem.chips[t].cost, size)) for p, _ in self._of(t)]
                       for t, size in self._groups]  # fmt: skip
        self._replicas = [
            {j: self._column(0.0, problem.items[kind.item].replicas) for j, kind in enumerate(kinds) if kind.chip == t}
            for t, _ in self._groups
        ]
        penalty = 1.0 + sum(problem.stock(t) * chip.cost for t, chip in enumerate(problem.chips))
        self._missing = [self._column(penalty, item.replicas if partly else 0) for item in problem.items]
        self._demand()
        self._supply()
        self._order()
        for group, replicas in enumerate(self._replicas):
            for j in replicas:
                self._apart(group, j)
        if below is not None:
            self._row({v: problem.chips[t].cost for (t, _), mine in self._by_group() for _, v in mine}, upper=below)

    def _of(self, t: int) -> list[tuple[int, Pattern]]:
        return [(p, pattern) for p, pattern in enumerate(self._patterns) if pattern.chip == t]

    def _by_group(self) -> list[tuple[tuple[int, int], list[tuple[int, int]]]]:
        return list(zip(self._groups, self._chips, strict=True))

    def _column(self, cost: float, upper: float) -> int:
        self._cost.append(cost)
        self._upper.append(upper)
        return len(self._cost) - 1

    def _row(self, entries: dict[int, float], lower: float = -np.inf, upper: float = np.inf) -> None:
        self._rows.append((entries, lower, upper))

    def _demand(self) -> None:
        """Every replica runs in one way, or is left out; a host has one of an item where they are spread."""
        for i, item in enumerate(self._problem.items):
            ways = [mine[j] for mine in self._replicas for j in mine if self._kinds[j].item == i]
            self._row(dict.fromkeys([*ways, self._missing[i]], 1.0), item.replicas, item.replicas)
            if self._problem.spread:
                for mine in self._replicas:
                    self._row({v: 1.0 for j, v in mine.items() if self._kinds[j].item == i}, upper=1.0)

    def _supply(self) -> None:
        """Shards for the replicas of each kind, from the chips that there are, in each group."""
        for ((_, size), chips), replicas in zip(self._by_group(), self._replicas, strict=True):
            self._row({v: 1.0 for _, v in chips}, upper=size)
            for j, v in replicas.items():
                shards = {x: float(self._patterns[p].counts[j]) for p, x in chips if self._patterns[p].counts[j]}
                self._row(shards | {v: -float(self._kinds[j].tp)}, lower=0.0)

    def _order(self) -> None:
        """Equal hosts in order of their chips: the same packing in another order isn't another packing."""
        for (one, first), (other, second) in pairwise(self._by_group()):
            if one == other:
                self._row({v: 1.0 for _, v in first} | {v: -1.0 for _, v in second}, lower=0.0)

    def _apart(self, group: int, j: int) -> None:
        """Replicas of a kind on different chips: the first r of them have at most r shards on a chip, for every r."""
        replicas, kind = self._replicas[group][j], self._kinds[j]
        if kind.tp == 1:
            return
        most = max((self._patterns[p].counts[j] for p, _ in self._chips[group]), default=0)
        wanted = self._problem.items[kind.item].replicas
        steps = [self._column(0.0, 1.0) for _ in range(min(most - 1, wanted))]
        if not steps:
            return
        rest = self._column(0.0, wanted - len(steps))
        self._row(dict.fromkeys([*steps, rest], 1.0) | {replicas: -1.0}, 0.0, 0.0)
        for earlier, later in pairwise(steps):
            self._row({earlier: 1.0, later: -1.0}, lower=0.0)
        self._row({steps[-1]: float(wanted - len(steps)), rest: -1.0}, lower=0.0)
        for r in range(1, len(steps) + 1):
            held = {x: float(min(self._patterns[p].counts[j], r)) for p, x in self._chips[group]}
            self._row({x: many for x, many in held.items() if many} | dict.fromkeys(steps[:r], -float(kind.tp)), 0.0)

    def solve(self, seconds: float) -> Outcome:
        """The best packing within about so many seconds."""
        status, values, bound = self._run(seconds)
        if status == _INFEASIBLE:
            return Outcome(None, np.inf)
        return Outcome(None if values is None else self._packing(values), bound)

    def _run(self, seconds: float) -> tuple[int, NDArray[np.int64] | None, float]:
        entries = [(r, v, a) for r, (row, _, _) in enumerate(self._rows) for v, a in row.items()]
        at, across, what = (np.array(part) for part in zip(*entries, strict=True))
        matrix = sparse.csr_array((what, (at, across)), shape=(len(self._rows), len(self._cost)))
        solved = milp(
            np.array(self._cost),
            integrality=np.ones(len(self._cost)),
            bounds=Bounds(0, np.array(self._upper, float)),
            constraints=LinearConstraint(matrix, [row[1] for row in self._rows], [row[2] for row in self._rows]),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        values = None if solved.x is None else np.round(solved.x).astype(np.int64)
        bound = solved.mip_dual_bound if solved.mip_dual_bound is not None else -np.inf
        if solved.status == _OPTIMAL:
            bound = float(solved.fun)
        return int(solved.status), values, float(bound)

    def _chosen(self, values: NDArray[np.int64], group: int) -> tuple[list[Pattern], list[int]]:
        chips = [self._patterns[p] for p, v in self._chips[group] for _ in range(int(values[v]))]
        replicas = [0] * len(self._kinds)
        for j, v in self._replicas[group].items():
            replicas[j] = int(values[v])
        return chips, replicas

    def _packing(self, values: NDArray[np.int64]) -> Packing:
        chosen = [self._chosen(values, g) for g in range(len(self._groups))]
        used = lay_out(self._problem, self._kinds, [chips for chips, _ in chosen], [many for _, many in chosen])
        return Packing(used, cost_of(self._problem, used), tuple(int(values[v]) for v in self._missing))
