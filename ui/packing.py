"""Answers of the placement page: the quick ones at once, the others from another process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from engine.placement import Addition, Needs, Packing, Question, Solution, add_replica, needs, solve
from ui import runs, work

_AT_ONCE_S = 0.12
"""Time for an answer inside the page; what isn't settled by then goes on elsewhere."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What is known of a question. `best`: as much as finds a place, and `why` not everything does; `final`: no more
    will be found."""

    needs: Needs
    solution: Solution
    best: Packing | None
    why: str
    final: bool


def answer(asked: Question) -> Placed:
    """The best answer by now; asks for the rest of it where that takes longer. Raises `ScenarioError`."""
    found, at_once = _at_once(asked)
    if at_once.proven_optimal:
        return Placed(found, at_once, at_once.packing, "", True)
    kept = runs.shared().aside(f"place {asked!r}", work.placed, found.problem)
    if kept is None:
        return Placed(found, at_once, at_once.packing, "", False)
    if kept.result is None:  # the worker was lost; what was found at once stands
        return Placed(found, at_once, at_once.packing, "", True)
    solution, best, why = kept.result
    return Placed(found, solution, best, why, True)


@lru_cache(maxsize=128)
def _at_once(asked: Question) -> tuple[Needs, Solution]:
    found = needs(asked.wanted, asked.offered, asked.terms)
    return found, solve(found.problem, _AT_ONCE_S)


def one_more(asked: Question, placed: Placed, item: int) -> Addition | None:
    """One more replica of an item; None while that is worked out."""
    assert placed.best is not None
    at_once = _one_more(asked, placed.best, item)
    if at_once.anew.proven_optimal or (at_once.beside is None and at_once.anew.impossible):
        return at_once
    kept = runs.shared().aside(f"one more {item} {asked!r}", work.one_more, placed.needs.problem, placed.best, item)
    return None if kept is None else kept.result or at_once


@lru_cache(maxsize=128)
def _one_more(asked: Question, packing: Packing, item: int) -> Addition:
    return add_replica(_at_once(asked)[0].problem, packing, item, _AT_ONCE_S)
