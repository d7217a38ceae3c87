"""The time to the first token that a replica predicts for a newcomer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.reference.model import Setup, Step

if TYPE_CHECKING:
    from tests.reference.job import Job
    from tests.reference.replica import Replica

WINDOW_S = 10.0


def predicted_ttft(replica: Replica, newcomer: Job, now: float) -> float:
    """Seconds: what has to be read before the newcomer's first token, at the rate of late."""
    urgent = newcomer.priority
    tokens = sum(job.size for job in replica.waiting if job.priority <= urgent)
    tokens += sum(job.prefill_left for job in replica.unfinished() if job.priority <= urgent)
    if replica.work is not None:  # what the step in progress is reading is as good as read
        tokens -= sum(q for job, q in replica.work.chunks if job.priority <= urgent)
    return (tokens + newcomer.size) / prefill_rate(replica.setup, replica.steps, now)


def prefill_rate(setup: Setup, steps: Sequence[Step], now: float) -> float:
    """Tokens a second read by the steps that ended in the last ten seconds and had something to read.

    A step that only decoded, with nobody waiting, says nothing about how fast prompts are read. Before anything was
    read, the rate is that of one full chunk alone.
    """
    recent = [step for step in steps if now - WINDOW_S < step.end <= now]
    reading = [step for step in recent if step.chunk_tokens > 0 or step.limited_by != "none"]
    tokens = sum(step.chunk_tokens for step in reading)
    if tokens > 0:
        return tokens / sum(step.end - step.start for step in reading)
    chunk = setup.max_num_batched_tokens
    base = setup.base(chunk) if callable(setup.base) else setup.base[chunk]
    return chunk / (base + setup.seq_s + setup.prefill_pair_s * (chunk * (chunk + 1) // 2))
