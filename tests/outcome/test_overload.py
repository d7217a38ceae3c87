"""The facts about refusing and retrying, on runs that can be worked out by hand.

One replica, one request at a time, one second each: whoever finds k requests before him waits k seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Result, simulate
from engine.outcome.course import bins_of
from engine.outcome.overload import Overload, overload
from tests import one_a_second

HORIZON_S = 100.0


def ran(arrivals: list[float], **changes: Any) -> Result:
    return one_a_second.run(arrivals, **{"run__horizon_s": HORIZON_S} | changes)


def told(arrivals: list[float], **changes: Any) -> Overload:
    return overload(ran(arrivals, **changes), bins_of(HORIZON_S))


def fates(o: Overload) -> dict[str, int]:
    f = o.fates
    return {"in_time": f.in_time, "late": f.late, "refused": f.refused, "gave_up": f.gave_up, "waiting": f.waiting}


def test_nobody_comes() -> None:
    o = told([99.0], run__warmup_s=99.5)
    assert o.kind == "idle"
    assert o.fates.total == 0
    assert o.fates.shares == {}
    assert (o.fates.of_let_in, o.attempts, o.end.share) == (None, None, None)


def test_ten_at_once() -> None:
    o = told([10.0] * 10)
    assert fates(o) == {"in_time": 2, "late": 8, "refused": 0, "gave_up": 0, "waiting": 0}
    assert o.kind == "late"
    assert o.goodput_rps == 2 / HORIZON_S
    assert (o.spent.in_time, o.spent.late, o.spent.for_nothing) == (2, 8, 0), "a token each, read"
    assert o.attempts == 1.0


def test_refusing_all_but_two_saves_them() -> None:
    o = told([10.0] * 10, admission__max_outstanding=2)
    assert fates(o) == {"in_time": 2, "late": 0, "refused": 8, "gave_up": 0, "waiting": 0}
    assert o.kind == "saved"
    assert o.fates.of_let_in == 1.0
    assert o.spent.in_time == o.spent.total == 2


def test_who_is_refused() -> None:
    assert told([10.0] * 10, admission__max_outstanding=2).refused_length == 1.0
    assert told([10.0] * 10).refused_length is None
    trace = one_a_second.trace_of((10, 1, 1), (10, 30, 1), (20, 2, 1), (20, 30, 1))
    scenario = ran([1.0], batching__kv_capacity_tokens=20).scenario
    o = overload(simulate(scenario, trace), bins_of(HORIZON_S))
    assert o.refused_length == 20.0, "30 tokens against 1 and 2"


def test_refusing_everybody() -> None:
    o = told([10.0, 20.0], admission__max_outstanding=0)
    assert o.kind == "refused"
    assert o.spent.total == 0
    assert o.fates.of_let_in is None


def test_callers_who_leave_unnoticed_waste_the_work() -> None:
    o = told([10.0] * 10, traffic__client__ttft_timeout_s=4.5, traffic__client__on_timeout="ignore")
    assert fates(o) == {"in_time": 2, "late": 2, "refused": 0, "gave_up": 6, "waiting": 0}
    assert (o.spent.in_time, o.spent.late, o.spent.for_nothing) == (2, 2, 6)


@pytest.mark.parametrize(
    ("arrival_s", "threshold_s", "metric", "fate"),
    [
        (99.5, 2.5, "ttft", "waiting"),  # too young
        (98.9, 2.5, "ttft", "in_time"),  # done at 99.9
        (99.5, 0.2, "ttft", "late"),  # older than promised already
        (99.5, 0.2, "tpot", "waiting"),
    ],
)
def test_who_is_in_the_system_at_the_end(arrival_s: float, threshold_s: float, metric: str, fate: str) -> None:
    o = told([arrival_s], slo=[{"metric": metric, "threshold_s": threshold_s}])
    assert fates(o)[fate] == o.fates.total == 1


def test_without_a_promise_an_answer_is_enough() -> None:
    o = told([10.0] * 10 + [99.5], slo=[])
    assert fates(o) == {"in_time": 10, "late": 0, "refused": 0, "gave_up": 0, "waiting": 1}
    assert o.kind == "fine"


RETRIED = {"traffic__client__max_retries": 3, "traffic__client__backoff_s": 4.0, "admission__max_outstanding": 1}


def test_a_request_counts_once_whichever_attempt_decides_it() -> None:
    result = ran([10.0] * 10, **RETRIED)
    o = overload(result, bins_of(HORIZON_S))
    rows = result.requests
    served = set(rows[rows.state == "completed"].request)
    assert o.fates.total == 10
    assert o.fates.in_time == len(served), "an attempt that is let in waits for nobody"
    assert o.fates.refused == 10 - len(served)
    assert o.attempts == len(rows) / 10
    assert o.attempts > 1.5


def test_load_over_time_adds_up_to_the_attempts() -> None:
    result = ran([10.0] * 10 + [50.0], **RETRIED)
    load = overload(result, bins_of(HORIZON_S)).load
    assert np.nansum(load.first_rps) * load.bins.width_s == pytest.approx(11)
    total = np.nansum(load.first_rps + load.retries_rps) * load.bins.width_s
    assert total == pytest.approx(len(result.requests))
    assert np.nansum(load.in_time_rps) * load.bins.width_s == pytest.approx(result.kept.sum())
    at = int(50 / load.bins.width_s)
    assert load.amplification[at] == 1.0
    assert np.isnan(load.amplification[-1])


def test_the_end_is_the_last_quarter() -> None:
    o = told([float(t) for t in range(0, 100, 2)])
    assert o.end.from_s == 75.0
    assert o.end.first_rps == o.end.offered_rps == 12 / 25  # 76, 78, ... 98
    assert o.end.in_time_rps == 13 / 25  # the one of 74 is done at 75
    assert o.end.share == 1.0
    assert o.kind == "fine"


def test_a_rush_is_over_when_first_attempts_are_below_capacity_again() -> None:
    calm = [float(t) for t in range(0, 100, 4)]
    rushed = told(calm + [20.0 + i / 4 for i in range(40)])
    assert rushed.rush_over_s == pytest.approx(30.0, abs=1.0)
    assert told([float(t) / 2 for t in range(200)]).rush_over_s is None, "it isn't over"


def test_a_storm_is_what_retries_keep_going() -> None:
    storm = {
        "traffic__client__ttft_timeout_s": 3.0,
        "traffic__client__on_timeout": "ignore",
        "traffic__client__max_retries": 3,
        "traffic__client__backoff_s": 1.0,
    }
    calm = [2.0 * i for i in range(50)]
    rush = [10.0 + i / 8 for i in range(80)]
    assert told(calm, **storm).kind == "fine"
    o = told(calm + rush, **storm)
    assert o.kind == "storm"
    assert o.end.first_rps < (o.fleet_rps or 0.0) < o.end.offered_rps
    assert o.end.in_time_rps < 0.5 * o.end.first_rps
    assert told(calm + rush, **storm | {"traffic__client__on_timeout": "abort"}).kind != "storm"
