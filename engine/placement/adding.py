"""One more replica: beside the others as they are, or with everything packed anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.placement.greedy import Filling
from engine.placement.problem import Packing, Problem, kinds
from engine.placement.solve import TIME_LIMIT_S, Solution, solve


@dataclass(frozen=True, slots=True)
class Addition:
    """`beside`: the packing with nobody moved (None: there is no room); `anew`: everything packed again."""

    beside: Packing | None
    anew: Solution

    @property
    def saved(self) -> float | None:
        """What moving replicas saves; None where one of the two isn't possible."""
        if self.beside is None or self.anew.packing is None:
            return None
        return round(self.beside.cost - self.anew.packing.cost, 9)


def add_replica(problem: Problem, packing: Packing, item: int, time_limit_s: float = TIME_LIMIT_S) -> Addition:
    """One more replica of an item on top of a packing of the problem.

    Without moving anybody the cheapest is exact: for every split, type and host as many chips as have room, new ones
    for the rest. A packing that repacking can't better within the time is kept.
    """
    items = tuple(replace(one, replicas=one.replicas + (i == item)) for i, one in enumerate(problem.items))
    larger = replace(problem, items=items)
    filling = Filling(larger, kinds(larger), packing.used)
    beside = None if filling.add(item, "best") is None else filling.packing((0,) * len(items))
    anew = solve(larger, time_limit_s)
    if beside is not None and (anew.packing is None or beside.cost < anew.packing.cost):
        anew = replace(anew, packing=beside)
    return Addition(beside, anew)
