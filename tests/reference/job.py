"""A request inside the system, and the two orders in which requests are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.reference.disciplines import oldest_is_old
from tests.reference.model import AdaptiveLifo, Codel, Request, Row, Setup


@dataclass(eq=False)
class Job:
    """A request that has arrived.

    `held` is the KV that is its own: everything it attends to but the cached prefix. So its context is
    `cached + held` at every moment: while it prefills, and with g tokens out `P + g - 1`, because each step
    adds to `held` exactly the tokens that it works on for this request.
    """

    request: Request
    row: Row
    index: int
    arrival: float
    prompt: int
    output: int
    cached: int
    priority: int
    generated: int = 0
    held: int = 0
    decoding: bool = False  # its prefill is complete (since it was last admitted)
    admission: int = -1  # number of its last admission
    gave_up: bool = False  # on_timeout ignore: its client has stopped waiting
    lands: float | None = None  # when its KV will have come to the other pool
    done: bool = False  # it has left the system (a static group keeps its slot and KV all the same)

    @property
    def size(self) -> int:
        """Tokens that a prefill from nothing has to work on: P - X + g."""
        return self.prompt - self.cached + self.generated

    @property
    def prefill_left(self) -> int:
        """Tokens still to prefill."""
        return 0 if self.decoding else self.size - self.held

    @property
    def context(self) -> int:
        """What its next token attends to."""
        return self.cached + self.held


def arrive(setup: Setup, request: Request, row: Row, index: int, now: float) -> Job:
    """The job of a request arriving now: a prefix of P or more is cut to P - 1, O to `reserve_output_tokens`.

    O is cut whatever the KV policy.
    """
    output = request.output_tokens
    if setup.reserve_output_tokens is not None:
        output = min(output, setup.reserve_output_tokens)
    cached = min(request.cached_prefix_tokens, request.prompt_tokens - 1)
    return Job(request, row, index, now, request.prompt_tokens, output, cached, request.priority)


class WaitingQueue:
    """Waiting requests by class (lower is more urgent), then first in first out.

    A class's preempted requests, if any, are at its front: newcomers join behind, victims return before.
    """

    def __init__(self, discipline: Codel | AdaptiveLifo | None = None) -> None:
        self._discipline = discipline
        self._classes: dict[int, list[Job]] = {}

    def __iter__(self) -> Iterator[Job]:
        for priority in sorted(self._classes):
            yield from self._classes[priority]

    def __len__(self) -> int:
        return sum(len(jobs) for jobs in self._classes.values())

    def head(self, now: float) -> Job:
        """The next to be admitted; only when somebody waits."""
        jobs = self._classes[min(priority for priority, jobs in self._classes.items() if jobs)]
        if isinstance(self._discipline, AdaptiveLifo) and jobs[0].row.preemptions == 0:
            oldest = jobs[0]
            return jobs[-1] if oldest_is_old(self._discipline, oldest.arrival, now) else oldest
        return jobs[0]

    def join(self, job: Job) -> None:
        """A newcomer goes behind its class."""
        self._classes.setdefault(job.priority, []).append(job)

    def return_to_front(self, job: Job) -> None:
        """A preempted request goes before its class."""
        self._classes.setdefault(job.priority, []).insert(0, job)

    def remove(self, job: Job) -> None:
        """It was admitted, or has left."""
        self._classes[job.priority].remove(job)
