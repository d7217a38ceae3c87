"""One promise at the replica, at the router and with the caller: by hand, against the rows, and in order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine import Result, Scenario, simulate
from engine.outcome import bins_of, score
from engine.outcome.course import latencies
from engine.outcome.places import asked_s, before_s, first_rows, last_rows
from engine.outcome.story import story
from engine.scenario import Objective
from engine.serving import STATES

NAN = float("nan")
RTT = 0.25
CLIENT = {"measured_at": "client", "threshold_s": 2.0}

Attempt = tuple[str, float, float]
"""State, arrival, metric of the attempt alone, seconds."""


def attempts_of(*requests: list[Attempt]) -> Any:
    """Attempts of requests of one seed whose clock stopped at 100 s, and their metric."""
    rows = [row for request in requests for row in request]
    return SimpleNamespace(
        state=np.array([STATES.index(row[0]) for row in rows], np.int8),
        arrival_s=np.array([row[1] for row in rows]),
        output_tokens=np.full(len(rows), 9, np.int32),
        first_token_s=np.full(len(rows), NAN),
        seed_start=np.array([0, len(rows)]),
        attempt=np.array([n for request in requests for n in range(len(request))], np.int64),
        metric=np.array([row[2] for row in rows]),
    )


def judged(promise: Objective, *requests: list[Attempt]) -> list[str]:
    """What each attempt amounts to: good, bad or out."""
    a = attempts_of(*requests)
    found = score(promise, a, a.metric + before_s(promise, a, RTT), np.array([100.0]))
    return ["good" if good else "bad" if valid else "out" for valid, good in zip(found.valid, found.good, strict=True)]


class TestByHand:
    def test_rows(self) -> None:
        a = attempts_of([("rejected", 0.0, NAN), ("completed", 1.0, 1.0)], [("completed", 0.5, 1.0)])
        assert first_rows(a).tolist() == [0, 2]
        assert last_rows(a).tolist() == [1, 2]
        assert asked_s(Objective(**CLIENT), a).tolist() == [0.0, 0.0, 0.5]
        assert asked_s(Objective(), a).tolist() == [0.0, 1.0, 0.5]
        none = attempts_of()
        assert first_rows(none).tolist() == last_rows(none).tolist() == []

    @pytest.mark.parametrize("metric", ["ttft", "e2e", "queue"])
    def test_from_the_first_attempt_to_the_last_result_and_the_network(self, metric: str) -> None:
        promise = Objective(**CLIENT, metric=metric)
        assert judged(promise, [("completed", 0.0, 1.75)], [("completed", 5.0, 1.76)]) == ["good", "bad"]
        in_time = [("rejected", 0.0, NAN), ("completed", 1.0, 0.75)]
        late = [("rejected", 0.0, NAN), ("completed", 1.0, 0.76)]
        assert judged(promise, in_time, late) == ["good", "out", "bad", "out"]

    def test_gaps_between_words_know_neither_network_nor_retries(self) -> None:
        for metric in ("tpot", "max_itl"):
            slow = [("timed_out", 0.0, NAN), ("completed", 50.0, 2.0)]
            assert judged(Objective(**CLIENT, metric=metric), slow) == ["good", "out"]

    def test_the_last_attempt_decides(self) -> None:
        gave_up = [("completed", 0.0, 0.5), ("rejected", 1.0, NAN)]
        assert judged(Objective(**CLIENT), gave_up) == ["bad", "out"]
        assert judged(Objective(**CLIENT, failures=["timed_out"]), gave_up) == ["out", "out"]
        refused_then_late = [("rejected", 0.0, NAN), ("timed_out", 1.0, 0.1)]
        assert judged(Objective(**CLIENT, failures=["timed_out"]), refused_then_late) == ["bad", "out"]

    def test_age_counts_from_the_first_attempt(self) -> None:
        old = [("rejected", 98.0, NAN), ("unfinished", 99.5, NAN)]
        young = [("rejected", 98.5, NAN), ("unfinished", 99.5, NAN)]
        begun = [("rejected", 99.0, NAN), ("unfinished", 99.25, 0.5)]
        assert judged(Objective(**CLIENT), old, young, begun) == ["bad", "out", "out", "out", "good", "out"]

    def test_retries_can_make_the_client_see_less_trouble_than_the_gateway(self) -> None:
        """Two refusals that were made good a moment later: 1 of 3 at the gateway, everybody at the client."""
        request = [("rejected", 0.0, NAN), ("rejected", 0.1, NAN), ("completed", 0.3, 1.0)]
        assert judged(Objective(threshold_s=2.0), request) == ["bad", "bad", "good"]
        assert judged(Objective(threshold_s=2.0, measured_at="server"), request) == ["out", "out", "good"]
        assert judged(Objective(**CLIENT), request) == ["good", "out", "out"]


SERVICE = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 1.8,
            "client": {"ttft_timeout_s": 6.0, "max_retries": 1, "backoff_s": 30.0, "network_rtt_s": RTT},
            "classes": [
                {
                    "prompt_tokens": {"dist": "constant", "value": 1},
                    "output_tokens": {"dist": "geometric", "mean": 8},
                }
            ],
        },
        "performance": {"kind": "linear", "overhead_s": 0.125},
        "batching": {"max_num_seqs": 1},
        "fleet": {"replicas": 2},
        "admission": {"max_outstanding": 4},
        "slo": [{"metric": "ttft", "threshold_s": 3.0, "target": 0.5}],
        "run": {"horizon_s": 200.0, "warmup_s": 20.0, "seeds": 2},
    }
)
"""About as much as can be served; some are refused, some give up, most of those try again much later."""
PLAIN = SERVICE.replace({"traffic.client.max_retries": 0})


def at(result: Result, place: str, **terms: Any) -> Objective:
    """The first promise, measured elsewhere or otherwise."""
    return Objective(**{**result.scenario.slo[0].model_dump(), **terms, "measured_at": place})


def by_rows(result: Result, promise: Objective) -> tuple[int, int]:
    """(good, valid) at the client, request by request from the table of attempts."""
    good = valid = 0
    rtt = result.scenario.traffic.client.network_rtt_s
    ends = dict(zip(sorted(result.requests.seed.unique()), result.run.horizon_s, strict=True))
    column = {"ttft": "first_token_s", "e2e": "finish_s", "queue": "scheduled_s"}[promise.metric]
    for (seed, _), rows in result.requests.groupby(["seed", "request"]):
        asked, last = rows.arrival_s.iloc[0], rows.iloc[-1]
        if asked < result.warmup_s:
            continue
        took = last[column] - asked + rtt
        if last.state in ("completed", "unfinished") and not pd.isna(took):
            valid += 1
            good += took <= promise.threshold_s
        elif last.state in promise.failures:
            valid += last.state != "unfinished" or ends[seed] - asked >= promise.threshold_s
    return good, valid


@pytest.fixture(scope="module", params=[SERVICE, PLAIN], ids=["retries", "no retries"])
def result(request: pytest.FixtureRequest) -> Result:
    return simulate(request.param)


@pytest.mark.parametrize("metric", ["ttft", "e2e", "queue"])
@pytest.mark.parametrize("failures", [("rejected", "timed_out", "unfinished"), ("timed_out",), ()])
def test_the_client_counts_what_the_rows_say(result: Result, metric: str, failures: tuple[str, ...]) -> None:
    promise = at(result, "client", metric=metric, failures=failures)
    scored = result.scored(promise)
    assert ((scored.good & result.counted).sum(), (scored.valid & result.counted).sum()) == by_rows(result, promise)


def test_three_places_give_three_numbers_in_order() -> None:
    """Also in the summary, which is all that most people see."""
    places = ("server", "gateway", "client")
    base = SERVICE.slo[0].model_dump()
    slo = [{**base, "name": place, "measured_at": place} for place in places]
    for s in (SERVICE, PLAIN):
        summary: Any = simulate(s.replace({"slo": slo})).summary()
        kept = [entry["attainment"] for entry in summary["slo"]]
        assert kept[0] > kept[1] > kept[2], kept
        assert [entry["name"] for entry in summary["slo"]] == list(places)


def test_without_retries_or_network_the_client_sees_what_the_gateway_sees() -> None:
    found = simulate(PLAIN.replace({"traffic.client.network_rtt_s": 0.0}))
    client, gateway = (found.scored(at(found, place)) for place in ("client", "gateway"))
    assert (client.valid == gateway.valid).all()
    assert (client.good == gateway.good).all()


def test_goodput_and_percentiles_are_those_of_the_client() -> None:
    here, there = (simulate(SERVICE.replace({"slo.0.measured_at": place})) for place in ("gateway", "client"))
    rows = there.requests
    asked = rows.groupby(["seed", "request"]).arrival_s.transform("first")
    took = rows.first_token_s - asked + RTT
    done = rows.state == "completed"
    kept = done & (took <= 3.0)
    np.testing.assert_array_equal(there.kept, kept)
    assert there.throughput["goodput_per_s"] < here.throughput["goodput_per_s"]  # type: ignore[operator]
    told = story(there)
    assert told.tail.p95 == pytest.approx(np.quantile(took[there.observed], 0.95, method="inverted_cdf"))
    in_time = rows.state.isin(["completed", "unfinished"]) & (took <= 3.0)
    assert told.overload.fates.in_time == (in_time & (asked >= there.warmup_s)).sum()


def test_the_course_of_latencies_is_by_when_people_asked() -> None:
    found = simulate(SERVICE.replace({"slo.0.measured_at": "client"}))
    rows = found.requests
    asked = rows.groupby(["seed", "request"]).arrival_s.transform("first")
    done, took = rows.state == "completed", rows.first_token_s - asked + RTT
    bins = bins_of(200.0)
    course = latencies(found, bins, found.scenario.slo[0])
    slot = (asked // bins.width_s).astype(int)
    figures = took[done].groupby(slot[done]).agg(lambda part: np.quantile(part, 0.95, method="inverted_cdf"))
    np.testing.assert_allclose(course.figures["p95"][figures.index], figures)


def test_users_who_wait_for_their_answers_are_clients_too() -> None:
    changes = {"traffic.process": "closed", "traffic.closed.users": 6, "traffic.rate_rps": 4.0}
    s = PLAIN.replace({**changes, "slo.0.measured_at": "client"})
    found = simulate(s)
    scored = found.scored(found.scenario.slo[0])
    assert ((scored.good & found.counted).sum(), (scored.valid & found.counted).sum()) == by_rows(
        found, found.scenario.slo[0]
    )


def test_refusals_made_good_by_a_retry_are_no_verdict() -> None:
    """At the client only requests whose last attempt was refused count as turned away."""
    patient = SERVICE.replace(
        {"traffic.client.max_retries": 20, "traffic.client.backoff_s": 1.0, "slo.0.target": 0.99,
         "slo.0.measured_at": "client"}
    )  # fmt: skip
    told = story(simulate(patient))
    assert told.verdict != "turned_away"
    assert story(simulate(patient.replace({"slo.0.measured_at": "gateway"}))).verdict == "turned_away"
