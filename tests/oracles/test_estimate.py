"""The estimates themselves: their intervals hold what they should as often as they say, and a wrong engine fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracles import judge
from tests.oracles.estimate import Estimate, asymptotic_variance, quantile, ratio, share, variance
from tests.oracles.mapping import Parameters, Queue, mm1
from tests.oracles.quantities import quantity
from tests.oracles.rows import Case, cases
from tests.oracles.sizing import birth_death_variance, level_of, plan

LEVEL, REPEATS, SEEDS = 0.1, 400, 60
MM1_CASES = [case for case in cases() if case.family == "MM1"]


def draw(rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float64]]:
    """Exponential values around a level of each seed's own, whose deviation from 2 is known up to noise."""
    count = rng.integers(20, 60, SEEDS)
    level = rng.gamma(16.0, 2.0 / 16.0, SEEDS)
    values = rng.exponential(1.0, count.sum()) * np.repeat(level, count)
    luck = count * (level - 2.0) + rng.normal(0.0, 5.0, SEEDS)
    return values.astype(np.float32), count, luck[:, None]


def sums(values: NDArray[np.float32], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """(seeds,): sums of the values of each seed."""
    return np.add.reduceat(values, np.cumsum(count) - count, dtype=np.float64)


def coverage(estimate: object, truth: float) -> float:
    """Share of repetitions whose interval holds the truth."""
    rng = np.random.default_rng(5)
    found: list[Estimate] = [estimate(*draw(rng)) for _ in range(REPEATS)]  # type: ignore[operator]
    return float(np.mean([e.low <= truth <= e.high for e in found]))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    big, size, _ = (
        np.concatenate(part) for part in zip(*(draw(np.random.default_rng(i)) for i in range(3000)), strict=True)
    )
    q90, mean, spread = float(np.quantile(big, 0.9)), 2.0, float(big.var())
    none = np.empty((SEEDS, 0))
    expected = pytest.approx(1.0 - LEVEL, abs=4.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / REPEATS))
    assert size.size == 3000 * SEEDS
    assert coverage(lambda v, n, luck: ratio(sums(v, n), n, none, LEVEL), mean) == expected
    assert coverage(lambda v, n, luck: ratio(sums(v, n), n, luck, LEVEL), mean) == expected
    assert coverage(lambda v, n, luck: quantile(v, n, 0.9, none, LEVEL), q90) == expected
    assert coverage(lambda v, n, luck: quantile(v, n, 0.9, luck, LEVEL), q90) == expected
    assert coverage(lambda v, n, luck: variance(v, n, luck, LEVEL), spread) == expected


def test_luck_that_is_known_narrows_the_interval() -> None:
    values, count, luck = draw(np.random.default_rng(1))
    plain = ratio(sums(values, count), count, np.empty((SEEDS, 0)), LEVEL)
    assert ratio(sums(values, count), count, luck, LEVEL).half_width < 0.8 * plain.half_width


def test_what_nobody_has_seen_may_be_rare() -> None:
    count = np.full(10, 100)
    unseen = share(np.zeros(10, np.int64), count, count, np.empty((10, 0)), 0.1)
    assert (unseen.value, unseen.half_width) == (0.0, pytest.approx(np.log(20.0) / 1000.0))


def test_asymptotic_variance_of_a_process_that_forgets_slowly() -> None:
    # AR(1) with coefficient a and unit noise: the variance of an average over T is 1 / (1 - a)^2 / T in the limit.
    rng, a, steps = np.random.default_rng(2), 0.9, 200
    x = np.zeros((4000, 2 * steps))
    x[:, 0] = rng.normal(0.0, 1.0 / np.sqrt(1.0 - a**2), 4000)
    for t in range(1, 2 * steps):
        x[:, t] = a * x[:, t - 1] + rng.normal(size=4000)
    halves = x.reshape(4000, 2, steps).sum(axis=2)
    found = asymptotic_variance(halves, np.full(4000, float(steps)), 0.01)
    assert found.low <= 100.0 <= found.high
    assert found.half_width < 15.0


@pytest.mark.parametrize("case", MM1_CASES, ids=lambda case: case.name)
def test_sizes_are_planned_with_the_exact_variance(case: Case) -> None:
    queue, size = judge.queue_of(case), case.known("L")
    assert size is not None
    planned = birth_death_variance(queue, 0) * size**2 / queue.rate_rps
    assert planned == pytest.approx(case.known("asymptotic_variance_of_time_avg_N"), rel=1e-6)


@pytest.mark.parametrize("wrong", ["services", "arrivals", "slots"])
def test_a_wrong_engine_fails(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def off(p: Parameters) -> Queue:
        queue, document = mm1(p), mm1(p).document
        changed = {
            "services": {"performance": {"kind": "linear", "overhead_s": queue.step_s * 1.03}},
            "arrivals": {"traffic": {**document["traffic"], "rate_rps": queue.rate_rps * 1.03}},
            "slots": {"batching": {"max_num_seqs": 2, "max_num_batched_tokens": 2}},
        }
        return replace(queue, document={**document, **changed[wrong]})

    monkeypatch.setattr(judge, "MAPPINGS", {"MM1": off})
    case = MM1_CASES[0]
    verdicts = judge.judge(case, plan(judge.queue_of(case), 100_000, 1), level_of(100))
    failed = {v.row.quantity for v in verdicts if not v.passes}
    expected = {"services": "W_mean", "arrivals": "drawn arrivals a second", "slots": "Wq_mean"}
    assert expected[wrong] in failed


def test_percentiles_are_read_by_their_number() -> None:
    assert quantity("Wq_p99.9") != quantity("W_p99")
    with pytest.raises(KeyError):
        quantity("median")
