"""A result's figures: who counts where, against reference rows and by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from engine.outcome import Result, cost
from engine.scenario import Scenario
from tests.outcome.cases import COUNT, case, result_of
from tests.reference.model import Request, Row, Setup

TTFT = {"name": "first", "metric": "ttft", "threshold_s": 1.5}
TPOT = {"name": "pace", "metric": "tpot", "threshold_s": 0.5}


def unit_steps(**settings: Any) -> Setup:
    """Every step lasts 1 s."""
    return Setup(base=lambda tokens: 1.0, **settings)


def metric_of(name: str, output_tokens: int, row: Row) -> float | None:
    """A completed request's latency in seconds, as the rules define it; None where undefined."""
    assert row.arrival_s is not None
    assert row.scheduled_s is not None
    assert row.first_token_s is not None
    assert row.finish_s is not None
    if name == "tpot":
        return (row.finish_s - row.first_token_s) / (output_tokens - 1) if output_tokens > 1 else None
    return {"ttft": row.first_token_s, "e2e": row.finish_s, "queue": row.scheduled_s}[name] - row.arrival_s


class TestLatencies:
    @pytest.mark.parametrize("number", range(COUNT))
    def test_completed_requests_that_arrived_in_the_window(self, number: int) -> None:
        c = case(number)
        for name in ("ttft", "tpot", "e2e", "queue"):
            seeds: list[list[float]] = [[], [], []]
            for seed, request, row in c.rows():
                if row.state == "completed" and row.arrival_s is not None and row.arrival_s >= c.warmup_s:
                    value = metric_of(name, c.output(request), row)
                    seeds[seed] += [] if value is None else [value]
            found = c.result.latency[name]
            assert found.counts.tolist() == [len(s) for s in seeds]
            pooled = np.array([value for seed in seeds for value in seed])
            if pooled.size:
                assert found.figures["mean"] == pytest.approx(pooled.mean(), rel=1e-9, abs=1e-12)
                assert found.figures["max"] == pytest.approx(pooled.max(), rel=1e-9, abs=1e-12)
                p95 = np.quantile(pooled, 0.95, method="inverted_cdf")
                assert found.figures["p95"] == pytest.approx(p95, rel=1e-9, abs=1e-12)

    def test_the_front_end_is_in_ttft_and_e2e_only(self) -> None:
        setup = unit_steps(max_num_seqs=1, horizon_s=20.0)
        bare = result_of(setup, [[Request(0.0, 1, 3), Request(0.5, 1, 2)]], slo=[TTFT])
        result = dataclasses.replace(bare, model=dataclasses.replace(bare.model, frontend_s=0.75))
        for name, more in {"ttft": 0.75, "e2e": 0.75, "tpot": 0.0, "queue": 0.0, "itl": 0.0}.items():
            assert result.latency[name].figures["max"] == bare.latency[name].figures["max"] + more
        assert bare.attainments[0].good == 1
        assert result.attainments[0].good == 0, "it is scored too"
        assert result.requests.equals(bare.requests), "rows don't contain it"

    def test_max_itl_is_promised_for_complete_answers_only(self) -> None:
        """The second answer has a gap of 1 s at the horizon, but is not complete."""
        setup = unit_steps(horizon_s=3.5)
        result = result_of(setup, [[Request(0.0, 1, 3), Request(0.0, 1, 9)]])
        assert result.max_itl_s.tolist() == [1.0, 1.0]
        np.testing.assert_array_equal(result.metric("max_itl"), [1.0, np.nan])


