"""Looking for a least number by growing steps and bisection."""

from __future__ import annotations

from collections.abc import Callable


def fewest(met: Callable[[int], bool], guess: int, most: int) -> int | None:
    """The least count from 1 to ``most`` that meets, where 0 doesn't; ``None``: not even ``most`` do.

    ``met`` is taken to stay met once it is. ``guess`` (1 to ``most``) is asked first, then its surroundings.
    """
    step = 1
    if met(guess):
        low, high = max(guess - step, 0), guess
        while low and met(low):
            step *= 2
            low, high = max(low - step, 0), low
    else:
        low, high = guess, min(guess + step, most)
        while not met(high):
            if high >= most:
                return None
            step *= 2
            low, high = high, min(high + step, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high
