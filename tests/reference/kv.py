"""KV memory: who fits, and who has to go."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.job import Job
from tests.reference.model import Setup


def held(running: Sequence[Job]) -> int:
    """Tokens of KV that running requests hold of their own."""
    return sum(job.held for job in running)


def reservation(setup: Setup, job: Job) -> int:
    """What `reserve` sets aside: P - X + O, or P - X + R; P - X + 1 where only the first token is made."""
    if setup.policy == "prefill_only":
        return job.prompt - job.cached + 1
    output = job.output if setup.reserve_output_tokens is None else setup.reserve_output_tokens
    return job.prompt - job.cached + output


def fits(setup: Setup, running: Sequence[Job], n: int, q: int, candidate: Job) -> bool:
    """Whether there is KV for one more.

    `running` includes those admitted for this very step: they hold nothing yet, their tokens are in `q`. So the
    watermark is ignored for the first request of an empty replica, and for no other.
    """
    capacity = setup.kv_capacity_tokens
    if capacity is None:
        return True
    if setup.kv_policy == "reserve":
        return sum(reservation(setup, job) for job in running) + reservation(setup, candidate) <= capacity
    need = held(running) + n + q + candidate.size
    if setup.watermark > 0 and running:
        return need <= (1 - setup.watermark) * capacity
    return need <= capacity


def overflows(setup: Setup, running: Sequence[Job], tokens: int) -> bool:
    """Whether a step of so many tokens (n + q) needs more KV than there is. Never with `reserve`."""
    if setup.kv_capacity_tokens is None or setup.kv_policy == "reserve":
        return False
    return held(running) + tokens > setup.kv_capacity_tokens


def victim(unfinished: Sequence[Job]) -> Job:
    """The one to preempt: of the least urgent class, the one admitted last."""
    return max(unfinished, key=lambda job: (job.priority, job.admission))


def too_long(setup: Setup, job: Job) -> bool:
    """Whether a request could never be served. The cached prefix isn't deducted."""
    output = job.output if setup.reserve_output_tokens is None else setup.reserve_output_tokens
    capacity, limit = setup.kv_capacity_tokens, setup.context_limit
    if capacity is not None and job.prompt + output > capacity:
        return True
    return limit is not None and job.prompt + job.output > limit
