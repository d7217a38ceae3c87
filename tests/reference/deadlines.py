"""Deadlines: which a request has, and which it has missed. A deadline has passed at t when t >= deadline."""

from __future__ import annotations

from tests.reference.job import Job
from tests.reference.model import Setup

# Reasons in the order that decides ties between deadlines of one request.
REASONS = ("timeout", "ttft_timeout", "queue_timeout")


def open_deadlines(setup: Setup, job: Job) -> list[tuple[float, int]]:
    """(time, place in REASONS) of every deadline that the request has not met so far.

    The answer as a whole is not out (or comes out right now). A first token that came before the TTFT deadline
    met it; one at or after it did not. Being scheduled once ends the queue's deadline for good.
    """
    found = []
    if setup.timeout_s is not None:
        found.append((job.arrival + setup.timeout_s, 0))
    if setup.ttft_timeout_s is not None:
        deadline = job.arrival + setup.ttft_timeout_s
        if job.row.first_token_s is None or job.row.first_token_s >= deadline:
            found.append((deadline, 1))
    if setup.queue_timeout_s is not None and job.row.scheduled_s is None:
        found.append((job.arrival + setup.queue_timeout_s, 2))
    return found


def missed(setup: Setup, job: Job, now: float) -> str | None:
    """The reason of the earliest deadline that has passed, None if none has."""
    passed = [deadline for deadline in open_deadlines(setup, job) if deadline[0] <= now]
    return REASONS[min(passed)[1]] if passed else None


def binds_server(setup: Setup, place: int) -> bool:
    """Whether the server drops a request at such a deadline: its own queue timeout always, a client's with abort."""
    return setup.on_timeout == "abort" or REASONS[place] == "queue_timeout"


def must_drop(setup: Setup, job: Job, now: float) -> bool:
    """Whether the server drops the request now."""
    return any(at <= now and binds_server(setup, place) for at, place in open_deadlines(setup, job))


def client_gives_up(setup: Setup, job: Job, now: float) -> bool:
    """With `ignore`: whether the client stops waiting now, though the server knows nothing of it."""
    return any(at <= now and not binds_server(setup, place) for at, place in open_deadlines(setup, job))


def next_events(setup: Setup, job: Job, waiting: bool) -> list[float]:
    """Instants at which something may happen to the request by itself, without a step ending.

    A waiting request is dropped at its deadline; a running one only at a boundary. A client that is ignored
    gives up at its deadline wherever its request is.
    """
    events = []
    for at, place in open_deadlines(setup, job):
        if binds_server(setup, place):
            if waiting:
                events.append(at)
        elif not job.gave_up:
            events.append(at)
    return events
