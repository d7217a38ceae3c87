"""Patterns: what one chip may hold, as a count of each kind of shard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.placement.problem import ROOM, Kind, Packing, Problem

Counts = tuple[int, ...]


class TooMany(Exception):
    """There are more patterns than were to be listed."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A chip type and how many shards of each kind (all kinds of the problem, in order) one chip of it holds."""

    chip: int
    counts: Counts


def limits(problem: Problem, kinds: Sequence[Kind]) -> list[int]:
    """Most shards of each kind that one chip may hold: a replica has one at most on a chip, a host one replica."""
    return [1 if problem.spread else problem.items[kind.item].replicas for kind in kinds]


@dataclass(frozen=True, slots=True)
class Worth:
    """What a pattern must be worth to be listed: shards' values by kind, and the least sum for each chip type."""

    values: NDArray[np.float64]
    least: NDArray[np.float64]


def maximal(
    problem: Problem,
    kinds: Sequence[Kind],
    most: int,
    worth: Worth | None = None,
    chosen: Sequence[bool] | None = None,
) -> list[Pattern]:
    """All patterns to which no shard can be added, those worth enough where `worth` is given; of `chosen` kinds only.

    Raises `TooMany` beyond `most`, or when looking for them takes too many steps.
    """
    found: list[Pattern] = []
    budget = [40 * most]
    for t in range(len(problem.chips)):
        mine = [j for j, kind in enumerate(kinds) if kind.chip == t and (chosen is None or chosen[j])]
        for counts in _filled(problem, kinds, t, mine, worth, budget):
            found.append(Pattern(t, counts))
            if len(found) > most:
                raise TooMany
    return found


def _filled(
    problem: Problem, kinds: Sequence[Kind], t: int, mine: list[int], worth: Worth | None, budget: list[int]
) -> Iterator[Counts]:
    """Maximal fillings of one chip of a type, depth first, by value for its size, then size, largest first."""
    value = [0.0] * len(kinds) if worth is None else [float(v) for v in worth.values]
    least = 0.0 if worth is None else float(worth.least[t])
    density = {j: value[j] / kinds[j].gb if kinds[j].gb > 0 else np.inf for j in mine}
    order = sorted(mine, key=lambda j: (-density[j], -kinds[j].gb))
    cap, allowed = problem.usable(t) * (1 + ROOM), limits(problem, kinds)
    counts, of_item = [0] * len(kinds), [0] * len(problem.items)

    def ceiling(item: int) -> int:
        return 1 if problem.spread else problem.items[item].replicas

    def full(free: float) -> bool:
        return not any(
            kinds[j].gb <= free and counts[j] < allowed[j] and of_item[kinds[j].item] < ceiling(kinds[j].item)
            for j in mine
        )

    def dive(depth: int, free: float, got: float) -> Iterator[Counts]:
        budget[0] -= 1
        if budget[0] < 0:
            raise TooMany
        if depth == len(order):
            if got >= least and any(counts) and full(free):
                yield tuple(counts)
            return
        j = order[depth]
        if worth is not None and got + density[j] * free < least:  # nothing after it is worth more for its size
            return
        gb, item = kinds[j].gb, kinds[j].item
        room = ceiling(item) - of_item[item]
        top = min(room, allowed[j], int(free / gb) if gb > 0 else room)
        for many in range(top, -1, -1):
            counts[j], of_item[item] = many, of_item[item] + many
            yield from dive(depth + 1, free - many * gb, got + many * value[j])
            counts[j], of_item[item] = 0, of_item[item] - many

    yield from dive(0, cap, 0.0)


def patterns_of(packing: Packing, kinds: Sequence[Kind]) -> list[Pattern]:
    """The patterns of a packing's chips."""
    place = {(kind.item, kind.tp, kind.chip): j for j, kind in enumerate(kinds)}
    found = []
    for used in packing.used:
        counts = [0] * len(kinds)
        for shard in used.shards:
            counts[place[shard.item, shard.tp, used.chip]] += 1
        found.append(Pattern(used.chip, tuple(counts)))
    return found
