"""How each quantity of the oracle table is read from what was seen, and what a step is worth in its unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

import numpy as np

from tests.oracles.estimate import Estimate, Floats, asymptotic_variance, by_seed, quantile, ratio, share, variance
from tests.oracles.mapping import Queue
from tests.oracles.seen import Seen
from tests.oracles.sizing import RARE, SELDOM, WINDOW_RELAXATIONS

Read = Callable[[Seen, Queue, float], Estimate]
"""From what was seen, the queue and the level to an estimate in the table's unit."""


class Traffic(Enum):
    """What comes while a quantity is watched."""

    AS_GIVEN = "as given"
    SATURATING = "more than can be served"
    POISSON = "as much, but Poisson"


@dataclass(frozen=True)
class Quantity:
    """How a quantity is read, and what one step is worth in its unit: what the steps may add to it."""

    read: Read
    step: Callable[[Queue, float], float]
    """From the queue and the oracle's value."""
    mean: bool = False
    """Whether the full set must know it as well as a mean."""
    smallest: float = 0.0
    """A smaller value need not be known any better than this one."""
    relaxations: float = 0.0
    """Relaxation times that a seed's window must have; with fewer the row is only reported."""
    traffic: Traffic = Traffic.AS_GIVEN


def luck(seen: Seen, queue: Queue) -> Floats:
    """(seeds, 2): how many more requests arrived, and how many more steps they needed, than is to be expected."""
    requests = seen.counted - queue.rate_rps * seen.window_s
    return np.stack([requests, seen.steps - queue.steps * seen.counted], axis=1)


def _a_step(queue: Queue, value: float) -> float:
    return queue.step_s


def _arrivals_a_step(queue: Queue, value: float) -> float:
    return queue.rate_rps * queue.step_s


def _nothing(queue: Queue, value: float) -> float:
    return 0.0


def _of_variance(queue: Queue, value: float) -> float:
    return 2.0 * float(np.sqrt(value)) * queue.step_s


def _mean_of(column: str) -> Read:
    def read(seen: Seen, queue: Queue, level: float) -> Estimate:
        return ratio(by_seed(getattr(seen, column), seen.served), seen.served, luck(seen, queue), level)

    return read


def _quantile_of(column: str, q: float) -> Read:
    return lambda seen, queue, level: quantile(getattr(seen, column), seen.served, q, luck(seen, queue), level)


def _average_of(column: str) -> Read:
    def read(seen: Seen, queue: Queue, level: float) -> Estimate:
        integral: Floats = getattr(seen, column)
        return ratio(integral.reshape(seen.seeds, -1).sum(axis=1), seen.span_s, luck(seen, queue), level)

    return read


def _wait_variance(seen: Seen, queue: Queue, level: float) -> Estimate:
    return variance(seen.wait_s, seen.served, luck(seen, queue), level)


def _wait_share(seen: Seen, queue: Queue, level: float) -> Estimate:
    """Waits of at least one step: shorter ones are for the running step to end, not for a free server."""
    waits = by_seed(seen.wait_s >= queue.step_s * (1.0 - 1e-6), seen.served)
    return share(waits + seen.gave_up, seen.counted, seen.counted, luck(seen, queue), level)


def _wait_deviation(seen: Seen, queue: Queue, level: float) -> Estimate:
    of = _wait_variance(seen, queue, level)
    return Estimate(of.value**0.5, max(of.low, 0.0) ** 0.5, of.high**0.5)


def _class_wait(index: int) -> Read:
    def read(seen: Seen, queue: Queue, level: float) -> Estimate:
        return ratio(seen.class_wait_s[:, index], seen.class_served[:, index], luck(seen, queue), level)

    return read


def _share_of(column: str) -> Read:
    def read(seen: Seen, queue: Queue, level: float) -> Estimate:
        return share(getattr(seen, column), seen.counted, seen.counted, luck(seen, queue), level)

    return read


def _throughput(seen: Seen, queue: Queue, level: float) -> Estimate:
    return ratio(seen.completed, seen.span_s, luck(seen, queue), level)


def _decay(seen: Seen, queue: Queue, level: float) -> Estimate:
    """eta, the ratio of probabilities of n + 1 and n in the system for large n.

    Long waits then have an exponential tail of the rate capacity * (1 - eta), and any of them exceeds a high threshold,
    here the 95th percentile, by 1 / rate on average.
    """
    excess = seen.wait_s - np.quantile(seen.wait_s, 0.95)
    long = excess > 0.0
    of = ratio(by_seed(np.where(long, excess, 0.0), seen.served), by_seed(long, seen.served), luck(seen, queue), level)
    shortest_s = 1.0 / queue.capacity_rps  # eta is not below 0
    return Estimate(*(1.0 - shortest_s / max(mean_s, shortest_s) for mean_s in (of.value, of.low, of.high)))


def _group_size(seen: Seen, queue: Queue, level: float) -> Estimate:
    return ratio(seen.grouped, seen.groups, luck(seen, queue), level)


