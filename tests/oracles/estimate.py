"""Estimates with half-widths from the spread over seeds, and how each quantity of the table is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tests.oracles.mapping import Queue
from tests.oracles.seen import Floats, Seen


@dataclass(frozen=True)
class Estimate:
    """A value, and half of its interval at the level asked for; both in the quantity's unit."""

    value: float
    half_width: float


def luck(seen: Seen, queue: Queue) -> Floats:
    """(seeds, 2): how many more requests arrived, and how many more steps they needed, than is to be expected."""
    requests = seen.counted - queue.rate_rps * seen.window_s
    return np.stack([requests, seen.steps - queue.steps * seen.counted], axis=1)


def ratio(top: NDArray[np.generic], bottom: NDArray[np.generic], luck: Floats, level: float) -> Estimate:
    """sum(top) / sum(bottom), one pair a seed, corrected for the seeds' luck; Student's t at error probability `level`.

    Pooled, so that a seed weighs by what it saw. The spread is that of the linearised ratio, top - value * bottom.
    Where a seed's queue is longer because more work was drawn than expected, regression on `luck`, whose mean is known
    to be zero, says by how much, and what it explains is left out (control variates; Lavenberg and Welch, Management
    Science 27, 1981). That the draws themselves are right is a test of its own (`judge`).
    """
    value = float(top.sum() / bottom.sum())
    residual = (top - value * bottom) / bottom.mean()
    known = luck / np.maximum(luck.std(axis=0), 1e-300)
    design = np.column_stack([np.ones(residual.size), known[:, luck.std(axis=0) > 0]])
    fit = np.linalg.lstsq(design, residual, rcond=None)[0]
    rest = residual - design @ fit
    freedom = residual.size - fit.size
    error = float(np.sqrt(rest @ rest / freedom / residual.size))
    return Estimate(value + float(fit[0]), float(stats.t.isf(level / 2.0, freedom)) * error)


def share(hits: NDArray[np.generic], count: NDArray[np.generic], luck: Floats, level: float) -> Estimate:
    """A probability, as a ratio; but what n requests never show may still have probability -ln(level / 2) / n.

    That is the rule of three at another level: a spread over seeds is blind for what no seed has met.
    """
    seen = ratio(hits, count, luck, level)
    return Estimate(seen.value, max(seen.half_width, float(-np.log(level / 2.0) / count.sum())))


def quantile(values: NDArray[np.float32], count: NDArray[np.int64], q: float, luck: Floats, level: float) -> Estimate:
    """The pooled quantile of `values`, laid seed after seed as `count` (seeds,) says; the farther end of its interval.

    The interval is found in shares: how far the share at or below the quantile varies over seeds says which other
    quantiles of the pooled sample can't be told from it. No seed needs a good estimate of its own.
    """
    ordered = np.sort(values)

    def at(p: float) -> float:
        rank = int(np.ceil(np.round(p * ordered.size, 9)))
        return float(ordered[min(max(rank, 1), ordered.size) - 1])

    below = by_seed(values <= np.float32(at(q)), count)
    found = ratio(below, count, luck, level)
    p = q - (found.value - below.sum() / count.sum())
    value = at(p)
    return Estimate(value, max(at(p + found.half_width) - value, value - at(p - found.half_width)))


def variance(values: NDArray[np.float32], count: NDArray[np.int64], luck: Floats, level: float) -> Estimate:
    """The variance of `values`, laid seed after seed, about their pooled mean."""
    from_mean = values.astype(np.float64) - values.mean(dtype=np.float64)
    return ratio(by_seed(from_mean**2, count), count, luck, level)


def asymptotic_variance(integrals: Floats, half_s: Floats, level: float) -> Estimate:
    """The limit of T * variance of an average over T, from integrals (seeds, 2) over two halves of a window.

    A finite T falls short by about a constant over T. Twice the figure of the whole window less that of its halves
    cancels it.
    """
    n = half_s.size
    means = integrals / half_s[:, None]
    from_mean = means - means.mean()
    whole = 2.0 * half_s * from_mean.mean(axis=1) ** 2
    halves = half_s * (from_mean**2).mean(axis=1)
    return ratio((2.0 * whole - halves) * n / (n - 1), np.ones(n), np.empty((n, 0)), level)


def by_seed(values: NDArray[np.generic], count: NDArray[np.int64]) -> NDArray[np.generic]:
    """(seeds,): sums of `values`, laid seed after seed as `count` says, none of which is 0."""
    kind = np.float64 if values.dtype.kind == "f" else np.int64
    return np.add.reduceat(values, np.cumsum(count) - count, dtype=kind)


# -- the table's quantities ------------------------------------------------------------------------------------------

Read = Callable[[Seen, Queue, float], Estimate]
"""From what was seen, the queue and the level to an estimate in the table's unit."""


@dataclass(frozen=True)
class Quantity:
    """How a quantity is read, and what one step is worth in its unit: what the steps may add to it."""

    read: Read
    step: Callable[[Queue, float], float]
    """From the queue and the oracle's value."""
    mean: bool = False
    """Whether the full set must know it as well as a mean."""
    saturated: bool = False
    """Read from a run with more traffic than can be served."""


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
        return ratio(by_seed(getattr(seen, column), seen.counted), seen.counted, luck(seen, queue), level)

    return read


def _quantile_of(column: str, q: float) -> Read:
    return lambda seen, queue, level: quantile(getattr(seen, column), seen.counted, q, luck(seen, queue), level)


def _average_of(column: str) -> Read:
    def read(seen: Seen, queue: Queue, level: float) -> Estimate:
        integral: Floats = getattr(seen, column)
        return ratio(integral.reshape(seen.seeds, -1).sum(axis=1), seen.span_s, luck(seen, queue), level)

    return read


def _wait_variance(seen: Seen, queue: Queue, level: float) -> Estimate:
    return variance(seen.wait_s, seen.counted, luck(seen, queue), level)


def _wait_share(seen: Seen, queue: Queue, level: float) -> Estimate:
    """Waits of at least one step: shorter ones are for the running step to end, not for a free server."""
    waits = seen.wait_s >= queue.step_s * (1.0 - 1e-6)
    return share(by_seed(waits, seen.counted), seen.counted, luck(seen, queue), level)


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
        "P_wait": Quantity(_wait_share, _nothing, mean=True),
        "mean_batch": Quantity(_average_of("batch"), _arrivals_a_step, mean=True),
        "busy_fraction": Quantity(_average_of("busy_s"), _nothing, mean=True),
        "mean_TPOT_token_weighted": Quantity(_token_gap, _a_step, mean=True),
        "capacity_req_per_s": Quantity(_capacity, _nothing, mean=True, saturated=True),
        "asymptotic_variance_of_time_avg_N": Quantity(_size_variance, _nothing),
        "drawn arrivals a second": Quantity(_arrival_rate, _nothing, mean=True),
        "drawn steps a service": Quantity(_service_steps, _nothing, mean=True),
    }
)
"""The table's quantities by name, and the draws; percentiles of waits and sojourns are understood without a line."""

_PERCENTILE = re.compile(r"(W|Wq)_p([\d.]+)")


def quantity(name: str) -> Quantity:
    """How to read the quantity that a row names."""
    if match := _PERCENTILE.fullmatch(name):
        column = {"W": "sojourn_s", "Wq": "wait_s"}[match[1]]
        return Quantity(_quantile_of(column, float(match[2]) / 100.0), _a_step)
    return QUANTITIES[name]


def is_p99(name: str) -> bool:
    """Whether a quantity is a 99th percentile, which the full set must know to `P99_WITHIN`."""
    return name.endswith("_p99")
