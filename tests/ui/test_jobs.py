"""Work in other processes: shared, bounded, stopped when nobody waits any more."""

from __future__ import annotations

import os
import time

import pytest

from engine.scenario import Scenario, ScenarioError
from ui import work
from ui.jobs import Job, Jobs, WorkerLost

TOO_LARGE = Scenario.from_dict({"model": {"name": "Llama-3.1-405B", "weight_dtype": "bf16"}})
SMALL = Scenario.from_dict({"run": {"seeds": 1, "horizon_s": 100.0}})


@pytest.fixture(scope="module")
def jobs() -> Jobs:
    return Jobs(workers=1, most=4, patience_s=0.5)


def finished(jobs: Jobs, key: str, function: object, *arguments: object, within_s: float = 30.0) -> Job:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        job = jobs.ask(key, function, *arguments)  # type: ignore[arg-type]
        if job.over:
            return job
        time.sleep(0.02)
    raise AssertionError(f"not over within {within_s} s")


def test_an_answer_comes_back(jobs: Jobs) -> None:
    job = finished(jobs, "answer", work.whole, SMALL)
    assert job.state == "done"
    assert job.result.verdict == work.whole(SMALL).verdict


def test_whoever_asks_for_the_same_gets_the_same_job(jobs: Jobs) -> None:
    first = jobs.ask("shared", time.sleep, 0.2)
    assert jobs.ask("shared", time.sleep, 0.2) is first
    assert finished(jobs, "shared", time.sleep, 0.2) is first


def test_an_error_comes_back_as_it_was(jobs: Jobs) -> None:
    job = finished(jobs, "error", work.whole, TOO_LARGE)
    assert isinstance(job.error, ScenarioError)
    assert "needs" in str(job.error)
    jobs.forget("error")
    assert jobs.ask("error", work.whole, SMALL) is not job


def test_a_lost_worker_is_an_error_and_the_next_job_runs(jobs: Jobs) -> None:
    job = finished(jobs, "lost", os._exit, 1)
    assert isinstance(job.error, WorkerLost)
    assert finished(jobs, "after", int, "7").result == 7


def test_a_job_that_nobody_waits_for_is_stopped(jobs: Jobs) -> None:
    job = jobs.ask("left", time.sleep, 60.0)
    end = time.monotonic() + 20.0
    while job.state != "dropped" and time.monotonic() < end:
        time.sleep(0.05)
    assert job.state == "dropped"
    assert finished(jobs, "next", int, "8").result == 8


def test_the_latest_question_is_answered_first_and_the_queue_is_bounded() -> None:
    jobs = Jobs(workers=1, most=4, patience_s=30.0)
    running = jobs.ask("0", time.sleep, 1.0)
    while running.state == "waiting":
        time.sleep(0.02)
    waiting = [jobs.ask(str(i), int, str(i)) for i in range(1, 7)]
    assert [job.state for job in waiting] == ["dropped"] * 3 + ["waiting"] * 3
    assert jobs.ahead(waiting[-1]) == 1
    assert jobs.ahead(waiting[-2]) == 2
    assert finished(jobs, "6", int, "6").result == 6
