"""A fleet with two choices, as a Markov chain of its own: what a limited number of replicas really does.

The mean-field rows are limits. With 200 replicas the longest queues are up to a tenth more frequent (their number
varies, and the next level grows with its square), which this chain shows without the engine.
"""

from __future__ import annotations

import random

LEVELS = 6


def shares(load: float, replicas: int, since_s: float, until_s: float, seed: int) -> list[float]:
    """Share of the time in which a replica holds at least 0, 1, ... requests; exponential services of mean 1 s.

    Two different replicas are drawn for each arrival, and the one that holds fewer gets it.
    """
    rng = random.Random(seed)
    held, busy, place = [0] * replicas, [], [-1] * replicas
    above, total, now = [replicas] + [0] * LEVELS, [0.0] * (LEVELS + 1), 0.0
    arrivals = load * replicas
    while now < until_s:
        rate = arrivals + len(busy)
        spell = rng.expovariate(rate)
        counted = min(now + spell, until_s) - max(now, since_s)
        if counted > 0:
            for k in range(LEVELS + 1):
                total[k] += counted * above[k]
        now += spell
        if rng.random() * rate < arrivals:
            first, second = rng.sample(range(replicas), 2)
            chosen = first if held[first] <= held[second] else second
            held[chosen] += 1
            if held[chosen] == 1:
                place[chosen] = len(busy)
                busy.append(chosen)
            if held[chosen] <= LEVELS:
                above[held[chosen]] += 1
        else:
            chosen = busy[rng.randrange(len(busy))]
            if held[chosen] <= LEVELS:
                above[held[chosen]] -= 1
            held[chosen] -= 1
            if not held[chosen]:
                last = busy.pop()
                if last != chosen:
                    busy[place[chosen]], place[last] = last, place[chosen]
    return [level / (replicas * (until_s - since_s)) for level in total]
