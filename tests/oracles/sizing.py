"""How long to simulate a queue, how often and with which seeds: decided from its load before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import eigh_tridiagonal

from tests.oracles.mapping import Queue

FAMILY_ERROR = 0.01
"""Chance that any row of a correct engine fails, all rows of a run together."""

MEAN_WITHIN, P99_WITHIN = 0.03, 0.06
"""Largest half-widths in the full set, relative to the oracle."""
HIGHEST_LOAD, MOST_VARIABLE = 0.95, 4.0
"""Load and squared coefficient of variation up to which those half-widths are asked for."""

WARMUP_RELAXATIONS, WARMUP_SERVICES = 4.0, 8.0
WINDOW_RELAXATIONS = 8.0
FEWEST_SEEDS = 24
ELSEWHERE_RELAXATIONS, ELSEWHERE_REQUESTS = 2.0, 3_000_000
"""The budget of queues beyond those limits: each seed's window is so many relaxation times, and there are as many seeds
as that many requests make, those before the window included, but not fewer than the fewest."""
RARE = 1e-3
"""Waits that fewer than this share of requests meet can't be measured to a few percent, and don't decide the size."""
SELDOM = 1e-2
"""Services of a bulk server that leave nobody behind: likewise, of a smaller share."""
NEGLIGIBLE = 1e-13
"""Probability of states that don't matter."""
MOST_LANES, MOST_BLOCK = 256, 3_000_000
"""Seeds and requests simulated together at most: beyond, memory grows and speed hardly does."""


@dataclass(frozen=True)
class Plan:
    """Arrivals from `warmup_s` to `end_s` count; by `horizon_s`, seconds, all of them have been served."""

    warmup_s: float
    end_s: float
    horizon_s: float
    seeds: int
    lanes: int
    """Seeds simulated together."""
    first_seed: int

    def runs(self) -> Iterator[dict[str, float]]:
        """The `run` sections, one a block of seeds."""
        for done in range(0, self.seeds, self.lanes):
            count = min(self.lanes, self.seeds - done)
            times = {"warmup_s": self.warmup_s, "horizon_s": self.horizon_s}
            yield {**times, "seed": self.first_seed + done, "seeds": count}


def seed_of(name: str) -> int:
    """The first seed of the queue with this name: its own, so that queues don't share their luck, and never chosen."""
    return crc32(name.encode()) >> 1


def in_limits(queue: Queue) -> bool:
    """Whether the full set must measure this queue to `MEAN_WITHIN` and `P99_WITHIN`."""
    return queue.load <= HIGHEST_LOAD * (1 + 1e-9) and max(queue.squared_cvs) <= MOST_VARIABLE


def level_of(rows: int) -> float:
    """Error probability of each of `rows` rows (Bonferroni)."""
    return FAMILY_ERROR / rows


def relaxation_s(queue: Queue) -> float:
    """Time in which the memory of a start fades.

    That of M/M/1 at this load and pace, 1 / (sqrt(mu) - sqrt(lam))^2, longer as a diffusion's is if arrivals or
    services vary more; with a limit, exactly, the slowest exponential of the birth-and-death process.
    """
    if queue.most is not None:
        return _slowest_s(queue, queue.most)
    variation = max(sum(queue.squared_cvs) / 2.0, 1.0)
    return variation * queue.replicas / (queue.capacity_rps * (1.0 - queue.load**0.5) ** 2)


def _slowest_s(queue: Queue, most: int) -> float:
    """1 / spectral gap, from the symmetric matrix that is similar to the generator."""
    assert queue.pace is not None
    birth = np.append(np.full(most, queue.rate_rps), 0.0)
    death = np.append(0.0, queue.pace(np.arange(1, most + 1)))
    beside = -np.sqrt(birth[:-1] * death[1:])
    gaps = eigh_tridiagonal(birth + death, beside, eigvals_only=True, select="i", select_range=(1, 1))
    return 1.0 / float(gaps[0])


def fill_s(queue: Queue) -> float:
    """Mean time from an empty system to its mean size, for a queue with a limit: it may be far from empty."""
    if queue.most is None:
        return 0.0
    p = stationary(queue, queue.most)
    size = int(np.arange(queue.most + 1) @ p)
    return float((np.cumsum(p)[:size] / p[:size]).sum() / queue.rate_rps)


def requests_needed(queue: Queue, wait_share: float | None, level: float) -> float:
    """Requests after which the mean wait's half-width should be `MEAN_WITHIN`."""
    variance = queue.effort * relative_variance(queue, wait_share)
    return variance * (float(stats.norm.isf(level / 2.0)) / MEAN_WITHIN) ** 2


def least_half_width(queue: Queue, wait_share: float | None, plan: Plan, level: float) -> float:
    """Half-width of a mean wait that theory expects of a plan, in means; for a queue beyond the limits, else 0.

    There a seed sees a few relaxation times only. Seeds that never met a long queue have a small spread, too: their
    half-widths aren't taken to be narrower than this.
    """
    if queue.most is not None or in_limits(queue):
        return 0.0
    counted = queue.rate_rps * (plan.end_s - plan.warmup_s) * plan.seeds
    return float(stats.norm.isf(level / 2.0) * np.sqrt(relative_variance(queue, wait_share) / counted))


