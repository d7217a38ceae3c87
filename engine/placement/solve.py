"""The cheapest packing, with its proof."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.placement.columns import Relaxation, relax
from engine.placement.counts import Counted, Need, cheaper_counts, holds_everything
from engine.placement.greedy import decreasing, squeeze
from engine.placement.master import Master, Outcome
from engine.placement.patterns import Pattern, TooMany, Worth, maximal, patterns_of
from engine.placement.problem import Kind, Packing, Problem, kinds

TIME_LIMIT_S = 2.0
"""For a whole solution; what isn't proven by then comes with the gap that is left."""
_USED = 0.8
"""Share of the time limit that is planned with: the solver looks at the clock only now and then."""
_TRIED = 40
_LISTED = 1500
"""Patterns that are all listed and given to the solver at once; with more, only those that could be of use."""
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Solution:
    """The best packing (None: none found), a proven lower bound, and the rules of thumb beside it.

    `impossible`: proven that there is no packing of everything. `lower_bound` is below what any packing costs.
    """

    problem: Problem
    packing: Packing | None
    lower_bound: float
    impossible: bool
    first_fit: Packing
    best_fit: Packing

    @property
    def proven_optimal(self) -> bool:
        """Whether no packing costs less."""
        return self.packing is not None and self.packing.cost <= self.lower_bound + _TOLERANCE

    @property
    def gap(self) -> float | None:
        """By what share of its cost the packing could be too dear; 0 when it is proven, None without one."""
        if self.packing is None:
            return None
        return 0.0 if self.proven_optimal else 1.0 - self.lower_bound / self.packing.cost


def solve(problem: Problem, time_limit_s: float = TIME_LIMIT_S) -> Solution:
    """The cheapest packing of a problem, exactly unless time runs out: then the best, with a lower bound."""
    ways = kinds(problem)
    first, best = (decreasing(problem, ways, rule) for rule in ("first", "best"))
    whole = [packing for packing in (first, best) if packing.complete]
    start = min(whole, key=lambda packing: packing.cost, default=None)
    able = {kind.item for kind in ways}
    if any(item.replicas and i not in able for i, item in enumerate(problem.items)):
        return Solution(problem, None, math.inf, True, first, best)
    if not ways:  # nothing is wanted
        return Solution(problem, Packing((), 0.0), 0.0, False, first, best)
    search = _Search(problem, ways, time.monotonic() + _USED * time_limit_s, start)
    search.run([first, best])
    if math.isinf(search.bound):
        return Solution(problem, None, math.inf, True, first, best)
    return Solution(problem, search.packing, round(search.bound, 9), False, first, best)


def most_placed(problem: Problem, time_limit_s: float = TIME_LIMIT_S) -> Packing:
    """As many replicas as find a place, by the patterns that can be listed; `left_out` has the others."""
    ways = kinds(problem)
    rules = [decreasing(problem, ways, "first"), decreasing(problem, ways, "best")]
    start = min(rules, key=lambda packing: sum(packing.left_out))
    if not ways:
        return start
    deadline = time.monotonic() + _USED * time_limit_s
    try:
        patterns: Sequence[Pattern] = maximal(problem, ways, _LISTED)
    except TooMany:
        known = [pattern for packing in rules for pattern in patterns_of(packing, ways)]
        patterns = relax(problem, ways, known, time.monotonic() + 0.4 * time_limit_s).patterns
    found = Master(problem, ways, patterns, partly=True).solve(deadline - time.monotonic()).packing
    better = found is not None and sum(found.left_out) < sum(start.left_out)
    return found if found is not None and better else start


