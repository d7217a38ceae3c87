"""The cheapest packing by trying everything: for problems of a few replicas. Shares no code with the solver."""

from __future__ import annotations

from itertools import combinations
from math import inf

from engine.placement import Problem


def cheapest(problem: Problem) -> float:
    """The least cost of a packing of everything; inf when there is none. Needs a `max` for every chip."""
    replicas = [i for i, item in enumerate(problem.items) for _ in range(item.replicas)]
    chips = [(t, n) for t, chip in enumerate(problem.chips) for n in range(chip.max or 0)]
    free = {c: problem.chips[c[0]].cap * (1 - problem.headroom) + 1e-9 for c in chips}
    used: dict[tuple[int, int], int] = dict.fromkeys(chips, 0)
    hosts: set[tuple[int, int, int]] = set()
    best = inf

    def host(c: tuple[int, int]) -> tuple[int, int]:
        return c[0], c[1] // (problem.chips[c[0]].per_host or 1)

    def go(at: int, cost: float) -> None:
        nonlocal best
        if cost >= best - 1e-9:
            return
        if at == len(replicas):
            best = cost
            return
        item = replicas[at]
        for tp in problem.items[item].allowed_tp:
            for t, chip in enumerate(problem.chips):
                gb = problem.items[item].shard_gb(tp, chip.type)
                if gb is None:
                    continue
                roomy = [c for c in chips if c[0] == t and free[c] >= gb]
                empty = [c for c in roomy if not used[c]]
                # One empty chip is like the next where hosts don't matter.
                mine = roomy if problem.spread else [c for c in roomy if used[c]] + empty[:tp]
                for chosen in combinations(mine, tp):
                    at_host = {host(c) for c in chosen}
                    if problem.spread and (len(at_host) > 1 or (item, *next(iter(at_host))) in hosts):
                        continue
                    new = sum(not used[c] for c in chosen)
                    for c in chosen:
                        free[c] -= gb
                        used[c] += 1
                    if problem.spread:
                        hosts.add((item, *next(iter(at_host))))
                    go(at + 1, cost + new * chip.cost)
                    if problem.spread:
                        hosts.discard((item, *next(iter(at_host))))
                    for c in chosen:
                        free[c] += gb
                        used[c] -= 1

    go(0, 0.0)
    return best
