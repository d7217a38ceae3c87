"""Every attempt of a run and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .lanes import Deadlines, Floats, Ints
from .states import CODEL, REASONS, REJECTED, TIMED_OUT, TIMEOUT_REASONS

FIRST_TIMEOUT = REASONS.index(TIMEOUT_REASONS[0])


@dataclass(frozen=True, slots=True)
class Handover:
    """How attempts went on in a disaggregated fleet after their first token. Arrays (n,), seconds, ``nan`` where
    absent."""

    replica: NDArray[np.int32]
    """The one that writes the answer, numbered after those that read prompts; -1 where the KV never came to one."""
    landed_s: Floats
    """When the prompt's KV had come."""
    resumed_s: Floats
    """Start of the first step that wrote for it."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Every attempt of every seed, one entry each, in order of (seed, request). Seconds, ``nan`` where absent."""

    seed_start: Ints
    """(seeds + 1,): seed i's attempts are ``seed_start[i]:seed_start[i + 1]``."""
    arrival_s: Floats
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_prefix_tokens: NDArray[np.int32]
    class_id: NDArray[np.int16]
    priority: NDArray[np.int32]
    class_names: tuple[str, ...]
    replica: NDArray[np.int32]
    """-1 where refused before the router; in a disaggregated fleet the one that reads the prompt."""
    scheduled_s: Floats
    first_token_s: Floats
    finish_s: Floats
    dropped_s: Floats
    """When the server was done with an attempt that timed out."""
    state: NDArray[np.int8]
    reason: NDArray[np.int8]
    preemptions: NDArray[np.int32]
    last_token_s: Floats
    """When the last token before a preemption came, while the next one hasn't; else 0."""
    stall_gap_s: Floats
    """Largest gap between two tokens that contains a preemption; 0 without one."""

    spent_tokens: Ints
    """Tokens worked on for it, repeats included; 0 where no deadline can waste work."""
    spent_s: Floats
    """Its share of the steps' time, by tokens; 0 likewise."""
    request_of: Ints | None = None
    """Which request of its seed each attempt belongs to, from 0; ``None``: every attempt is a request of its own."""
    attempt_of: Ints | None = None
    """Number of each attempt at its request, from 0; ``None`` likewise."""
    admitted_s: Floats = field(default_factory=lambda: np.empty(0))
    """Start of the last admission before the first token; empty, as the next two, unless asked for (``Waits``)."""
    stalled_s: Floats = field(default_factory=lambda: np.empty(0))
    """Seconds by which others' prompts stalled it after its first token."""
    preempted_s: Floats = field(default_factory=lambda: np.empty(0))
    """Seconds from losing its KV to its next token, after the first."""
    handover: Handover | None = None
    """In a disaggregated fleet."""

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return self.seed_start.size - 1

    @property
    def left_s(self) -> Floats:
        """(n,): when each left the system, whatever its state; ``nan`` for those that are still there."""
        left = np.where(self.state == REJECTED, self.arrival_s, self.finish_s)
        return np.where((self.state == TIMED_OUT) | (self.reason == CODEL), self.dropped_s, left)

    @property
    def writer(self) -> NDArray[np.int32]:
        """(n,): the replica that writes an attempt's answer but its first token; -1 where there is none yet."""
        return self.replica if self.handover is None else self.handover.replica

    @property
    def request(self) -> Ints:
        """(n,): which request of its seed each attempt belongs to, from 0 in order of arrival."""
        if self.request_of is not None:
            return self.request_of
        return np.arange(self.arrival_s.size) - np.repeat(self.seed_start[:-1], np.diff(self.seed_start))

    @property
    def attempt(self) -> Ints:
        """(n,): number of each attempt at its request, from 0."""
        return np.zeros(self.arrival_s.size, np.int64) if self.attempt_of is None else self.attempt_of

    @property
    def seed_index(self) -> NDArray[np.int32]:
        """(n,): which seed of the run each attempt belongs to, from 0."""
        return np.repeat(np.arange(self.seeds, dtype=np.int32), np.diff(self.seed_start))


def missed(
    arrival_s: Floats, scheduled_s: Floats, first_token_s: Floats, until_s: Floats, deadlines: Deadlines
) -> NDArray[np.int8]:
    """(n,): reason code of the earliest deadline that each attempt has missed by ``until_s``, 0 for none.

    A first token before its deadline met it, one at or after it didn't; being scheduled ends the queue's deadline for
    good. Of equal deadlines the first of ``TIMEOUT_REASONS`` counts. All arrays (n,), seconds, ``nan`` where absent.
    """
    ttft = arrival_s + deadlines.ttft_timeout_s
    due = np.stack(
        [
            arrival_s + deadlines.timeout_s,
            np.where(first_token_s < ttft, np.inf, ttft),
            np.where(np.isnan(scheduled_s), arrival_s + deadlines.queue_timeout_s, np.inf),
        ]
    )
    earliest = due.argmin(axis=0)
    late = np.take_along_axis(due, earliest[None, :], axis=0)[0] <= until_s
    return np.where(late, earliest + FIRST_TIMEOUT, 0).astype(np.int8)