class _Search:
    """Closes in on the optimum from both sides until they meet or time runs out."""

    def __init__(self, problem: Problem, ways: Sequence[Kind], deadline: float, start: Packing | None) -> None:
        self.problem, self.ways, self.deadline = problem, ways, deadline
        self.packing, self.bound = start, 0.0
        self._counted: Counted | None = None
        self.step = _step([chip.cost for chip in problem.chips])

    def run(self, rules: Sequence[Packing]) -> None:
        """The relaxation's bound, then packings of few patterns, then of all that could still be better."""
        known = [pattern for packing in rules for pattern in patterns_of(packing, self.ways)]
        relaxed = relax(self.problem, self.ways, known, self._until(0.3))
        if not holds_everything(self.problem, relaxed.needs):
            self.bound, self.packing = math.inf, None
            return
        self._raise(relaxed, relaxed.bound)
        if not self._closed():
            self._take(self._solve(self._coarse(), 0.3), relaxed)
        if not self._closed():
            self._squeeze(relaxed, self._until(0.3))
        if not self._closed():
            self._count_by_count(relaxed, self._until(0.6))
        if not self._closed():
            self._everything(relaxed)
        if self.packing is not None:
            self._fewer_chips(relaxed, self.packing)

    def _until(self, share: float) -> float:
        """The moment when a share of the time that is left is over."""
        now = time.monotonic()
        return now + share * max(self.deadline - now, 0.0)

    def _fewer_chips(self, relaxed: Relaxation, packing: Packing) -> None:
        """Of packings that cost the same, one on fewer chips, if best fit finds it."""
        same = cheaper_counts(self.problem, relaxed.needs, packing.cost, packing.cost + 3 * _TOLERANCE)
        if same is None:
            return
        sizes = same.counts.sum(axis=1)
        fewer = [same.counts[i] for i in np.argsort(sizes, kind="stable")[:_TRIED] if sizes[i] < len(packing.used)]
        found = self._squeezed(fewer, random.Random(0), self._until(0.2))
        if found is not None and found.cost <= packing.cost + _TOLERANCE:
            self.packing = found

    def _squeezed(self, tried: Iterable[NDArray[np.int64]], draw: random.Random, deadline: float) -> Packing | None:
        """The first of some numbers of chips into which best fit packs everything."""
        for counts in tried:
            chips = (replace(c, max=int(n)) for c, n in zip(self.problem.chips, counts, strict=True))
            found = squeeze(replace(self.problem, chips=tuple(chips)), self.ways, draw, deadline)
            if found is not None:
                return found
        return None

    def _squeeze(self, relaxed: Relaxation, deadline: float) -> None:
        """Numbers of chips that could suffice, the cheapest first, filled by best fit."""
        draw = random.Random(0)
        while time.monotonic() < deadline and not self._closed() and self.packing is not None and self._counted:
            tried = self._counted.counts[:: max(1, len(self._counted.counts) // _TRIED)]
            found = self._squeezed(tried, draw, deadline)
            if found is None:
                return
            self._take(Outcome(found, -math.inf), relaxed)

    def _count_by_count(self, relaxed: Relaxation, deadline: float) -> None:
        """Rule numbers of chips out, the cheapest first, until some suffice: that is the optimum.

        The fewer chips there are to spare, the fuller each must be, and the fewer patterns there are to try.
        """
        while self._counted is not None and time.monotonic() < deadline and not self._closed():
            if not self._counted.cost.size:
                return
            counts = [int(n) for n in self._counted.counts[0]]
            found = self._with_counts(counts, relaxed.needs, deadline)
            if found is None:
                return
            if found.packing is not None:
                self._take(found, relaxed)
                return
            if not math.isinf(found.bound):
                return
            self._counted = replace(self._counted, cost=self._counted.cost[1:], counts=self._counted.counts[1:])
            if self._counted.cost.size and self.packing is not None:
                self.bound = max(self.bound, min(float(self._counted.cost[0]), self.packing.cost))
            elif self.packing is not None:
                self.bound = self.packing.cost

    def _with_counts(self, counts: Sequence[int], needs: Sequence[Need], deadline: float) -> Outcome | None:
        """Everything onto so many chips of each type; None where there are too many ways to fill them."""
        tight = min(needs, key=lambda need: need.slack(counts) / max(need.worth, 1e-300))
        values = np.array([tight.replica[kind.item] / kind.tp for kind in self.ways])
        spare = tight.slack(counts) + _TOLERANCE * max(tight.most)
        chips = tuple(replace(c, max=n) for c, n in zip(self.problem.chips, counts, strict=True))
        fewer = replace(self.problem, chips=chips)
        chosen = [counts[kind.chip] > 0 for kind in self.ways]
        try:
            patterns = maximal(fewer, self.ways, _LISTED, Worth(values, np.array(tight.most) - spare), chosen)
        except TooMany:
            return None
        if not patterns:
            return Outcome(None, math.inf)
        return Master(fewer, self.ways, patterns).solve(max(deadline - time.monotonic(), 0.05))

    def _coarse(self) -> Sequence[Pattern]:
        """Patterns of replicas split over as few chips as the allowed splits let them."""
        fewest: dict[tuple[int, int], int] = {}
        for kind in self.ways:
            fewest[kind.item, kind.chip] = min(kind.tp, fewest.get((kind.item, kind.chip), kind.tp))
        chosen = [kind.tp == fewest[kind.item, kind.chip] for kind in self.ways]
        try:
            return maximal(self.problem, self.ways, _LISTED, chosen=chosen)
        except TooMany:
            return []

    def _everything(self, relaxed: Relaxation) -> None:
        """Patterns that something cheaper than the packing could use; of all when nothing is known yet."""
        try:
            useful, all_of_them = maximal(self.problem, self.ways, _LISTED, self._worth(relaxed)), True
        except TooMany:
            useful, all_of_them = list(relaxed.patterns), False
        if not useful:
            self.bound = math.inf if self.packing is None else self.packing.cost
            return
        below = None if self.packing is None else self.packing.cost - self.step
        found = self._solve(useful, below=below)
        self._take(found, relaxed)
        if all_of_them:
            self._raise(relaxed, found.bound)

    def _worth(self, relaxed: Relaxation) -> Worth | None:
        """Nothing cheaper uses a pattern that is dearer, at the relaxation's prices, than bound and packing differ."""
        if self.packing is None:
            return None
        values = np.array([relaxed.replica[kind.item] / kind.tp for kind in self.ways])
        cost = np.array([chip.cost for chip in self.problem.chips])
        room = self.packing.cost - self.step - relaxed.bound
        return Worth(values, cost + relaxed.chip - room - _TOLERANCE)

    def _solve(self, patterns: Sequence[Pattern], share: float = 1.0, below: float | None = None) -> Outcome:
        if not patterns:
            return Outcome(None, -math.inf)
        left = max(self._until(share) - time.monotonic(), 0.05)
        return Master(self.problem, self.ways, patterns, below=below).solve(left)

    def _take(self, found: Outcome, relaxed: Relaxation) -> None:
        """Keep what is better, and with it what a bound can be raised to."""
        if found.packing is not None and (self.packing is None or found.packing.cost < self.packing.cost - _TOLERANCE):
            self.packing = found.packing
            self._raise(relaxed, self.bound)

    def _raise(self, relaxed: Relaxation, bound: float) -> None:
        """A bound, raised to the least that whole chips can cost above it; never above the packing's own cost."""
        if math.isinf(bound) and bound > 0:
            self.bound = math.inf if self.packing is None else self.packing.cost
            return
        if self.step > 0 and math.isfinite(bound):
            bound = math.ceil((bound - _TOLERANCE) / self.step) * self.step
        bound = max(bound, self.bound)
        if self.packing is not None:
            self._counted = cheaper_counts(self.problem, relaxed.needs, bound, self.packing.cost)
            if self._counted is not None:
                bound = float(self._counted.cost[0]) if self._counted.cost.size else self.packing.cost
            bound = min(self.packing.cost, bound)
        self.bound = bound

    def _closed(self) -> bool:
        return self.packing is not None and self.packing.cost <= self.bound + _TOLERANCE


def _step(costs: Sequence[float]) -> float:
    """The largest amount of which every chip's cost is a multiple, in millionths; 0 when there is none."""
    whole = [round(cost * 1e6) for cost in costs]
    if any(abs(w / 1e6 - cost) > 1e-9 for w, cost in zip(whole, costs, strict=True)):
        return 0.0
    return math.gcd(*whole) / 1e6