class TestThroughput:
    @pytest.mark.parametrize("number", range(COUNT))
    def test_what_came_in_the_window(self, number: int) -> None:
        """Requests and tokens at exactly the horizon are after it; without a horizon its instant is included."""
        c = case(number)
        window = sum(max(0.0, outcome.horizon_s - c.warmup_s) for outcome in c.expected)
        if window == 0:
            assert set(c.result.throughput.values()) == {None}
            return
        finished = sum(c.in_window(seed, row.finish_s) for seed, _, row in c.rows())
        tokens = sum(c.in_window(seed, time) for seed, _, row in c.rows() for time in row.token_times)
        found = c.result.throughput
        assert found["requests_per_s"] == pytest.approx(finished / window, rel=1e-9)
        assert found["output_tokens_per_s"] == pytest.approx(tokens / window, rel=1e-9)
        assert found["goodput_per_s"] == found["requests_per_s"], "without promises"

    def test_some_cases_end_a_token_at_exactly_the_horizon(self) -> None:
        cases = [case(number) for number in range(COUNT)]
        last = [t for c in cases for seed, _, row in c.rows() for t in row.token_times if t == c.setup.horizon_s]
        assert len(last) > 5

    def test_edges_by_hand(self) -> None:
        """Tokens at 1, 2, ..., 6: of the window [2, 6) four, and none of the two completions at 1 and 6."""
        requests = [Request(0.0, 1, 1), Request(0.0, 1, 6)]
        found = result_of(unit_steps(horizon_s=6.0), [requests], warmup_s=2.0).throughput
        assert found == {"requests_per_s": 0.0, "output_tokens_per_s": 1.0, "goodput_per_s": 0.0}
        open_end = result_of(unit_steps(), [requests], warmup_s=2.0).throughput
        assert open_end == {"requests_per_s": 0.25, "output_tokens_per_s": 1.25, "goodput_per_s": 0.25}

    def test_goodput_meets_every_promise(self) -> None:
        """One seat: first tokens after 1, 3 and 7 s, the last of 1 token has no pace; 8 s in all."""
        requests = [Request(0.0, 1, 2), Request(0.0, 1, 4), Request(0.0, 1, 2), Request(6.75, 1, 1)]
        setup = unit_steps(max_num_seqs=1, horizon_s=10.0)

        def goodput(*slo: dict[str, Any]) -> float | None:
            return result_of(setup, [requests], slo=list(slo)).throughput["goodput_per_s"]

        assert goodput() == 0.4
        assert goodput(TTFT | {"threshold_s": 3.0}) == 0.3
        assert goodput(TTFT | {"threshold_s": 2.999}) == 0.2
        assert goodput(TPOT) == 0.1, "who has no pace broke no promise about it"
        assert goodput(TTFT | {"threshold_s": 2.0}, TPOT) == 0.0


class TestWhoCounts:
    @pytest.mark.parametrize("number", range(0, COUNT, 2))
    def test_states_of_arrivals_in_the_window(self, number: int) -> None:
        c = case(number)
        counted = [row for _, _, row in c.rows() if row.arrival_s is not None and row.arrival_s >= c.warmup_s]
        summary: Any = c.result.summary()
        want = {s: sum(r.state == s for r in counted) for s in ("completed", "rejected", "timed_out", "unfinished")}
        want |= {"offered": len(counted), "first_attempts": len(counted), "retries": 0}
        assert summary["requests"] == want
        names = ("too_long", "queue_full", "rate_limited")
        reasons = {name: sum(row.reason == name for row in counted) for name in names}
        found = summary["rejected_by_reason"]
        assert {name: found[name] for name in reasons} == reasons
        assert sum(found.values()) == want["rejected"]
        assert summary["preemptions"] == sum(row.preemptions for row in counted)
        assert summary["run"]["simulated_requests"] == len(list(c.rows()))


