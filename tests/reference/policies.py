"""What a replica works on in its next step.

Each policy gets the replica at a boundary, after departures and arrivals, admits and preempts, and returns the
work of the step, or None when there is nothing to do (yet).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.reference.job import Job
from tests.reference.kv import fits, overflows, victim

if TYPE_CHECKING:
    from tests.reference.replica import Replica


@dataclass
class Work:
    """Requests that decode one token, and requests that prefill a chunk of so many tokens."""

    decode: list[Job] = field(default_factory=list)
    chunks: list[tuple[Job, int]] = field(default_factory=list)
    preempted: bool = False  # somebody was preempted to make room for this step

    @property
    def n(self) -> int:
        """Decoding requests that get a token."""
        return len(self.decode)

    @property
    def q(self) -> int:
        """Chunk tokens chosen so far."""
        return sum(tokens for _, tokens in self.chunks)


def make_room(replica: Replica, now: float, plan: Callable[[], Work]) -> Work:
    """The planned work, planned again after each preemption, until its tokens fit into the KV memory."""
    preempted = False
    work = plan()
    while overflows(replica.setup, replica.running, work.n + work.q):
        replica.preempt(victim([job for job in replica.running if not job.done]), now)
        preempted = True
        work = plan()
    work.preempted = preempted
    return work


def chunked(replica: Replica, now: float) -> Work | None:
    """vLLM V1: every decoding request, then the partly prefilled one, then newcomers, within one token budget."""
    setup, budget = replica.setup, replica.setup.max_num_batched_tokens

    def continuing() -> Work:
        work = Work(decode=[job for job in replica.running if job.decoding])
        partly = [job for job in replica.running if not job.decoding]
        assert len(partly) <= 1, "two requests are partly prefilled"
        for job in partly:
            work.chunks.append((job, min(job.prefill_left, budget - work.n)))
        return work

    work = make_room(replica, now, continuing)
    if not work.preempted:
        while (
            len(replica.waiting) > 0
            and work.n + work.q < budget
            and len(replica.running) < setup.max_num_seqs
            and fits(setup, replica.running, work.n, work.q, replica.waiting.head(now))
        ):
            job = replica.waiting.head(now)
            if replica.drops(job, now):
                continue
            tokens = min(job.size, budget - work.n - work.q)
            replica.admit(job, now)
            work.chunks.append((job, tokens))
    return work if replica.running else None


def prefill_first(replica: Replica, now: float) -> Work | None:
    """Whole prompts before everything else; only when the head can't be admitted do the others decode.

    A prefill step needs KV for its prompts only (n = 0), so it never preempts.
    """
    setup, budget = replica.setup, replica.setup.max_num_batched_tokens
    work = Work()
    while (
        len(replica.waiting) > 0
        and len(replica.running) < setup.max_num_seqs
        and fits(setup, replica.running, 0, work.q, replica.waiting.head(now))
        and (not work.chunks or work.q + replica.waiting.head(now).size <= budget)
    ):
        job = replica.waiting.head(now)
        if replica.drops(job, now):
            continue
        replica.admit(job, now)
        work.chunks.append((job, job.size))
    if work.chunks:
        return work
    work = make_room(replica, now, lambda: Work(decode=list(replica.running)))
    return work if work.decode else None


def static(replica: Replica, now: float) -> Work | None:
    """One group at a time; nobody joins it.

    When preemption leaves a group without unfinished members, it ends before any step took place; the next group
    is formed at that instant as after any other end, and its step doesn't count as one with a preemption.
    """
    work = make_room(replica, now, lambda: Work(decode=[job for job in replica.running if not job.done]))
    if work.decode:
        return work
    replica.running.clear()  # the group has ended: its slots and KV are free

    setup = replica.setup
    group: list[Job] = []
    for job in replica.waiting:
        if len(group) == setup.max_num_seqs or not fits(setup, group, 0, sum(m.size for m in group), job):
            break
        group.append(job)
    if not group:
        return None
    complete = len(group) == setup.max_num_seqs or len(group) < len(replica.waiting)
    if not complete:
        start = max(now, min(job.arrival for job in group) + setup.batch_wait_s)
        if start > now:
            replica.wake_s = start
            return None
    for job in group:
        replica.admit(job, now)
    return Work(chunks=[(job, job.size) for job in group])


def decode_only(replica: Replica, now: float) -> Work | None:
    """Whoever has come is admitted in order while there is a seat and KV, and writes in this very step."""
    setup = replica.setup
    while len(replica.waiting) > 0 and len(replica.running) < setup.max_num_seqs:
        job = replica.waiting.head(now)
        if not fits(setup, replica.running, 0, 0, job):
            break
        replica.admit(job, now)
    return Work(decode=list(replica.running)) if replica.running else None


POLICIES: dict[str, Callable[[Replica, float], Work | None]] = {
    "chunked": chunked,
    "prefill_first": prefill_first,
    "static": static,
    "prefill_only": prefill_first,
    "decode_only": decode_only,
}