def _last_groups(seen: Seen, queue: Queue, level: float) -> Estimate:
    """Every group looks at whether somebody waits at its end."""
    return share(seen.last_groups, seen.groups, seen.groups, luck(seen, queue), level)


def _busy_share(seen: Seen, queue: Queue, level: float) -> Estimate:
    """Every arrival looks at whether there is work."""
    return share(seen.busy_s, seen.span_s, seen.counted, luck(seen, queue), level)


def _token_gap(seen: Seen, queue: Queue, level: float) -> Estimate:
    return ratio(seen.gap_s * queue.steps_per_token, np.ones(seen.seeds), luck(seen, queue), level)


def _capacity(seen: Seen, queue: Queue, level: float) -> Estimate:
    return ratio(seen.completed, seen.span_s, np.empty((seen.seeds, 0)), level)


def _size_variance(seen: Seen, queue: Queue, level: float) -> Estimate:
    return asymptotic_variance(seen.in_system, seen.half_s, level)


def _arrival_rate(seen: Seen, queue: Queue, level: float) -> Estimate:
    return ratio(seen.counted, seen.window_s, np.empty((seen.seeds, 0)), level)


def _service_steps(seen: Seen, queue: Queue, level: float) -> Estimate:
    return ratio(seen.steps, seen.counted, np.empty((seen.seeds, 0)), level)


QUANTITIES: Mapping[str, Quantity] = MappingProxyType(
    {
        "L": Quantity(_average_of("in_system"), _arrivals_a_step, mean=True),
        "Lq": Quantity(_average_of("waiting"), _arrivals_a_step, mean=True),
        "W_mean": Quantity(_mean_of("sojourn_s"), _a_step, mean=True),
        "Wq_mean": Quantity(_mean_of("wait_s"), _a_step, mean=True),
        "Wq_var": Quantity(_wait_variance, _of_variance),
        "P_wait": Quantity(_wait_share, _nothing, mean=True, smallest=RARE),
        "mean_batch": Quantity(_average_of("batch"), _arrivals_a_step, mean=True),
        "busy_fraction": Quantity(_busy_share, _nothing, mean=True),
        "mean_TPOT_token_weighted": Quantity(_token_gap, _a_step, mean=True),
        "capacity_req_per_s": Quantity(_capacity, _nothing, mean=True, traffic=Traffic.SATURATING),
        "asymptotic_variance_of_time_avg_N": Quantity(_size_variance, _nothing, relaxations=WINDOW_RELAXATIONS),
        "P_block": Quantity(_share_of("refused"), _nothing, mean=True, smallest=RARE),
        "P_abandon": Quantity(_share_of("gave_up"), _nothing, mean=True, smallest=RARE),
        "throughput": Quantity(_throughput, _nothing, mean=True),
        "W_mean_accepted": Quantity(_mean_of("sojourn_s"), _a_step, mean=True),
        "Wq_mean_accepted": Quantity(_mean_of("wait_s"), _a_step, mean=True),
        "Wq_std": Quantity(_wait_deviation, _a_step),
        "sigma": Quantity(_wait_share, _nothing, mean=True, smallest=RARE),
        "P_wait_arrivals": Quantity(_wait_share, _nothing, mean=True, smallest=RARE),
        "Wq_mean_if_Poisson_same_rate": Quantity(_mean_of("wait_s"), _a_step, mean=True, traffic=Traffic.POISSON),
        "decay_rate_eta": Quantity(_decay, _nothing, mean=True),
        "Wq1": Quantity(_class_wait(0), _a_step, mean=True),
        "Wq2": Quantity(_class_wait(1), _a_step, mean=True),
        "mean_batch_size": Quantity(_group_size, _nothing, mean=True),
        "P_queue_empty_at_completion": Quantity(_last_groups, _nothing, mean=True, smallest=SELDOM),
        "drawn arrivals a second": Quantity(_arrival_rate, _nothing, mean=True),
        "drawn steps a service": Quantity(_service_steps, _nothing, mean=True),
    }
)
"""The table's quantities by name, and the draws; percentiles of waits and sojourns are understood without a line."""

_PERCENTILE = re.compile(r"(W|Wq)_p([\d.]+)(_accepted)?")


def quantity(name: str) -> Quantity:
    """How to read the quantity that a row names."""
    if match := _PERCENTILE.fullmatch(name):
        column = {"W": "sojourn_s", "Wq": "wait_s"}[match[1]]
        return Quantity(_quantile_of(column, float(match[2]) / 100.0), _a_step)
    return QUANTITIES[name]


def growth(name: str) -> float:
    """The power of the queue's length with which a quantity grows: 1 for sizes and times, 2 for variances, else 0."""
    return (2.0 if name.endswith("_var") else 1.0) if re.fullmatch(r"(L|Lq|W|Wq)\d?(_.*)?", name) else 0.0


def is_p99(name: str) -> bool:
    """Whether a quantity is a 99th percentile, which the full set must know to `P99_WITHIN`."""
    return name.removesuffix("_accepted").endswith("_p99")
