"""Gaps between tokens: the pooled histogram and each request's largest, against every gap of reference runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.outcome.gaps import GapHistogram
from engine.outcome.spread import QUANTILES, Spread
from engine.outcome.steps import Steps, ending_before
from tests.outcome.cases import COUNT, Case, case, result_of
from tests.reference.model import Request, Setup
from tests.reference.simulator import simulate

Floats = NDArray[np.float64]
WITHIN = 1 / 256
"""A bucket is at most 1/128 of its lower edge wide, and stands for its middle."""


def check_figures(found: Spread, gaps: Sequence[Floats]) -> None:
    """Mean, maximum and counts are exact, quantiles close, pooled and seed by seed."""
    pooled = np.concatenate(gaps)
    assert found.counts.tolist() == [len(seed) for seed in gaps]
    sets = [(found.figures, pooled)]
    sets += [({key: float(v[i]) for key, v in found.per_seed.items()}, seed) for i, seed in enumerate(gaps)]
    for figures, values in sets:
        if not values.size:
            assert all(np.isnan(v) for v in figures.values())
            continue
        assert figures["mean"] == pytest.approx(values.mean(), rel=1e-9)
        assert figures["max"] == pytest.approx(values.max(), rel=1e-9)
        for key, q in QUANTILES.items():
            want = float(np.quantile(values, q, method="inverted_cdf"))
            assert figures[key] == pytest.approx(want, rel=WITHIN * 1.01), key
            assert figures[key] <= figures["max"]


@pytest.mark.parametrize("number", range(COUNT))
def test_gaps_of_reference_runs(number: int) -> None:
    """Those that end in the window, over runs of steps that straddle the warm-up and the horizon."""
    c = case(number)
    check_figures(c.result.latency["itl"], [np.array(c.gaps(i)) for i in range(3)])


def test_the_cases_straddle_and_stall() -> None:
    """The random cases reach what they are for."""
    cases = [case(number) for number in range(COUNT)]
    assert sum(_straddles(c) for c in cases) > 10
    assert sum(c.result.run.stall_gaps.size > 0 for c in cases) > 5
    assert sum(bool((c.result.log.k > 3).any() and (c.result.log.slope > 0).any()) for c in cases) > 10


def _straddles(c: Case) -> bool:
    log = c.result.log
    return bool(((log.t0 < c.warmup_s) & (log.t1 > c.warmup_s) & (log.k > 1)).any())


def steps_of(*runs: tuple[int, int, float, float, int]) -> Steps:
    """(seed, requests, first duration, slope, steps) of each run."""
    columns: list[Floats] = list(np.array(runs, dtype=np.float64).T)
    return Steps(columns[0].astype(np.int64), *columns[1:])


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(1, 50),
            st.floats(1e-4, 30.0),
            st.one_of(st.just(0.0), st.floats(1e-9, 1e-1)),
            st.integers(1, 300),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_runs_over_many_buckets(runs: list[tuple[int, int, float, float, int]]) -> None:
    """k steps of d, d + slope, ... are counted one by one however many buckets they cross."""
    histogram = GapHistogram(3)
    half = len(runs) // 2
    for part in (runs[:half], runs[half:]):
        if part:
            histogram.add_steps(steps_of(*part))
    found = histogram.spread(np.empty(0), np.empty(0, np.int64))
    each: list[list[Floats]] = [[np.empty(0)], [np.empty(0)], [np.empty(0)]]
    for seed, n, d, slope, k in runs:
        each[seed].append(np.repeat(d + slope * np.arange(k), n))
    check_figures(found, [np.concatenate(gaps) for gaps in each])


def test_asked_twice_the_answer_is_the_same() -> None:
    histogram = GapHistogram(2)
    histogram.add_steps(steps_of((0, 2, 0.5, 0.0, 3)))
    once = histogram.spread(np.array([4.0]), np.array([1]))
    again = histogram.spread(np.array([4.0]), np.array([1]))
    assert once.figures == again.figures
    assert again.counts.tolist() == [6.0, 1.0]
    assert again.per_seed["max"].tolist() == [0.5, 4.0]


def test_nothing_seen() -> None:
    found = GapHistogram(2).spread(np.empty(0), np.empty(0, np.int64))
    assert all(np.isnan(v) for v in found.figures.values())
    assert found.counts.tolist() == [0.0, 0.0]


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 400), st.integers(0, 40), st.integers(1, 300), st.integers(0, 10**5))
def test_steps_that_end_before_a_time(d: int, slope: int, k: int, gap: int) -> None:
    """As counting finds, boundaries at exactly that time included; never all of them."""
    slope, unit = min(slope, d), 2.0**-10
    ends = np.cumsum([d + j * slope for j in range(k)])
    columns = (np.array([x * unit]) for x in (3, d, slope))
    found = ending_before((3 + gap) * unit, *columns, np.array([float(k)]))
    assert found[0] == min(int((ends < gap).sum()), k - 1)


@pytest.mark.parametrize("number", range(COUNT))
def test_largest_gap_of_each_request(number: int) -> None:
    c = case(number)
    want = [np.nan if row.max_itl_s is None else row.max_itl_s for _, _, row in c.rows()]
    np.testing.assert_allclose(c.result.max_itl_s, want, rtol=1e-9, atol=1e-12)


def test_largest_gap_is_the_step_with_another_prompt() -> None:
    """Steps last 1 s, and 2 s more for the prompt of 20 that comes while the first decodes."""
    setup = Setup(base=lambda tokens: 1.0 + 0.1 * (tokens > 10) * tokens, max_num_seqs=4)
    requests = [Request(0.0, 5, 6), Request(2.5, 20, 3)]
    assert simulate(setup, requests).requests[0].token_times == [1.0, 2.0, 3.0, 6.1, 7.1, 8.1]
    assert result_of(setup, [requests]).max_itl_s == pytest.approx([3.1, 1.0])
