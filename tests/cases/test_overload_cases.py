"""Operators' cases about routers and about saying no. `docs/cases.md` has all figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Result, simulate

from .build import CLOSE, first_words, lengths, lognormal, reported, scenario, trace


def two_engines(ties: str, traffic: dict[str, Any], own_sends: bool = False) -> dict[str, Any]:
    """Sections for two replicas behind a router that reads their load every 100 ms."""
    interval = reported(16)["report_interval_s"]
    routing = {
        "policy": "least_outstanding", "report_interval_s": interval, "count_own_sends": own_sends, "ties": ties,
    }  # fmt: skip
    return {
        "traffic": traffic,
        "performance": {"kind": "linear", "overhead_s": 0.02},
        "fleet": {"replicas": 2, "routing": routing},
    }


def share_of_first(result: Result) -> float:
    return float((result.requests.replica == 0).mean())


def test_16_ties_that_always_go_to_the_first() -> None:
    """Case 16: two equal engines, even load, and 6 of 10 requests at the first. One request of 1 s a second."""
    traffic = {"rate_rps": 1.0, "classes": [lengths(500, 50)]}

    def run(ties: str, own_sends: bool = False) -> float:
        s = scenario(**two_engines(ties, traffic, own_sends), run={"horizon_s": 400.0})
        return share_of_first(simulate(s))

    uneven = run("lowest")
    assert uneven == pytest.approx(reported(16)["share_of_first"], rel=CLOSE)
    assert uneven > 0.58, "more than chance"
    assert run("rotate") == pytest.approx(0.5, abs=0.02)
    assert run("lowest", own_sends=True) > 0.57, "an idle pair is a tie, however fresh the reports"


def test_16_ten_requests_in_a_row() -> None:
    """Case 16, its very count: ten requests 70 ms apart."""
    ten = trace((0.05 + 0.07 * i, 500, 500) for i in range(10))
    found = {
        ties: share_of_first(
            simulate(scenario(**two_engines(ties, {"process": "trace"}), run={"horizon_s": 30.0}), ten)
        )
        for ties in ("lowest", "rotate")
    }
    assert found == {"lowest": reported(16)["share_of_first"], "rotate": 0.5}


def test_35_everything_is_accepted() -> None:
    """Case 35: 1.2 times what can be served for ten minutes. Prompts of 2,000 tokens at 10,000 tokens a second, so 6 a
    second; the cap is the promised 2 s times 10,000 tokens."""
    speed, promised_s = 10_000, 2.0

    def run(**admission: Any) -> Result:
        s = scenario(
            traffic={"rate_rps": reported(35)["load"] * speed / 2000, "classes": [lengths(lognormal(2000, 0.5), 1)]},
            performance={"kind": "linear", "token_s": 1 / speed},
            batching={"max_num_seqs": 256, "max_num_batched_tokens": 2000},
            admission=admission,
            run={"horizon_s": float(reported(35)["overload_s"]), "warmup_s": 60.0},
        )
        return simulate(s)

    def growth(result: Result) -> float:
        """Seconds of TTFT gained each second, by arrival."""
        done = result.requests[result.requests.state == "completed"]
        return float(np.polyfit(done.arrival_s, done.first_token_s - done.arrival_s, 1)[0])

    every, capped, shed = run(), run(max_queued_tokens=int(promised_s * speed)), run(shed={"ttft_s": promised_s})
    assert growth(every) == pytest.approx(reported(35)["ttft_growth"], rel=CLOSE)
    assert first_words(every).max() > 60
    for result in (capped, shed):
        assert abs(growth(result)) < 0.001
        assert first_words(result).max() < 2 * promised_s
        assert 0.08 < (result.requests.state == "rejected").mean() < 0.2, "a sixth of the requests is too many"
        assert result.throughput["requests_per_s"] > 0.97 * every.throughput["requests_per_s"], "nothing is lost by it"
