"""The estimates themselves: their intervals hold what they should as often as they say, and a wrong engine fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import Scenario
from engine.traffic import generate
from tests.oracles import judge
from tests.oracles.estimate import Estimate, asymptotic_variance, quantile, ratio, share, variance
from tests.oracles.mapping import SERVICES, Parameters, Queue, mm1, mmck
from tests.oracles.quantities import quantity
from tests.oracles.rows import Case, cases
from tests.oracles.seen import groups
from tests.oracles.sizing import birth_death_variance, fill_s, level_of, plan, relaxation_s, stationary

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


RANDOM = {"fleet": {"routing": {"policy": "random"}}}
WRONG: dict[str, tuple[str, dict[str, dict[str, Any]], str]] = {
    "one more let in": ("MMcK K=5", {"admission": {"max_outstanding": 6}}, "P_block"),
    "one more patient": ("MMc_plus_D c=1 ", {"admission": {"queue_timeout_s": 5.3}}, "P_abandon"),
    "nobody goes ahead": ("MM1_priority", {"traffic": {"classes": [{"priority": 0}, {"priority": 0}]}}, "Wq1"),
    "gaps less varied": ("GIM1 ca2=2.0 interarrival=gamma lam=0.5", {"traffic": {"cv": 1.3}}, "Wq_mean"),
    "at random": ("RoundRobin_N_expo_servers N=4 mu=1.0 policy=round_robin rho=0.7", RANDOM, "W_mean"),
    "a smaller group": ("Bulk_M_D_1B_1 B=8 a=1.0 b=0.0 lam=6.0", {"batching": {"max_num_seqs": 7}}, "L"),
}
"""Cases by how they begin, what is changed in their scenarios, and what must then fail."""


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_limit_or_process_fails(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begins, changes, expected = WRONG[wrong]
    case = next(case for case in cases() if case.name.startswith(begins))
    queue = judge.queue_of(case)
    document = merged(queue.document, changes)
    monkeypatch.setattr(judge, "MAPPINGS", {case.family: lambda p: replace(queue, document=document)})
    verdicts = judge.judge(case, plan(queue, 100_000, 1), level_of(100))
    assert expected in {v.row.quantity for v in verdicts if not v.passes}


def merged(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The document with the changes, section in section; of a list's items, in order."""
    result = dict(document)
    for key, change in changes.items():
        old = result.get(key)
        if isinstance(change, dict) and isinstance(old, dict):
            result[key] = merged(old, change)
        elif isinstance(change, list) and isinstance(old, list):
            result[key] = [merged(item, with_) for item, with_ in zip(old, change, strict=True)]
        else:
            result[key] = change
    return result


@pytest.mark.parametrize("most", [1, 7, 30])
def test_slowest_exponential_of_a_limited_queue(most: int) -> None:
    # M/M/1/K: the rates are lam + mu - 2 sqrt(lam mu) cos(pi k / (K + 1)), k = 1..K (Morse, 1958).
    lam, mu = 0.8, 1.0
    queue = mmck({"c": 1, "K": most, "lam": lam, "mu": mu})
    rate = lam + mu - 2.0 * np.sqrt(lam * mu) * np.cos(np.pi / (most + 1))
    assert relaxation_s(queue) == pytest.approx(1.0 / rate, rel=1e-9)


@pytest.mark.parametrize("case", [case for case in cases() if case.family == "ErlangB"], ids=lambda case: case.name)
def test_sizes_of_loss_systems_are_planned_with_the_exact_probabilities(case: Case) -> None:
    assert stationary(judge.queue_of(case), case.parameters["c"])[-1] == pytest.approx(case.known("P_block"), rel=1e-9)


def test_time_to_fill_is_that_of_the_exact_recursion() -> None:
    # From n to n + 1 takes t_n = (1 + death_n t_(n - 1)) / birth; M/M/1/20 with lam 1.5 has 18 on average.
    t, total = 0.0, 0.0
    for n in range(18):
        t = (1.0 + (1.0 if n else 0.0) * t) / 1.5
        total += t
    assert fill_s(mmck({"c": 1, "K": 20, "lam": 1.5, "mu": 1.0})) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("name", SERVICES)
def test_services_have_the_mean_and_variation_that_they_are_said_to_have(name: str) -> None:
    case = next(case for case in cases() if case.family == "MG1" and case.parameters["service"] == name)
    queue = judge.queue_of(case)
    s = Scenario.from_dict({**queue.document, "run": {"horizon_s": 200_000, "warmup_s": 0, "seeds": 1}})
    tokens = generate(s.traffic, s.run, 1).output_tokens
    known = 5.0 * (queue.squared_cvs[1] / tokens.size) ** 0.5
    assert tokens.mean() / queue.steps == pytest.approx(1.0, abs=known)
    assert tokens.var() / tokens.mean() ** 2 == pytest.approx(
        queue.squared_cvs[1], rel=0.02 + 0.04 * queue.squared_cvs[1]
    )


def test_groups_are_told_apart_by_when_they_begin() -> None:
    seed = np.array([0, 0, 0, 0, 1, 1], np.int32)
    begin_s, end_s = np.array([1.0, 1.0, 2.0, 5.0, 1.0, 2.0]), np.array([2.0, 2.0, 3.0, 6.0, 2.0, 3.0])
    first, is_last = groups(seed, begin_s, end_s)
    assert first.tolist() == [True, False, True, True, True, True]
    assert is_last.tolist() == [False, False, True, True, False, True]


def test_percentiles_are_read_by_their_number() -> None:
    assert quantity("Wq_p99.9") != quantity("W_p99")
    with pytest.raises(KeyError):
        quantity("median")