class TestWasted:
    REQUESTS = (Request(0.0, 4, 9), Request(0.0, 1, 2))

    def test_by_hand(self) -> None:
        """The first is dropped at 4 s, after 4 tokens read and 3 more written; it was 4 of 5, 1 of 2, then all of a
        step's tokens."""
        result = result_of(unit_steps(timeout_s=3.5, horizon_s=9.0), [self.REQUESTS])
        assert result.requests["state"].tolist() == ["timed_out", "completed"]
        assert result.wasted == pytest.approx({"tokens": 7, "busy_s": 0.8 + 0.5 + 2.0})
        later = result_of(unit_steps(timeout_s=3.5, horizon_s=9.0), [self.REQUESTS], warmup_s=1.0)
        assert later.wasted == {"tokens": 0, "busy_s": 0.0}, "it came before the window"

    def test_a_server_that_does_not_notice_goes_on(self) -> None:
        """4 tokens read and 8 more written, the last four steps after the client gave up."""
        result = result_of(unit_steps(timeout_s=3.5, horizon_s=20.0, on_timeout="ignore"), [self.REQUESTS])
        assert result.requests["left_s"].tolist() == [9.0, 2.0]
        assert result.wasted == pytest.approx({"tokens": 12, "busy_s": 0.8 + 0.5 + 7.0})

    def test_work_is_shared_out_over_requests(self) -> None:
        """What all attempts together cost is what all steps worked on but those that the horizon cuts."""
        seen = 0
        for number in range(2, COUNT, 3):
            c = case(number)
            a, steps = c.result.run.attempts, list(c.steps())
            late = [c.setup.timeout_s, c.setup.ttft_timeout_s, c.setup.queue_timeout_s] != [None, None, None]
            if late:
                whole = [step for seed, step in steps if step.end <= c.expected[seed].horizon_s]
                assert a.spent_tokens.sum() == sum(step.T for step in whole), number
                assert a.spent_s.sum() == pytest.approx(sum(step.end - step.start for step in whole)), number
                seen += 1
        assert seen > 2


class TestCost:
    @staticmethod
    def fleet(price: float | None, replicas: int, accelerator: str = "H100-SXM-80GB") -> Scenario:
        return Scenario.from_dict(
            {
                "hardware": {"accelerator": accelerator, "price_per_gpu_hour": price},
                "fleet": {"replicas": replicas},
                "performance": {"kind": "linear", "overhead_s": 1.0},
            }
        )

    def test_by_hand(self) -> None:
        """3 replicas of 4 chips at 2.5 USD: 30 USD an hour; at 2,000 tokens/s 7.2 million an hour."""
        model = dataclasses.replace(result_of(unit_steps(horizon_s=1.0), [[]]).model, accelerators=4)
        found = cost(self.fleet(2.5, 3), model, tokens_per_s=2000.0, offered_rps=4.5, capacity_rps=2.0, paid=3, ready=3)
        assert found.per_hour == 30.0
        assert found.per_million_output_tokens == pytest.approx(30.0 / 7.2)
        assert found.spare_share == 0.25

    def test_nothing_to_divide_by(self) -> None:
        model = result_of(unit_steps(horizon_s=1.0), [[]]).model
        unknown = cost(self.fleet(None, 1, "P40-24GB"), model, 10.0, 1.0, None, 1.0, 1.0)
        assert (unknown.per_hour, unknown.per_million_output_tokens, unknown.spare_share) == (None, None, None)
        silent = cost(self.fleet(2.0, 1), model, 0.0, 0.0, 3.0, 1.0, 1.0)
        assert (silent.per_hour, silent.per_million_output_tokens, silent.spare_share) == (2.0, None, 1.0)
        free = cost(self.fleet(0.0, 1), model, 10.0, 9.0, 3.0, 1.0, 1.0)
        assert (free.per_hour, free.per_million_output_tokens, free.spare_share) == (0.0, 0.0, 0.0)

    def test_of_a_result(self) -> None:
        """2 chips at 3.6 USD; 4 tokens in 8 s are 0.5 tokens/s; 2 arrivals in 8 s against 2 * 0.25."""
        setup = unit_steps(horizon_s=8.0, replicas=2)
        hardware = {"accelerator": "H100-SXM-80GB", "price_per_gpu_hour": 3.6}
        bare = result_of(setup, [[Request(0.0, 1, 2), Request(3.0, 1, 2)]], hardware=hardware)
        result: Result = dataclasses.replace(bare, capacity_rps=0.25)
        assert result.cost.per_hour == 7.2
        assert result.cost.per_million_output_tokens == pytest.approx(7.2 / 3600 / 0.5 * 1e6)
        assert result.cost.spare_share == 0.5
