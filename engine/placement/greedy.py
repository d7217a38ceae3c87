"""The two classic rules of thumb: the largest first, into the first chip that has room, or the tightest.

For replicas over several chips and chips of several prices: the way that costs least in new chips, then the first
(first fit) or tightest (best fit) chips with room. Johnson (1974) bounds both at 11/9 of the fewest bins, plus a few.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.placement.problem import ROOM, Kind, Packing, Problem, Shard, Used, cost_of, group_size, groups

_ATTEMPTS = 40
_ALIKE: Mapping[Kind, float] = {}
Rule = Literal["first", "best"]


@dataclass(slots=True)
class _Open:
    """A chip that is being filled."""

    chip: int
    group: int
    free: float
    shards: list[Shard] = field(default_factory=list)


_Option = tuple[tuple[float, ...], Kind, int, list[_Open]]


class Filling:
    """Chips being filled one replica at a time, from empty or from a packing."""

    def __init__(self, problem: Problem, kinds: Sequence[Kind], used: Sequence[Used] = ()) -> None:
        self._problem, self._kinds, self._groups = problem, kinds, groups(problem)
        self._open: list[_Open] = []
        first = [next((g for g, (t, _) in enumerate(self._groups) if t == k), 0) for k in range(len(problem.chips))]
        for one in used:
            free = problem.usable(one.chip) - one.gb
            self._open.append(_Open(one.chip, first[one.chip] + one.host, free, list(one.shards)))

    def add(self, item: int, rule: Rule, weights: Mapping[Kind, float] = _ALIKE) -> float | None:
        """Place one more replica; what its new chips cost, or None when there is no room.

        `weights` of the room that each kind would leave make best fit prefer some kinds.
        """
        mine = [kind for kind in self._kinds if kind.item == item]
        options = [option for kind in mine for option in self._options(kind, rule, weights.get(kind, 1.0))]
        if not options:
            return None
        (cost, *_), kind, group, chips = min(options, key=lambda option: option[0])
        number = len({shard.replica for one in self._open for shard in one.shards if shard.item == item})
        for _ in range(kind.tp - len(chips)):
            chips.append(_Open(kind.chip, group, self._problem.usable(kind.chip)))
            self._open.append(chips[-1])
        for one in chips:
            one.free -= kind.gb
            one.shards.append(Shard(item, number, kind.tp, kind.gb))
        return float(cost)

    def _options(
        self, kind: Kind, rule: Rule, weight: float
    ) -> Iterator[tuple[tuple[float, ...], Kind, int, list[_Open]]]:
        """(what decides, kind, group, chips to reuse) for each group that can take a replica of the kind."""
        cost, slack = self._problem.chips[kind.chip].cost, self._problem.usable(kind.chip) * ROOM
        empty_seen = False
        for g, (t, size) in enumerate(self._groups):
            if t != kind.chip:
                continue
            mine = [(at, one) for at, one in enumerate(self._open) if one.group == g]
            if self._problem.spread and any(s.item == kind.item for _, one in mine for s in one.shards):
                continue
            if not mine and empty_seen:  # one empty group is like the other
                continue
            empty_seen = empty_seen or not mine
            roomy = [(at, one) for at, one in mine if one.free >= kind.gb - slack]
            if rule == "best":
                roomy.sort(key=lambda pair: pair[1].free)
            chosen = roomy[: kind.tp]
            new = kind.tp - len(chosen)
            if len(mine) + new > size:
                continue
            place = float(max((at for at, _ in chosen), default=0))
            if rule == "best":
                left = sum(one.free for _, one in chosen) + new * self._problem.usable(t)
                place = weight * (left / kind.tp - kind.gb)
            yield (new * cost, new, place, kind.tp), kind, g, [one for _, one in chosen]

    def packing(self, left_out: tuple[int, ...] = ()) -> Packing:
        """What there is by now."""
        start: dict[int, int] = {}
        for g, (t, _) in enumerate(self._groups):
            start.setdefault(t, g)
        used = tuple(
            Used(one.chip, one.group - start[one.chip], tuple(one.shards))
            for one in sorted(self._open, key=lambda one: one.group)
            if one.shards
        )
        return Packing(used, cost_of(self._problem, used), left_out)


def decreasing(problem: Problem, kinds: Sequence[Kind], rule: Rule) -> Packing:
    """First-fit or best-fit decreasing: the largest replicas first. May leave some out that a better packing places."""
    filling = Filling(problem, kinds)
    left_out = [0] * len(problem.items)
    order = sorted(range(len(problem.items)), key=lambda i: -problem.items[i].gb_per_replica)
    for item in order:
        for _ in range(problem.items[item].replicas):
            if filling.add(item, rule) is None:
                left_out[item] += 1
    return filling.packing(tuple(left_out))


def squeeze(problem: Problem, kinds: Sequence[Kind], draw: random.Random, deadline: float) -> Packing | None:
    """Everything into so many chips as there are, by best fit in orders that are shuffled a little more every time.

    None when that doesn't work by `deadline` (of `time.monotonic`), or within a few dozen times.
    """
    empty = [
        Used(t, i // group_size(problem, t), ()) for t in range(len(problem.chips)) for i in range(problem.stock(t))
    ]
    sizes = [(i, item.gb_per_replica) for i, item in enumerate(problem.items) for _ in range(item.replicas)]
    for attempt in range(_ATTEMPTS):
        if time.monotonic() > deadline:
            return None
        spread = attempt / _ATTEMPTS
        order = sorted((-gb * (1 + spread * draw.random()), i) for i, gb in sizes)
        filling = Filling(problem, kinds, empty)
        weights = {kind: draw.uniform(1 - spread, 1 + spread) for kind in kinds}
        if all(filling.add(i, "best", weights) is not None for _, i in order):
            return filling.packing((0,) * len(problem.items))
    return None