def relative_variance(queue: Queue, wait_share: float | None) -> float:
    """Requests times the variance of a mean wait over so many, in squared means.

    Where hardly anybody waits, that of the mean number in the system counts; where some are turned away, that of their
    share as well. `wait_share` is the probability of a wait; None where the table doesn't give it.
    """
    share = queue.load if wait_share is None else wait_share
    if queue.most is not None:
        sizes = (0, queue.servers if queue.most > queue.servers else 0, queue.most - 1)
        return max(birth_death_variance(queue, beyond) for beyond in sizes)
    if queue.pace is None:
        return heavy_traffic_variance(queue, share)
    return birth_death_variance(queue, 0 if share < RARE else queue.servers)


def heavy_traffic_variance(queue: Queue, wait_share: float) -> float:
    """Requests times the variance of a mean wait over so many, in squared means: 2 (ca^2 + cs^2) / (1 - load)^2.

    The limit of heavy traffic (Whitt, Planning queueing simulations, Management Science 35, 1989); with several servers
    only the share of time with a queue counts.
    """
    return 2.0 * sum(queue.squared_cvs) / (1.0 - queue.load) ** 2 / wait_share


def birth_death_variance(queue: Queue, beyond: int) -> float:
    """Requests times the variance of the time average of max(n - beyond, 0) over so many, in squared means. Exact.

    n is the number in the system. Asymptotic variance 2 sum_j (sum_{i <= j} (f_i - mean) p_i)^2 / (rate p_j) (Whitt,
    Asymptotic formulas for Markov processes, Operations Research 40, 1992, for birth-and-death processes).
    """
    states = queue.most
    if states is None:
        states = queue.servers + int(np.log(NEGLIGIBLE) / np.log(queue.load))
    n = np.arange(states + 1)
    p = stationary(queue, states)
    f = np.maximum(n - beyond, 0)
    mean = float(f @ p)
    seen = p > NEGLIGIBLE
    below = np.cumsum((f - mean) * p)[seen]
    return float(2.0 * (below**2 / p[seen]).sum() / mean**2)


def stationary(queue: Queue, states: int) -> NDArray[np.float64]:
    """(states + 1,): probabilities of the numbers in the system, if more can't be."""
    assert queue.pace is not None
    odds = np.cumsum(np.append(0.0, np.log(queue.rate_rps / queue.pace(np.arange(1, states + 1)))))
    p: NDArray[np.float64] = np.exp(odds - odds.max())
    return p / p.sum()


def plan(queue: Queue, requests: float, first_seed: int) -> Plan:
    """A plan that counts at least `requests` requests; for a queue that forgets soon enough."""
    window_s = max(WINDOW_RELAXATIONS * relaxation_s(queue), min(requests, MOST_BLOCK) / (queue.rate_rps * MOST_LANES))
    return _plan(queue, window_s, max(ceil(requests / (queue.rate_rps * window_s)), FEWEST_SEEDS), first_seed)


def plan_elsewhere(queue: Queue, first_seed: int) -> Plan:
    """The stated budget of a queue that is too slow to be measured well."""
    window_s = max(ELSEWHERE_RELAXATIONS * relaxation_s(queue), ELSEWHERE_REQUESTS / (queue.rate_rps * MOST_LANES))
    each = queue.rate_rps * (window_s + WARMUP_RELAXATIONS * relaxation_s(queue))
    return _plan(queue, window_s, max(int(ELSEWHERE_REQUESTS / each), FEWEST_SEEDS), first_seed)


def plan_saturated(queue: Queue, requests: float, first_seed: int) -> Plan:
    """A plan for twice the traffic that can be served: what counts are completions, and a queue that never empties."""
    seeds = 64
    warmup_s = WARMUP_SERVICES * queue.service_s
    end_s = warmup_s + requests / (seeds * queue.capacity_rps)
    return Plan(warmup_s, end_s, end_s, seeds, seeds, first_seed)


def _plan(queue: Queue, window_s: float, seeds: int, first_seed: int) -> Plan:
    warmup_s = fill_s(queue) + WARMUP_RELAXATIONS * relaxation_s(queue) + WARMUP_SERVICES * queue.service_s
    end_s = warmup_s + window_s
    horizon_s = end_s + _last_out_s(queue)
    blocks = ceil(seeds / min(MOST_LANES, max(MOST_BLOCK // (queue.rate_rps * horizon_s), 1)))
    return Plan(warmup_s, end_s, horizon_s, seeds, ceil(seeds / blocks), first_seed)


def _last_out_s(queue: Queue) -> float:
    """By when the longest waits and services of those who come last are over."""
    services_s = 18.0 * queue.service_s * max(queue.squared_cvs[1], 1.0)
    if queue.most is not None:
        return services_s + (queue.most + 10.0 * queue.most**0.5 + 20.0) / queue.capacity_rps
    variation = max(sum(queue.squared_cvs) / 2.0, 1.0)
    return services_s + 20.0 * variation * queue.replicas / (queue.capacity_rps - queue.rate_rps)
