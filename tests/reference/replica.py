"""One replica: a queue, running requests, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.reference import deadlines, kv, shedding
from tests.reference.disciplines import CodelState
from tests.reference.job import Job, WaitingQueue
from tests.reference.model import Codel, Setup, Step
from tests.reference.policies import POLICIES, Work


class Replica:
    """State of one replica.

    `on_end(job, now)` is called when a request that it had accepted leaves it, or its client gives up, if that is
    earlier; then the row has no state yet.
    """

    def __init__(self, setup: Setup, on_end: Callable[[Job, float], None]) -> None:
        self.setup = setup
        self.on_end = on_end
        self.waiting = WaitingQueue(setup.discipline)
        self.codel = CodelState(setup.discipline) if isinstance(setup.discipline, Codel) else None
        self.travelling: list[Job] = []  # prefill_only: their KV is on its way to the other pool
        self.running: list[Job] = []  # in order of admission; static: the group, finished members included
        self.work: Work | None = None  # of the step in progress
        self.steps: list[Step] = []
        self.wake_s: float | None = None  # static: when an incomplete group starts
        self.admissions = 0

    # -- when something happens next -------------------------------------------------------------------------

    def next_events(self) -> list[float]:
        """Instants of this replica's own events from now on."""
        events = []
        if self.work is not None:
            events.append(self.steps[-1].end)
        elif self.wake_s is not None:
            events.append(self.wake_s)
        for job in self.waiting:
            events += deadlines.next_events(self.setup, job, waiting=True)
        for job in [*self.unfinished(), *self.travelling]:
            events += deadlines.next_events(self.setup, job, waiting=False)
        events += [job.lands for job in self.travelling if job.lands is not None]
        return events

    def unfinished(self) -> list[Job]:
        """Running requests whose answer is still being made."""
        return [job for job in self.running if not job.done]

    # -- what a report says ----------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        """Requests accepted that haven't left."""
        return len(self.unfinished()) + len(self.travelling) + len(self.waiting)

    @property
    def kv_held(self) -> int:
        """Tokens of KV taken; those of a step in progress aren't yet.

        A static group keeps those of its finished members until it ends, and it ends when nobody is left in it.
        """
        return kv.held(self.running) if self.unfinished() else 0

    # -- (a) the step ending now -----------------------------------------------------------------------------

    def deliver(self, now: float) -> None:
        """Deliver the tokens of the step that ends now, if one does; requests with their last token leave."""
        if self.work is None or self.steps[-1].end != now:
            return
        work, self.work = self.work, None
        self._hand_out(work, now)

    def _hand_out(self, work: Work, now: float) -> None:
        for job in work.decode:
            job.held += 1
            self._token(job, now)
        for job, tokens in work.chunks:
            job.held += tokens
            if job.held == job.size:
                job.decoding = True
                self._token(job, now)

    def _token(self, job: Job, now: float) -> None:
        job.generated += 1
        job.row.token_times.append(now)
        if job.row.lost_at_s is not None:
            job.row.preempted_s += now - job.row.lost_at_s
            job.row.lost_at_s = None
        if job.row.first_token_s is None:
            job.row.first_token_s = now
        if job.generated == job.output:
            self._leave_running(job, now)
        elif self.setup.policy == "prefill_only":
            self.running.remove(job)
            job.lands = now + (job.prompt * self.setup.transfer_token_s + self.setup.transfer_latency_s)
            self.travelling.append(job)

    # -- (b) deadlines ---------------------------------------------------------------------------------------

    def drop_late(self, now: float) -> None:
        """Requests past a deadline leave: running ones only at a boundary, waiting ones at once.

        Travelling ones leave at the end of the step that read their prompt, or when they have come.
        """
        for job in list(self.travelling):
            if now in (job.row.first_token_s, job.lands) and deadlines.must_drop(self.setup, job, now):
                self.travelling.remove(job)
                if job.row.first_token_s != now:
                    job.row.landed_s = now
                self._leave(job, now)
        for job in self.unfinished():
            if self.at_boundary(job) and deadlines.must_drop(self.setup, job, now):
                self._leave_running(job, now)
        for job in list(self.waiting):
            if deadlines.must_drop(self.setup, job, now):
                self.waiting.remove(job)
                self._leave(job, now)
        for job in [*self.unfinished(), *self.travelling, *self.waiting]:
            if not job.gave_up and deadlines.client_gives_up(self.setup, job, now):
                job.gave_up = True
                self.on_end(job, now)

    def at_boundary(self, job: Job) -> bool:
        """Whether a running request may leave now."""
        return self.work is None

    def _leave_running(self, job: Job, now: float) -> None:
        if self.setup.policy != "static":  # a static group keeps the slot and the KV until it ends
            self.running.remove(job)
        self._leave(job, now)

    def _leave(self, job: Job, now: float) -> None:
        """The end of a request that was accepted: complete if no deadline has passed, else timed out."""
        row, job.done = job.row, True
        row.left_s = now
        row.reason = deadlines.missed(self.setup, job, now)
        if row.reason is None:
            row.state, row.finish_s = "completed", now
        else:
            row.state = "timed_out"
        if not job.gave_up:
            self.on_end(job, now)

    def landed(self, now: float) -> list[Job]:
        """Take out those whose KV has come to the other pool."""
        came = [job for job in self.travelling if job.lands == now]
        self.travelling = [job for job in self.travelling if job.lands != now]
        return came

    # -- (c) arrivals ----------------------------------------------------------------------------------------

    def refusal(self, job: Job, now: float) -> str | None:
        """Why the replica doesn't take a newcomer, which isn't counted itself; None if it does."""
        setup = self.setup
        if kv.too_long(setup, job):
            return "too_long"
        if setup.max_outstanding is not None and self.outstanding >= setup.max_outstanding:
            return "queue_full"
        queued = sum(other.prompt for other in self.waiting if other.generated == 0)
        if setup.max_queued_tokens is not None and queued >= setup.max_queued_tokens:
            return "queue_full"
        if setup.shed_ttft_s is not None and shedding.predicted_ttft(self, job, now) > setup.shed_ttft_s:
            return "shed"
        return None

    # -- (d) the next step -----------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Choose the work and start the next step, if none is in progress and there is something to do."""
        if self.work is not None:
            return
        self.wake_s = None
        self.work = POLICIES[self.setup.policy](self, now)
        if self.work is not None:
            self.steps.append(self._record(self.work, now))

    def drops(self, job: Job, now: float) -> bool:
        """CoDel's answer to a waiting request whose turn it is: whether it is refused instead of admitted.

        Whoever has been preempted was let in once and isn't asked again. A dropped request whose client has given up
        already is as late for that client as any other: `timed_out`.
        """
        if self.codel is None or job.row.preemptions > 0 or not self.codel.drops(job.arrival, now):
            return False
        self.waiting.remove(job)
        if job.gave_up:
            self._leave(job, now)
            return True
        job.done = True
        job.row.state, job.row.reason, job.row.left_s = "rejected", "codel", now
        self.on_end(job, now)
        return True

    def admit(self, job: Job, now: float) -> None:
        """Move a waiting request to the running ones."""
        self.waiting.remove(job)
        self.running.append(job)
        job.admission = self.admissions
        self.admissions += 1
        if job.row.scheduled_s is None:
            job.row.scheduled_s = now
        if job.row.first_token_s is None:
            job.row.admitted_s = now
        if self.setup.policy == "decode_only":
            job.row.resumed_s = now

    def preempt(self, job: Job, now: float) -> None:
        """Take a running request's slot and KV away; it waits before its class and will prefill again."""
        self.running.remove(job)
        job.held = 0
        if job.decoding:
            job.row.lost_at_s = now
        job.decoding = False
        job.row.preemptions += 1
        self.waiting.return_to_front(job)

    def _record(self, work: Work, now: float) -> Step:
        """The step's sizes and its end: D = base[T] + seq_s R + kv_token_s C + prefill_pair_s A."""
        tokens = work.n + work.q
        requests = len(work.decode) + len(work.chunks)
        context = sum(job.context for job in work.decode) + sum(job.context for job, _ in work.chunks)
        pairs = sum(q * job.context + q * (q + 1) // 2 for job, q in work.chunks)
        duration = self._lasts(tokens, requests, context, pairs)
        if duration <= 0:
            raise ValueError(f"base: a step of {tokens} tokens lasts {duration} s")
        self._stall(work, duration)
        refills = sum(1 for job, q in work.chunks if job.generated > 0 and job.held + q == job.size)
        return Step(
            start=now,
            end=now + duration,
            T=tokens,
            chunk_tokens=work.q,
            R=requests,
            C=context,
            A=pairs,
            n_decode=work.n + refills,
            running=len(self.running),
            waiting_after_admission=len(self.waiting),
            kv_held_at_start=kv.held(self.running),
            limited_by=self._limited_by(work, now),
            alone_s=duration,
        )

    def _lasts(self, tokens: int, requests: int, context: int, pairs: int) -> float:
        setup = self.setup
        base = setup.base(tokens) if callable(setup.base) else setup.base[tokens]
        return base + setup.seq_s * requests + setup.kv_token_s * context + setup.prefill_pair_s * pairs

    def _stall(self, work: Work, duration: float) -> None:
        """Count what the prompts read in a step add to it, for each that writes in it or stands still."""
        if not work.chunks:
            return
        alone = self._lasts(work.n, work.n, sum(job.context for job in work.decode), 0) if work.decode else 0.0
        for job in self.unfinished():
            if job.decoding:
                job.row.stalled_s += duration - alone

    def _limited_by(self, work: Work, now: float) -> str:
        """What keeps the head of the queue out of this step, judged with the step's final n and q."""
        if len(self.waiting) == 0:
            return "none"
        if len(self.running) == self.setup.max_num_seqs:
            return "max_num_seqs"
        if work.preempted or not kv.fits(self.setup, self.running, work.n, work.q, self.waiting.head(now)):
            return "kv"
        return "token_budget"


def pools(setup: Setup) -> tuple[Setup, Setup]:
    """What the replicas that are sent new requests follow, and those that are sent what has its first token.

    The latter refuse nobody; they reserve, and their queue has no classes.
    """
    if setup.policy != "disaggregated":
        return setup, setup
    reading = replace(setup, policy="prefill_only", decode_replicas=0)
    writing = replace(
        setup, policy="decode_only", kv_policy="reserve", watermark=0.0, discipline=None,
        replicas=setup.decode_replicas, decode_replicas=0,
    )  # fmt: skip
    return reading, writing
