"""A slow, literal simulator of a fleet behind a router: the judge of the fast engine.

One instant after another, one step after another, plain Python; it shares nothing with the engine. Where the
rules of the simulation leave something open, the choice is in the docstring of the function that makes it.

Time moves from one instant to the next at which anything happens anywhere. At an instant, in this order: (a) steps
that end deliver their tokens and complete requests leave; (b) requests past a deadline leave; then the router hears
the reports due, and clients notice what has failed; (c) requests due arrive, first attempts before retries; (d)
replicas without a step in progress choose their work and start. Replicas don't touch one another inside a phase, so
doing each phase for all of them keeps every replica's own order.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference import deadlines
from tests.reference.arrivals import TokenBucket, source
from tests.reference.draws import Draws
from tests.reference.job import Job, arrive
from tests.reference.model import Outcome, Request, Row, Setup, Step
from tests.reference.pipeline import Pipeline
from tests.reference.points import last_until, sync_s
from tests.reference.replica import Replica, pools
from tests.reference.retries import Retries
from tests.reference.router import Router
from tests.reference.throttle import refusal_probability

__all__ = ["Draws", "Outcome", "Request", "Row", "Setup", "Step", "simulate"]


def simulate(setup: Setup, requests: Sequence[Request], draws: Draws | None = None) -> Outcome:
    """Simulate the requests (open: any order, closed: each user's in order) and say what became of each.

    `draws` is the luck of the router, of retries and of throttling clients; whoever needs none can do without.
    """
    return _Fleet(setup, requests, draws or Draws()).run()


class _Fleet:
    def __init__(self, setup: Setup, requests: Sequence[Request], draws: Draws) -> None:
        self.setup, self.requests, self.draws = setup, requests, draws
        self.rows: list[Row] = []  # of every attempt that has arrived, in that order
        self.arrivals = source(setup, requests)
        self.retries = Retries(setup, draws.backoff)
        self.bucket = TokenBucket(*setup.rate_limit) if setup.rate_limit is not None else None
        reading, writing = pools(setup)
        kind = Pipeline if setup.stages > 1 else Replica
        self.readers = [kind(reading, self._ended) for _ in range(setup.replicas)]
        self.writers = [Replica(writing, self._ended) for _ in range(setup.decode_replicas)]
        self.replicas = [*self.readers, *self.writers]
        self.router = Router(setup, self.readers, draws.router)
        self.decode_router = Router(writing, self.writers, draws.decode_router)

    def run(self) -> Outcome:
        horizon = self.setup.horizon_s
        now = self._next_instant()
        while now is not None and (horizon is None or now <= horizon):
            for replica in self.replicas:
                replica.deliver(now)
            for replica in self.replicas:
                replica.drop_late(now)
            self._land(now)
            self.router.hear(now)
            self.retries.notice(now)
            while self.arrivals.next_s() == now:
                self.retries.first_attempt()
                self._arrive(self.arrivals.pop(), 0, now)
            while (due := self.retries.pop(now)) is not None:
                self._arrive(*due, now)
            if now == horizon:
                break  # no step starts at the horizon
            for replica in self.replicas:
                replica.start(now)
            before, now = now, self._next_instant()
            assert now is None or now > before, "time stands still"
        self._stop()
        return self._outcome()

    def _next_instant(self) -> float | None:
        """Reports matter only while something else is still to come."""
        events = [at for replica in self.replicas for at in replica.next_events()]
        events += [at for at in (self.arrivals.next_s(), self.retries.next_s()) if at is not None]
        report = self.router.next_report_s()
        if events and report is not None:
            events.append(report)
        return min(events, default=None)

    def _arrive(self, index: int, attempt: int, now: float) -> None:
        """The client's own check, the gateway's, the router's choice, the replica's checks, the queue."""
        request, row = self.requests[index], Row(index, attempt, now, len(self.rows))
        self.rows.append(row)
        if self._throttled(index, attempt, now):
            self._refuse(row, "throttled", now)
            return
        if self.bucket is not None and not self.bucket.accepts(now):
            self._refuse(row, "rate_limited", now)
            return
        job = arrive(self.setup, request, row, index, now)
        row.replica = self.router.choose(job, now)
        if row.replica is None:
            self._refuse(row, "no_replica", now)
            return
        replica = self.replicas[row.replica]
        reason = replica.refusal(job, now)
        if reason is not None:
            self._refuse(row, reason, now)
            return
        replica.waiting.join(job)

    def _land(self, now: float) -> None:
        """Those whose KV has come go to a replica that writes, in order of arrival.

        What comes at the horizon is routed, too, though no step starts there.
        """
        came = [job for replica in self.readers for job in replica.landed(now)]
        for job in sorted(came, key=lambda job: job.row.order or 0):
            job.row.landed_s, job.priority = now, 0  # first come, first served, whatever the class
            chosen = self.decode_router.choose(job, now)
            assert chosen is not None
            job.row.writer = len(self.readers) + chosen
            self.writers[chosen].waiting.join(job)

    def _throttled(self, index: int, attempt: int, now: float) -> bool:
        """The last noticing point, this instant included, decides how probable that is."""
        throttle, every_s = self.setup.throttle, sync_s(self.setup)
        if throttle is None or every_s is None:
            return False
        point = last_until(every_s, now)
        if point is None:
            return False
        return self.draws.throttle(attempt, index) < refusal_probability(throttle, self.rows, point)

    def _refuse(self, row: Row, reason: str, now: float) -> None:
        row.state, row.reason, row.left_s = "rejected", reason, now
        self.arrivals.ended(row.request, now, refused=True)
        if reason != "too_long":
            self.retries.failed(row.request, row.attempt, now, refused=True)

    def _ended(self, job: Job, now: float) -> None:
        """Without a state its client has given up; what the server makes of it later, nobody waits for."""
        row = job.row
        refused = row.state == "rejected"
        self.arrivals.ended(row.request, now, refused)
        if row.state != "completed":
            self.retries.failed(row.request, row.attempt, now, refused)

    def _stop(self) -> None:
        """The horizon: whoever is still there is unfinished, or timed out if its ignored client has given up.

        A running request whose boundary lies beyond the horizon keeps what happened to it so far, and no more.
        """
        horizon = self.setup.horizon_s
        for replica in self.replicas:
            for job in [*replica.unfinished(), *replica.travelling, *replica.waiting]:
                assert horizon is not None, "somebody waits, and nothing will ever happen"
                job.row.state = "unfinished"
                if self.setup.on_timeout == "ignore":
                    job.row.reason = deadlines.missed(self.setup, job, horizon)
                    if job.row.reason is not None:
                        job.row.state = "timed_out"

    def _outcome(self) -> Outcome:
        """Without a horizon the run ends with its last event: somebody leaves, or arrives and is refused."""
        horizon = self.setup.horizon_s
        if horizon is None:
            horizon = max((row.left_s for row in self.rows if row.left_s is not None), default=0.0)
        arrived = {row.request for row in self.rows}
        rows = self.rows + [Row(index) for index in range(len(self.requests)) if index not in arrived]
        rows.sort(key=lambda row: (row.request, row.attempt))
        return Outcome(
            requests=rows,
            steps=[replica.steps for replica in self.replicas],
            gaps=[gap for row in rows for gap in row.gaps],
            horizon_s=horizon,
        )
