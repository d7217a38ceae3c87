"""Luck, handed in from outside: every number is uniform in [0, 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(*which: int) -> float:
    raise ValueError(f"draws: number {which} is needed, and none was handed in")


@dataclass(frozen=True)
class Draws:
    """`router(i)` is the i-th number that the router uses, from 0, and `decode_router(i)` that of the second pool's.

    `backoff(attempt, request)` decides how long the retry after that attempt waits, `throttle(attempt, request)`
    whether that attempt is sent at all; attempts count from 0, requests by their place in the list.
    """

    router: Callable[[int], float] = _nothing
    decode_router: Callable[[int], float] = _nothing
    backoff: Callable[[int, int], float] = _nothing
    throttle: Callable[[int, int], float] = _nothing
