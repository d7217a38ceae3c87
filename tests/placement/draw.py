"""Random problems."""

from __future__ import annotations

import random

from engine.placement import Chip, Item, Problem

STOCK = (("24GB", 21.6, 1.0), ("40GB", 36.0, 2.2), ("48GB", 43.2, 2.0), ("80GB", 72.0, 4.0), ("141GB", 126.9, 6.5))
SPLITS = ((1,), (1,), (1, 2), (1, 2, 4), (2, 4), (1, 2, 4, 8))
KNOWN = (10.0, 17.0, 26.0, 42.0, 44.0, 90.0, 100.0, 141.0)


def large(seed: int) -> Problem:
    """Up to 30 replicas of up to 8 models; sizes with no, one, two or all decimals; every fourth with odd prices."""
    draw = random.Random(seed)
    style, models = seed % 4, draw.randint(1, 8)
    left, items = draw.randint(models, 30), []
    for i in range(models):
        most = left - (models - i - 1)
        many = most if i == models - 1 else draw.randint(1, most)
        left -= many
        size = (
            draw.choice(KNOWN),
            round(draw.uniform(4, 120), 1),
            round(draw.uniform(4, 70), 2),
            draw.uniform(3, 120),
        )[style]
        items.append(Item(f"m{i}", size, many, draw.choice(SPLITS)))
    chips = []
    for name, cap, cost in draw.sample(STOCK, draw.randint(1, 4)):
        price = cost if style != 3 else draw.uniform(0.5, 1.5) * cost
        chips.append(Chip(name, cap, price, draw.choice((8, 20, 40, None))))
    return Problem(tuple(items), tuple(chips))


def small(seed: int) -> Problem:
    """Up to five replicas on at most six chips: few enough to try everything."""
    draw = random.Random(seed)
    items = tuple(
        Item(f"m{i}", round(draw.uniform(5, 60), 1), draw.randint(1, 2), draw.choice(SPLITS[:5]))
        for i in range(draw.randint(1, 3))
    )
    chips = tuple(
        Chip(name, cap, cost, draw.randint(1, 3), per_host=draw.choice((1, 2, 3)))
        for name, cap, cost in draw.sample(STOCK[:4], draw.randint(1, 2))
    )
    return Problem(items, chips, headroom=draw.choice((0.0, 0.0, 0.15)), spread=seed % 3 == 0)
