"""Promises: who counts and who is good, case by case as the rules say, worked by hand."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine.outcome import attain, score
from engine.scenario import Objective
from engine.serving import STATES
from tests.outcome.cases import COUNT, case

NAN = float("nan")
HORIZON = 100.0
ALL = ("rejected", "timed_out", "unfinished")
SUBSETS = [chosen for size in range(4) for chosen in combinations(ALL, size)]


def judged(objective: Objective, *rows: tuple[str, float, float, int], first_token_s: float = NAN) -> list[str]:
    """What (state, arrival, metric, output tokens) of attempts in one seed amount to: good, bad or out."""
    attempts: Any = SimpleNamespace(
        state=np.array([STATES.index(row[0]) for row in rows], np.int8),
        arrival_s=np.array([row[1] for row in rows]),
        output_tokens=np.array([row[3] for row in rows], np.int32),
        first_token_s=np.full(len(rows), first_token_s),
        seed_start=np.array([0, len(rows)]),
    )
    found = score(objective, attempts, np.array([row[2] for row in rows]), np.array([HORIZON]))
    assert not (found.good & ~found.valid).any()
    return ["good" if good else "bad" if valid else "out" for valid, good in zip(found.valid, found.good, strict=True)]


def objective(**settings: Any) -> Objective:
    """A promise of 2 s for TTFT at the gateway, unless told otherwise."""
    return Objective(**{"threshold_s": 2.0, **settings})


class TestScore:
    @pytest.mark.parametrize("failures", SUBSETS)
    @pytest.mark.parametrize("measured_at", ["gateway", "server"])
    @pytest.mark.parametrize("metric", ["ttft", "tpot", "max_itl", "e2e", "queue"])
    def test_every_state(self, failures: tuple[str, ...], measured_at: str, metric: str) -> None:
        """The table of states, with the metric known or not, young or old."""
        rows = {
            ("completed", 0.0, 1.0, 9): "good",
            ("completed", 0.0, 2.0, 9): "good",
            ("completed", 0.0, 2.0000001, 9): "bad",
            ("completed", 99.0, 3.0, 9): "bad",
            ("unfinished", 0.0, 1.0, 9): "good",
            ("unfinished", 0.0, 3.0, 9): "bad",
            ("unfinished", 99.5, 0.25, 9): "good",
            ("unfinished", 98.5, NAN, 9): "out",
            ("unfinished", 98.0, NAN, 9): "bad" if "unfinished" in failures else "out",
            ("unfinished", 10.0, NAN, 9): "bad" if "unfinished" in failures else "out",
            ("timed_out", 10.0, NAN, 9): "bad" if "timed_out" in failures else "out",
            ("timed_out", 99.9, NAN, 9): "bad" if "timed_out" in failures else "out",
            ("timed_out", 10.0, 1.0, 9): "bad" if "timed_out" in failures else "out",
            ("rejected", 10.0, NAN, 9): "bad" if "rejected" in failures and measured_at == "gateway" else "out",
            ("rejected", 99.9, NAN, 9): "bad" if "rejected" in failures and measured_at == "gateway" else "out",
        }
        promise = objective(failures=failures, measured_at=measured_at, metric=metric)
        assert judged(promise, *rows) == list(rows.values())

    @pytest.mark.parametrize("metric", ["tpot", "max_itl"])
    @pytest.mark.parametrize("state", STATES)
    def test_an_answer_of_one_token_has_no_gaps(self, metric: str, state: str) -> None:
        assert judged(objective(metric=metric), (state, 0.0, NAN, 1)) == ["out"]
        assert judged(objective(metric=metric), ("rejected", 0.0, NAN, 2)) == ["bad"]

    @pytest.mark.parametrize("metric", ["tpot", "max_itl"])
    def test_gaps_of_an_answer_under_way_are_not_known_however_old_it_is(self, metric: str) -> None:
        row = ("unfinished", 10.0, NAN, 9)
        assert judged(objective(metric=metric), row, first_token_s=12.0) == ["out"]
        assert judged(objective(metric=metric), row) == ["bad"], "it has waited for its first token all the time"
        assert judged(objective(metric="e2e"), row, first_token_s=12.0) == ["bad"]

    @pytest.mark.parametrize("metric", ["ttft", "e2e", "queue"])
    def test_but_all_other_metrics(self, metric: str) -> None:
        rows = [("completed", 0.0, 1.0, 1), ("rejected", 0.0, NAN, 1), ("unfinished", 0.0, NAN, 1)]
        assert judged(objective(metric=metric), *rows) == ["good", "bad", "bad"]

    def test_age_is_counted_to_the_end_of_the_seed(self) -> None:
        attempts: Any = SimpleNamespace(
            state=np.full(2, STATES.index("unfinished"), np.int8),
            arrival_s=np.array([9.0, 9.0]),
            output_tokens=np.array([5, 5], np.int32),
            seed_start=np.array([0, 1, 2]),
        )
        found = score(objective(), attempts, np.array([NAN, NAN]), np.array([10.0, 11.0]))
        assert found.valid.tolist() == [False, True]


class TestAttainment:
    @staticmethod
    def of(good: list[int], valid: list[int], target: float = 0.9) -> Any:
        """Seeds with so many good of so many valid attempts, and one more each that doesn't count."""
        flags = [([True] * g + [False] * (v - g), [True] * v) for g, v in zip(good, valid, strict=True)]
        scored: Any = SimpleNamespace(
            good=np.concatenate([[*g, True] for g, _ in flags]), valid=np.concatenate([[*v, True] for _, v in flags])
        )
        counted = np.concatenate([[*([True] * v), False] for v in valid])
        start = np.concatenate([[0], np.cumsum([v + 1 for v in valid])])
        return attain(objective(name="it", target=target), scored, counted, start)

    def test_pooled_by_hand(self) -> None:
        """26 of 30 are good although the mean of the seeds' shares is 0.85."""
        found = self.of([8, 18], [10, 20])
        assert found.as_summary()["attainment"] == 26 / 30
        assert (found.good, found.valid, found.met) == (26, 30, False)
        assert found.per_seed.tolist() == [0.8, 0.9]
        assert found.budget_burned == pytest.approx((4 / 30) / 0.1)
        half = stats.t.ppf(0.975, 1) * 0.05
        assert found.ci95 == pytest.approx([max(0.0, 26 / 30 - half), 1.0])

    def test_met_at_exactly_the_target(self) -> None:
        found = self.of([9], [10])
        assert (found.attainment, found.met, found.ci95) == (0.9, True, None)
        assert found.budget_burned == pytest.approx(1.0)

    def test_seeds_that_agree_leave_no_doubt(self) -> None:
        found = self.of([9, 9], [10, 10])
        assert found.ci95 == pytest.approx([0.9, 0.9])

    def test_interval_stays_a_share(self) -> None:
        assert self.of([0, 10], [10, 10]).ci95 == [0.0, 1.0]

    def test_nothing_valid(self) -> None:
        found = self.of([0, 0], [0, 0])
        assert found.as_summary() == {
            "name": "it", "attainment": None, "ci95": None, "budget_burned": None, "met": None,
        }  # fmt: skip
        assert np.isnan(found.per_seed).all()

    def test_a_seed_without_valid_ones_has_no_say_in_the_interval(self) -> None:
        found = self.of([8, 0, 18], [10, 0, 20])
        assert found.ci95 == self.of([8, 18], [10, 20]).ci95

    def test_target_one_has_no_budget(self) -> None:
        found = self.of([9], [10], target=1.0)
        assert (found.budget_burned, found.met) == (None, False)
        assert self.of([10], [10], target=1.0).met is True


@pytest.mark.parametrize("number", range(0, COUNT, 2))
def test_reference_rows(number: int) -> None:
    """Attainment over random cases, each row judged by the rules in plain words."""
    c = case(number)
    good = valid = 0
    threshold = 1.5
    for seed, _, row in c.rows():
        assert row.arrival_s is not None
        if row.arrival_s < c.warmup_s:
            continue
        known = row.first_token_s is not None
        if row.state in ("rejected", "timed_out"):
            valid += 1
        elif known:
            valid += 1
            good += row.first_token_s - row.arrival_s <= threshold  # type: ignore[operator]
        else:
            assert row.state == "unfinished"
            valid += c.expected[seed].horizon_s - row.arrival_s >= threshold
    promise = objective(threshold_s=threshold)
    a = c.result.run.attempts
    found = attain(promise, c.result.scored(promise), c.result.counted, a.seed_start)
    assert (found.good, found.valid) == (good, valid)
