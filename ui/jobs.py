"""Long work in other processes: one per job, so that it can be stopped at any moment and frees its memory at the end.

Whoever waits for a job asks for it again and again; a job that nobody asked for lately (the inputs changed, the browser
was closed) is stopped. Sessions that ask for the same key share one job.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Literal

State = Literal["waiting", "running", "done", "failed", "dropped"]

_POLL_S = 0.05
_REMEMBERED_S = 60.0
"""How long a job that ended can be asked for."""


class WorkerLost(RuntimeError):
    """A worker process ended without an answer."""


@dataclass
class Job:
    """One piece of work; only `Jobs` changes it."""

    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    state: State = "waiting"
    result: Any = None
    error: BaseException | None = None
    asked_at: float = field(default_factory=time.monotonic)
    started_at: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "dropped")

    @property
    def running_s(self) -> float:
        """Seconds since it was started; 0 while waiting."""
        return 0.0 if self.started_at is None else time.monotonic() - self.started_at


class Jobs:
    """A few workers and a bounded queue, newest first: whoever changed an input last is looking at the screen."""

    def __init__(self, workers: int | None = None, most: int = 64, patience_s: float = 2.0) -> None:
        self._workers = workers or max(1, (os.cpu_count() or 2) - 1)
        self._most, self._patience_s = most, patience_s
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        methods = mp.get_all_start_methods()
        self._context: Any = mp.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload(["ui.work"])

    def ask(self, key: str, function: Callable[..., Any], *arguments: Any) -> Job:
        """The job under a key: the one that waits, runs or ended lately, else a new one. Says that somebody waits."""
        with self._changed:
            self._start_threads()
            job = self._jobs.get(key)
            if job is not None and job.state != "dropped":
                job.asked_at = time.monotonic()
                return job
            job = self._jobs[key] = Job(key, function, arguments)
            self._forget_old()
            self._changed.notify()
            return job

    def forget(self, key: str) -> None:
        """Make the next `ask` start anew, after a failure."""
        with self._changed:
            job = self._jobs.get(key)
            if job is not None and job.over:
                del self._jobs[key]

    def ahead(self, job: Job) -> int:
        """How many jobs are before this one."""
        with self._changed:
            waiting = [other for other in self._jobs.values() if other.state == "waiting"]
            running = sum(other.state == "running" for other in self._jobs.values())
        return 0 if job.state != "waiting" else running + sum(other.asked_at > job.asked_at for other in waiting)

    def _start_threads(self) -> None:
        if not self._threads:
            self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self._workers)]
            for thread in self._threads:
                thread.start()

    def _forget_old(self) -> None:
        idle = [job for job in self._jobs.values() if job.state != "running"]
        for job in idle[: max(0, len(self._jobs) - self._most)]:
            del self._jobs[job.key]
            if not job.over:
                job.state = "dropped"

    def _serve(self) -> None:
        while True:
            with self._changed:
                job = self._next()
                while job is None:
                    self._changed.wait(1.0)
                    job = self._next()
                job.state, job.started_at = "running", time.monotonic()
            self._run(job)

    def _next(self) -> Job | None:
        for job in list(self._jobs.values()):
            idle_s = time.monotonic() - job.asked_at
            if job.state == "waiting" and idle_s > self._patience_s:
                job.state = "dropped"
            if job.state == "dropped" or (job.over and idle_s > _REMEMBERED_S):
                del self._jobs[job.key]
        waiting = [job for job in self._jobs.values() if job.state == "waiting"]
        return waiting[-1] if waiting else None

    def _run(self, job: Job) -> None:
        state: State = "failed"
        result, error = None, None
        try:
            state, result = self._in_process(job)
        except Exception as problem:
            error = problem
        with self._changed:
            job.result, job.error, job.state = result, error, state

    def _in_process(self, job: Job) -> tuple[State, Any]:
        here, there = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_work, args=(there, job.function, job.arguments), daemon=True)
        process.start()
        there.close()
        try:
            while not here.poll(_POLL_S):
                if time.monotonic() - job.asked_at > self._patience_s:
                    return "dropped", None
            try:
                good, answer = here.recv()
            except EOFError:
                raise WorkerLost("the simulation stopped without an answer; it may have run out of memory") from None
            if not good:
                raise answer
            return "done", answer
        finally:
            here.close()
            if process.is_alive():
                process.terminate()
            process.join()
            process.close()


def _work(answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """In the worker: one answer, or the exception that there was instead."""
    with contextlib.suppress(OSError):
        os.nice(5)  # the server answers first
    try:
        said = (True, function(*arguments))
    except Exception as problem:
        said = (False, problem)
    with contextlib.suppress(BrokenPipeError):
        answer.send(said)
