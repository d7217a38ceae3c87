"""MMPP(2) arrivals alone: their rate, and their counts' variance over mean, in windows of any length.

The rows of the family `MMPP2`. The interarrival times of an MMPP depend on each other, which a queue notices
(`MMPP2_M_c`) and their distribution doesn't show. Half-widths are what a stated budget gives, and are printed.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import Scenario
from engine.traffic import generate
from tests.oracles.estimate import Estimate, Floats, asymptotic_variance, ratio
from tests.oracles.mapping import ARRIVALS, mmpp_rate, mmpp_traffic
from tests.oracles.rows import Case, cases
from tests.oracles.sizing import level_of, seed_of

CASES = [case for case in cases() if case.family == ARRIVALS]
WINDOW_S = 1000
"""Whole hundreds of seconds, and many times the length of a burst and the calm next to it."""
CI_WINDOWS, WINDOWS = 400, 10_000


def counts(case: Case, windows: int) -> NDArray[np.int64]:
    """(windows, seconds): arrivals in each second, a seed a window."""
    run = {"horizon_s": WINDOW_S, "warmup_s": 0, "seeds": 1}
    s = Scenario.from_dict({"traffic": mmpp_traffic(case.parameters), "run": run})
    edges = np.arange(WINDOW_S + 1)
    first = seed_of(case.name)
    came = (generate(s.traffic, s.run, first + i).arrival_s for i in range(windows))
    return np.stack([np.diff(np.searchsorted(arrival_s, edges)) for arrival_s in came])


def estimate(case: Case, quantity: str, seen: NDArray[np.int64], level: float) -> Estimate:
    """What `counts` say about one of the family's quantities."""
    windows, rate = seen.shape[0], mmpp_rate(case.parameters)
    free: Floats = np.empty((windows, 0))
    if quantity == "mean_rate":
        return ratio(seen.sum(axis=1), np.full(windows, float(WINDOW_S)), free, level)
    if quantity == "IDC_infinity":
        halves = seen.reshape(windows, 2, -1).sum(axis=2).astype(np.float64)
        of = asymptotic_variance(halves, np.full(windows, WINDOW_S / 2.0), level)
        return Estimate(of.value / rate, of.low / rate, of.high / rate)
    length_s = int(quantity.removeprefix("IDC_t"))
    pieces = seen.reshape(windows, -1, length_s).sum(axis=2)
    squares = ((pieces - rate * length_s) ** 2).sum(axis=1)
    return ratio(squares, np.full(windows, rate * WINDOW_S), free, level)


def check(case: Case, windows: int) -> None:
    """Hold every row of a case against that many windows, and print them."""
    level, seen = level_of(sum(len(each.rows) for each in CASES)), counts(case, windows)
    outside = []
    print(f"{case.name}: {windows} windows of {WINDOW_S} s")
    for row in case.rows:
        found = estimate(case, row.quantity, seen, level)
        print(f"{row.quantity:14}{found.value:>12.6g}{row.value:>12.6g}{found.half_width / row.value:>10.2%}")
        if not found.low <= row.value <= found.high:
            outside.append(row.quantity)
    assert not outside


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_counts_vary_as_they_should(case: Case) -> None:
    check(case, CI_WINDOWS)


@pytest.mark.accept
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_counts_vary_as_they_should_over_a_long_time(case: Case) -> None:
    check(case, WINDOWS)


def test_poisson_counts_do_not_pass_for_bursts() -> None:
    seen = np.random.default_rng(3).poisson(mmpp_rate(CASES[0].parameters), (CI_WINDOWS, WINDOW_S))
    for row in CASES[0].rows[1:]:
        assert estimate(CASES[0], row.quantity, seen, 0.001).high < row.value
