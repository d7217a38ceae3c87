"""A replica that is a pipeline of `stages` stages: as many lanes, one queue, one KV memory.

A lane's step is a pass through all stages. Each stage works on one batch at a time, for D/p seconds if the batch takes
D alone, and passes it on; batches keep their order. Here that is done literally: `clock[s]` is when stage s is free,
and a batch goes from one stage to the next. The lane that starts is the one that has been without a step the longest,
of those that have requests or can admit one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.reference import deadlines, kv
from tests.reference.job import Job
from tests.reference.model import Setup
from tests.reference.policies import Work
from tests.reference.replica import Replica


@dataclass(eq=False)
class Lane:
    """A group of requests that go through the stages together."""

    index: int
    running: list[Job] = field(default_factory=list)  # in order of admission
    work: Work | None = None  # of the step in progress
    end: float = 0.0  # of that step
    free_since: float = float("-inf")


class Pipeline(Replica):
    """State of one replica. `running` are the requests of all lanes, in order of admission."""

    def __init__(self, setup: Setup, on_end: Callable[[Job, float], None]) -> None:
        super().__init__(setup, on_end)
        self.lanes = [Lane(index) for index in range(setup.stages)]
        self.clock = [float("-inf")] * setup.stages
        self.now = 0.0

    def lane_of(self, job: Job) -> Lane:
        """Where a running request is."""
        return next(lane for lane in self.lanes if job in lane.running)

    @property
    def under_way(self) -> int:
        """Tokens that steps in progress are writing."""
        return sum(lane.work.n + lane.work.q for lane in self.lanes if lane.work is not None)

    def next_events(self) -> list[float]:
        """Steps that end, the first stage that becomes free, deadlines."""
        events = [lane.end for lane in self.lanes if lane.work is not None]
        if self.clock[0] > self.now:
            events.append(self.clock[0])
        for job in self.waiting:
            events += deadlines.next_events(self.setup, job, waiting=True)
        for job in self.running:
            between = self.lane_of(job).work is None
            events += deadlines.next_events(self.setup, job, waiting=between)
        return events

    def deliver(self, now: float) -> None:
        """The steps that end now, if any."""
        self.now = now
        for lane in self.lanes:
            if lane.work is not None and lane.end == now:
                work, lane.work, lane.free_since = lane.work, None, now
                self._hand_out(work, now)

    def at_boundary(self, job: Job) -> bool:
        """Whether a running request may leave now: its lane makes no step."""
        return self.lane_of(job).work is None

    def _leave_running(self, job: Job, now: float) -> None:
        self.lane_of(job).running.remove(job)
        super()._leave_running(job, now)

    def preempt(self, job: Job, now: float) -> None:
        """As in any replica, and it leaves its lane."""
        self.lane_of(job).running.remove(job)
        super().preempt(job, now)

    def start(self, now: float) -> None:
        """If the first stage is free, one lane starts."""
        self.now = now
        if self.clock[0] > now:
            return
        while self._try_lanes(now):
            pass

    def _try_lanes(self, now: float) -> bool:
        """Lanes in turn until one starts; True: one has lost all of its requests, so that others may have room."""
        for lane in sorted(self.lanes, key=lambda lane: (lane.free_since, lane.index)):
            if lane.work is not None or not (lane.running or len(self.waiting) > 0):
                continue
            had = bool(lane.running)
            work = self._choose(lane, now)
            if work.n + work.q > 0:
                self._send(lane, work, now)
                return False
            if had:
                return True
        return False

    def _choose(self, lane: Lane, now: float) -> Work:
        """`chunked`, with the lane's requests, and the KV of all."""
        setup, budget = self.setup, self.setup.max_num_batched_tokens
        work = self._continue(lane)
        while kv.overflows(setup, self.running, self.under_way + work.n + work.q):
            self.preempt(kv.victim(lane.running), now)
            work = self._continue(lane)
            work.preempted = True
        while (
            not work.preempted
            and len(self.waiting) > 0
            and work.n + work.q < budget
            and not self._full(lane)
            and kv.fits(setup, self.running, self.under_way + work.n, work.q, self.waiting.head(now))
        ):
            job = self.waiting.head(now)
            work.chunks.append((job, min(job.size, budget - work.n - work.q)))
            lane.running.append(job)
            self.admit(job, now)
        return work

    def _continue(self, lane: Lane) -> Work:
        work = Work(decode=[job for job in lane.running if job.decoding])
        for job in lane.running:
            if not job.decoding:
                work.chunks.append((job, min(job.prefill_left, self.setup.max_num_batched_tokens - work.n)))
        return work

    def _full(self, lane: Lane) -> bool:
        most = self.setup.max_num_seqs
        return len(self.running) >= most or len(lane.running) * self.setup.stages >= most

    def _send(self, lane: Lane, work: Work, now: float) -> None:
        """Through the stages, one after the other, each when it is free."""
        step = self._record(work, now)
        at = now
        for stage in range(self.setup.stages):
            at = max(at, self.clock[stage]) + step.alone_s / self.setup.stages
            self.clock[stage] = at
        lane.work, lane.end = work, at
        step.end, step.lane = at, lane.index
        step.running = len(lane.running)
        step.kv_held_at_start = kv.held(lane.running)
        step.limited_by = self._why(lane, work, now)
        self.steps.append(step)

    def _why(self, lane: Lane, work: Work, now: float) -> str:
        if len(self.waiting) == 0:
            return "none"
        if self._full(lane):
            return "max_num_seqs"
        under_way = self.under_way - work.n - work.q  # of the others
        fits = kv.fits(self.setup, self.running, under_way + work.n, work.q, self.waiting.head(now))
        return "kv" if work.preempted or not fits else "token_budget"
