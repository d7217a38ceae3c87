"""From counts of patterns and of replicas to replicas on chips."""

from __future__ import annotations

from collections.abc import Sequence

from engine.placement.patterns import Pattern
from engine.placement.problem import Kind, Problem, Shard, Used, groups


def lay_out(
    problem: Problem,
    kinds: Sequence[Kind],
    chips_of: Sequence[Sequence[Pattern]],
    replicas_of: Sequence[Sequence[int]],
) -> tuple[Used, ...]:
    """Chips with their replicas, from each group's patterns (one a chip) and replicas of each kind.

    Patterns may hold more than is wanted: what is too much is left away. R replicas over k chips each can be dealt out
    when there are k R shards, R on a chip at most: one after the other, chip by chip, shard i to replica i mod R
    (McNaughton's wrap-around rule).
    """
    found: list[Used] = []
    numbers = [0] * len(problem.items)
    first: dict[int, int] = {}
    for g, (t, _) in enumerate(groups(problem)):
        first.setdefault(t, g)
        chips = _trimmed(chips_of[g], replicas_of[g], kinds)
        shards: list[list[Shard]] = [[] for _ in chips]
        for j, kind in enumerate(kinds):
            wanted = replicas_of[g][j]
            places = [c for c, counts in enumerate(chips) for _ in range(counts[j])]
            for i, c in enumerate(places):
                shards[c].append(Shard(kind.item, numbers[kind.item] + i % wanted, kind.tp, kind.gb))
            numbers[kind.item] += wanted
        found += [Used(t, g - first[t], tuple(some)) for some in shards if some]
    return tuple(found)


def _trimmed(chips: Sequence[Pattern], replicas: Sequence[int], kinds: Sequence[Kind]) -> list[list[int]]:
    """Counts of each chip with exactly k R shards of each kind: the emptiest chips lose first."""
    counts = [[min(many, replicas[j]) for j, many in enumerate(chip.counts)] for chip in chips]
    for j, kind in enumerate(kinds):
        surplus = sum(chip[j] for chip in counts) - kind.tp * replicas[j]
        held = sorted(counts, key=lambda chip: sum(many * kinds[i].gb for i, many in enumerate(chip)))
        for chip in held:
            off = min(surplus, chip[j])
            chip[j] -= off
            surplus -= off
    return counts
