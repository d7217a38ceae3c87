"""What is to be placed, and onto what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ROOM = 1e-9
"""Share of a chip by which a sum of sizes may overshoot it: sums of decimal fractions aren't exact."""


@dataclass(frozen=True, slots=True)
class Item:
    """A model of which so many `replicas` are wanted, each split over one of the `allowed_tp` numbers of chips.

    `gb_per_replica` in GB (1e9 bytes), KV and everything else included; a chip of a replica split over k holds a kth of
    it, unless `gb_per_chip` says what by (k, chip type). A pair that is missing there is impossible.
    """

    model: str
    gb_per_replica: float
    replicas: int = 1
    allowed_tp: tuple[int, ...] = (1,)
    gb_per_chip: Mapping[tuple[int, str], float] | None = None

    def shard_gb(self, tp: int, chip_type: str) -> float | None:
        """GB on each of the chips of a replica; None where it can't be split like that."""
        return self.gb_per_replica / tp if self.gb_per_chip is None else self.gb_per_chip.get((tp, chip_type))


@dataclass(frozen=True, slots=True)
class Chip:
    """A type of chip: GB that it can give, its cost in any unit, how many there are (`None`: as many as it takes).

    `per_host`: how many share a host; needed only where replicas are spread over hosts.
    """

    type: str
    cap: float
    cost: float
    max: int | None = None
    per_host: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Items onto chips. `headroom`: share of each chip's `cap` that stays free.

    With `spread` a host has at most one replica of a model, and all chips of a replica are in one host.
    """

    items: tuple[Item, ...]
    chips: tuple[Chip, ...]
    headroom: float = 0.0
    spread: bool = False

    @property
    def replicas(self) -> int:
        """Replicas of all items."""
        return sum(item.replicas for item in self.items)

    def usable(self, chip: int) -> float:
        """GB that one chip of a type may hold."""
        return self.chips[chip].cap * (1.0 - self.headroom)

    def fits(self, gb: float, chip: int) -> bool:
        """Whether so much fits on an empty chip of a type."""
        return gb <= self.usable(chip) * (1.0 + ROOM)

    def stock(self, chip: int) -> int:
        """How many chips of a type may be used: what there is, or what could be of use at most."""
        given, host = self.chips[chip].max, self.chips[chip].per_host if self.spread else None
        most = sum(item.replicas * max(*item.allowed_tp, host or 1) for item in self.items)
        return most if given is None else min(given, most)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way of running an item: split over `tp` chips of a type, `gb` on each. Numbers are indices in the problem."""

    item: int
    tp: int
    chip: int
    gb: float


def kinds(problem: Problem) -> tuple[Kind, ...]:
    """Every way of running an item that fits on empty chips, in the order of items, chips and tp."""
    return tuple(
        Kind(i, tp, t, gb)
        for i, item in enumerate(problem.items)
        for t, chip in enumerate(problem.chips)
        for tp in sorted(set(item.allowed_tp))
        if (gb := item.shard_gb(tp, chip.type)) is not None
        if problem.fits(gb, t) and tp <= group_size(problem, t)
        if item.replicas
    )


def group_size(problem: Problem, chip: int) -> int:
    """Chips of a type among which a replica's chips are chosen: a host's where replicas are spread, else all."""
    stock, host = problem.stock(chip), problem.chips[chip].per_host
    return min(stock, host) if problem.spread and host is not None else stock


def groups(problem: Problem) -> tuple[tuple[int, int], ...]:
    """(chip type, chips) of every host, or of every type where replicas aren't spread over hosts."""
    found = []
    for t, chip in enumerate(problem.chips):
        left, size = problem.stock(t), group_size(problem, t)
        hosts = -(-left // size) if size else 0
        # Each replica in a host of its own is the most that can be of use.
        for _ in range(min(hosts, problem.replicas) if problem.spread and chip.per_host else hosts):
            found.append((t, min(size, left)))
            left -= size
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Shard:
    """A replica's part on one chip: item, the replica's number among the item's, its tp, GB."""

    item: int
    replica: int
    tp: int
    gb: float


@dataclass(frozen=True, slots=True)
class Used:
    """A chip in use: its type, its host (a number of its own for each type; 0 where hosts don't matter), its shards."""

    chip: int
    host: int
    shards: tuple[Shard, ...]

    @property
    def gb(self) -> float:
        """GB that it holds."""
        return sum(shard.gb for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Packing:
    """Replicas on chips; `left_out` has how many of each item found no place."""

    used: tuple[Used, ...]
    cost: float
    left_out: tuple[int, ...] = field(default=())

    @property
    def complete(self) -> bool:
        """Whether everything found a place."""
        return not any(self.left_out)


def cost_of(problem: Problem, used: tuple[Used, ...]) -> float:
    """What the chips in use cost together, free of what adding decimal fractions leaves behind."""
    counts = [sum(one.chip == t for one in used) for t in range(len(problem.chips))]
    return round(sum(count * chip.cost for count, chip in zip(counts, problem.chips, strict=True)), 9)
