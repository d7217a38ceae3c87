"""Answers: a first one, the whole one, kept by scenario."""

from __future__ import annotations

import threading
import time

import pytest

from engine.scenario import Scenario, ScenarioError
from engine.traffic import read_trace
from ui import runs, work
from ui.jobs import Job
from ui.runs import Answer, Runs

SMALL = Scenario.from_dict({"traffic": {"rate_rps": 1.0}, "run": {"seeds": 2, "horizon_s": 200.0}})
LONG = Scenario.from_dict({"traffic": {"rate_rps": 4.0}, "fleet": {"replicas": 1}, "run": {"seeds": 2}})


def test_a_small_run_is_whole_at_once() -> None:
    answer = Runs().first(SMALL)
    assert answer is not None
    assert answer.final
    assert answer.story.summary["run"]["horizon_s"] == 200.0


def test_a_long_run_starts_with_its_beginning() -> None:
    store = Runs()
    answer = store.first(LONG)
    assert answer is not None
    assert not answer.final
    ran = answer.story.summary["run"]
    assert ran["simulated_requests"] <= 2 * work.REQUESTS_PER_LANE * 1.01
    assert ran["horizon_s"] < 100.0
    assert ran["warmup_s"] < ran["horizon_s"] / 3
    assert answer.story.arrivals.bins.start_s.size == 90  # the axis of the whole run

    found = store.whole(LONG)
    end = time.monotonic() + 60.0
    while isinstance(found, Job) and time.monotonic() < end:
        assert found.error is None
        time.sleep(0.05)
        found = store.whole(LONG)
    assert isinstance(found, Answer)
    assert found.final
    assert found.story.summary["run"]["horizon_s"] == 900.0
    assert store.first(LONG) is found
    assert store.known(LONG) is found


def test_two_who_ask_at_once_share_one_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = work.whole

    def counted(scenario: Scenario, trace: object = None) -> object:
        calls.append(scenario.token)
        return original(scenario, trace)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "whole", counted)
    store, answers = Runs(), []
    threads = [threading.Thread(target=lambda: answers.append(store.first(SMALL))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert all(answer is answers[0] for answer in answers)


def test_what_is_too_large_is_refused_with_the_figure() -> None:
    large = LONG.replace({"traffic.rate_rps": 4000.0})
    with pytest.raises(ScenarioError, match=r"7,200,000 requests are expected.*3,000,000"):
        Runs().first(large)


def test_what_takes_long_even_at_the_start_isn_t_computed_here() -> None:
    wide = LONG.replace({"fleet.replicas": 400, "traffic.rate_rps": 600.0})
    assert Runs().first(wide) is None


def test_what_many_rounds_of_retries_take_isn_t_computed_here() -> None:
    retrying = LONG.replace({"traffic.client.max_retries": 2, "traffic.client.backoff_s": 1.0})
    assert work.rounds(LONG) == 0
    assert work.rounds(retrying) == pytest.approx(900 / 0.1)
    assert work.rounds(LONG.replace({"fleet.routing.policy": "least_outstanding"})) == pytest.approx(900 / 0.1)
    assert work.rounds(LONG.replace({"traffic.client.throttle": {"k": 2.0}})) == pytest.approx(900)
    assert Runs().first(retrying) is None


def test_side_work_that_fails_is_nothing_and_isn_t_tried_again() -> None:
    store = Runs()
    end = time.monotonic() + 60.0
    while (found := store.aside("broken", work.whole, None)) is None and time.monotonic() < end:
        time.sleep(0.05)
    assert found is not None
    assert found.result is None
    assert store.known_aside("broken") is found


def test_only_so_many_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_KEPT", 2)
    store = Runs()
    answer = store.first(SMALL)
    assert answer is not None
    for rate in (1.5, 2.0, 2.5):
        store.keep(SMALL.replace({"traffic.rate_rps": rate}), answer)
    assert store.known(SMALL) is None
    assert store.known(SMALL.replace({"traffic.rate_rps": 2.5})) is answer


def test_a_first_answer_never_replaces_a_whole_one() -> None:
    store = Runs()
    final = store.first(SMALL)
    assert final is not None
    assert store.keep(SMALL, Answer(final.story, final=False)) is final


def test_the_beginning_of_a_trace_is_told_by_its_rows() -> None:
    rows = "".join(f"{i},100,10\n" for i in range(2000))
    trace = read_trace(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode())
    replay = Scenario.from_dict(
        {
            "traffic": {"process": "trace", "trace": {"source": "given"}},
            "fleet": {"replicas": 2},
            "run": {"horizon_s": None, "seeds": 1},
        }
    )
    assert work.expected_requests(replay, trace) == 2000
    wanted = 2 * work.REQUESTS_PER_LANE
    assert work.beginning_s(replay, trace) == wanted
    assert work.beginning(replay, trace).summary["run"]["simulated_requests"] == wanted


def test_the_beginning_follows_the_shape_of_the_traffic() -> None:
    steady = Scenario.from_dict({"traffic": {"rate_rps": 1.0}, "fleet": {"replicas": 1}})
    spike = {"kind": "spike", "at_s": 0.0, "factor": 3.0, "rise_s": 0.0, "hold_s": 900.0, "fall_s": 0.0}
    assert work.beginning_s(steady) == pytest.approx(work.REQUESTS_PER_LANE, rel=1e-3)
    assert work.beginning_s(steady.replace({"traffic.shape": spike})) == pytest.approx(
        work.REQUESTS_PER_LANE / 3, rel=1e-3
    )


def test_suggestions_come_from_another_process_and_are_kept() -> None:
    store = Runs()
    assert store.known_suggestions(SMALL) is None
    end = time.monotonic() + 60.0
    while (found := store.suggestions(SMALL)) is None and time.monotonic() < end:
        time.sleep(0.05)
    assert found
    assert store.known_suggestions(SMALL) is found
    assert store.suggestions(SMALL) is found
