"""Why something doesn't fit: by how much it is short, and what to try, each in figures and in words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from engine.placement.problem import Packing, Problem, group_size
from engine.placement.solve import TIME_LIMIT_S, Solution, most_placed, solve

_MOST_MORE = 8
_A_TRY_S = 0.3
_SPLITS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Why no replica of an item goes onto a type of chip, before any packing: the split that comes closest.

    `memory`: each of its `tp` chips would need `needs_gb`, of `gives_gb`. `chips`: there are only `there` of `tp`.
    `split`: the model can't be split over so many of these chips.
    """

    item: int
    chip: int
    tp: int
    cause: Literal["memory", "chips", "split"]
    needs_gb: float
    gives_gb: float
    there: int

    @property
    def short_gb(self) -> float:
        """GB that each chip is short by."""
        return max(0.0, self.needs_gb - self.gives_gb)


def ruled_out(problem: Problem) -> tuple[RuledOut, ...]:
    """Every item and type of chip that don't go together, in the order of items, then chips."""
    pairs = ((i, t) for i in range(len(problem.items)) for t in range(len(problem.chips)))
    return tuple(found for i, t in pairs if (found := _ruled_out(problem, i, t)) is not None)


def _ruled_out(problem: Problem, i: int, t: int) -> RuledOut | None:
    item, chip, there = problem.items[i], problem.chips[t], group_size(problem, t)
    gives = problem.usable(t)
    sizes = {tp: gb for tp in sorted(set(item.allowed_tp)) if (gb := item.shard_gb(tp, chip.type)) is not None}
    if not sizes:
        return RuledOut(i, t, min(item.allowed_tp), "split", item.gb_per_replica, gives, there)
    fitting = [tp for tp, gb in sizes.items() if problem.fits(gb, t)]
    if any(tp <= there for tp in fitting):
        return None
    if fitting:
        return RuledOut(i, t, fitting[0], "chips", sizes[fitting[0]], gives, there)
    tp = min(sizes, key=lambda tp: sizes[tp])
    return RuledOut(i, t, tp, "memory", sizes[tp], gives, there)


def reason(problem: Problem, found: RuledOut, name: str = "") -> str:
    """One ruled-out pair in words: "70B needs 90 GB on a chip, and one 24GB gives 21.6 GB: short by 68.4 GB".

    `name`: what to call the model, instead of its name.
    """
    name, chip = name or problem.items[found.item].model, problem.chips[found.chip]
    if found.cause == "split":
        return f"{name} can't be split over {_chips(found.tp)} of type {chip.type}"
    if found.cause == "chips":
        where = "in a host" if problem.spread and chip.per_host == found.there else "in stock"
        return f"{name} needs {_chips(found.tp)} of type {chip.type} for a replica, and there are {found.there} {where}"
    on = "on a chip" if found.tp == 1 else f"on each of {_chips(found.tp)}"
    gives = f"one {chip.type} gives {gb(found.gives_gb)}"
    return f"{name} needs {gb(found.needs_gb)} {on}, and {gives}: short by {gb(found.short_gb)}"


def why_not(solution: Solution) -> str:
    """Why there is no packing of everything: what is short, by how much, and what to try."""
    problem = solution.problem
    if not problem.chips:
        return "there are no chips to place anything on; give a type of chip"
    nowhere = list(_nowhere(problem))
    if nowhere:
        return " ".join(nowhere)
    return _too_few(solution, most_placed(problem))


def _nowhere(problem: Problem) -> Iterator[str]:
    """A sentence for each item that no type of chip takes: the chip that comes closest, and what would do."""
    found = ruled_out(problem)
    for i, item in enumerate(problem.items):
        mine = [one for one in found if one.item == i]
        if item.replicas and len(mine) == len(problem.chips):
            nearest = min(mine, key=lambda one: ({"chips": 0, "memory": 1, "split": 2}[one.cause], one.short_gb))
            yield f"{item.model} fits no chip: {reason(problem, nearest, 'it')}. {_remedy(problem, nearest)}"


def _remedy(problem: Problem, found: RuledOut) -> str:
    """What would do instead."""
    item = problem.items[found.item]
    if found.cause == "chips":
        return f"Try {_chips(found.tp)} of type {problem.chips[found.chip].type}."
    for tp in _SPLITS:
        size = item.gb_per_replica / tp
        for t, chip in enumerate(problem.chips):
            there = min(chip.max if chip.max is not None else tp, chip.per_host or tp if problem.spread else tp)
            if tp not in item.allowed_tp and item.gb_per_chip is None and there >= tp and problem.fits(size, t):
                return f"Try a split over {tp} (tp {tp}): {gb(size)} on each {chip.type}."
    wider = "a split over more chips, " if item.gb_per_chip is not None else ""
    return f"Try {wider}fewer bits a weight, or a chip that gives {gb(found.needs_gb)}."


def _too_few(solution: Solution, best: Packing) -> str:
    problem = solution.problem
    left = sum(best.left_out)
    names = [f"{many} x {item.model}" for item, many in zip(problem.items, best.left_out, strict=True) if many]
    sure = "" if solution.impossible else f"no packing was found within {TIME_LIMIT_S:g} s, nor proven impossible: "
    placed = f"{problem.replicas - left} of {problem.replicas} replicas find a place; left out: {', '.join(names)}"
    free = sum(problem.stock(t) * problem.usable(t) for t in range(len(problem.chips))) - sum(u.gb for u in best.used)
    missing = sum(many * item.gb_per_replica for item, many in zip(problem.items, best.left_out, strict=True))
    short = f"they need {gb(missing)}, and {gb(free)} stay free"
    short += f": short by {gb(missing - free)}" if missing > free else " in pieces too small for them"
    more = enough_more(problem)
    remedy = f"Try {more[1]} more {problem.chips[more[0]].type}." if more else "Try fewer replicas, or more chips."
    return f"{sure}{placed} ({short}). {remedy}"


def enough_more(problem: Problem, time_limit_s: float = TIME_LIMIT_S) -> tuple[int, int] | None:
    """The cheapest chips of one type, as (type, how many), with which everything fits; None when none were found."""
    deadline = time.monotonic() + time_limit_s
    tries = [
        (many * chip.cost, many, t)
        for t, chip in enumerate(problem.chips)
        if chip.max is not None
        for many in range(1, _MOST_MORE + 1)
    ]
    for _, many, t in sorted(tries):
        if time.monotonic() > deadline:
            return None
        chips = list(problem.chips)
        chips[t] = replace(chips[t], max=(chips[t].max or 0) + many)
        if solve(replace(problem, chips=tuple(chips)), _A_TRY_S).packing is not None:
            return t, many
    return None


def gb(size: float) -> str:
    """GB with one decimal where there is one, more digits only below 0.1."""
    if 0 < size < 0.1:
        return f"{size:.2g} GB"
    return f"{size:,.1f}".removesuffix(".0") + " GB"


def _chips(many: int) -> str:
    return f"{many} chip{'' if many == 1 else 's'}"
