"""A slow, literal simulator of a fleet with a static split: the judge of the fast engine.

One instant after another, one step after another, plain Python; it shares nothing with the engine. Where the
rules of the simulation leave something open, the choice is in the docstring of the function that makes it.

Time moves from one instant to the next at which anything happens anywhere. At an instant, in this order: (a) steps
that end deliver their tokens and complete requests leave; (b) requests past a deadline leave; (c) requests due
arrive; (d) replicas without a step in progress choose their work and start. Replicas don't touch one another, so
doing each phase for all of them keeps every replica's own order.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference import deadlines
from tests.reference.arrivals import Split, TokenBucket, source
from tests.reference.job import Job, arrive
from tests.reference.model import Outcome, Request, Row, Setup, Step
from tests.reference.replica import Replica

__all__ = ["Outcome", "Request", "Row", "Setup", "Step", "simulate"]


def simulate(setup: Setup, requests: Sequence[Request]) -> Outcome:
    """Simulate the requests (open: any order, closed: each user's in order) and say what became of each."""
    return _Fleet(setup, requests).run()


class _Fleet:
    def __init__(self, setup: Setup, requests: Sequence[Request]) -> None:
        self.setup, self.requests = setup, requests
        self.rows = [Row() for _ in requests]
        self.arrivals = source(setup, requests)
        self.bucket = TokenBucket(*setup.rate_limit) if setup.rate_limit is not None else None
        self.split = Split(setup.replicas)
        self.replicas = [Replica(setup, self._ended) for _ in range(setup.replicas)]
        self.arrived = 0

    def run(self) -> Outcome:
        horizon = self.setup.horizon_s
        now = self._next_instant()
        while now is not None and (horizon is None or now <= horizon):
            for replica in self.replicas:
                replica.deliver(now)
            for replica in self.replicas:
                replica.drop_late(now)
            while self.arrivals.next_s() == now:
                self._arrive(self.arrivals.pop(), now)
            if now == horizon:
                break  # no step starts at the horizon
            for replica in self.replicas:
                replica.start(now)
            before, now = now, self._next_instant()
            assert now is None or now > before, "time stands still"
        self._stop()
        return self._outcome()

    def _next_instant(self) -> float | None:
        events = [at for replica in self.replicas for at in replica.next_events()]
        due = self.arrivals.next_s()
        if due is not None:
            events.append(due)
        return min(events, default=None)

    def _arrive(self, index: int, now: float) -> None:
        """The gateway's check, the router's choice, the replica's checks, the queue."""
        request, row = self.requests[index], self.rows[index]
        row.arrival_s, row.order = now, self.arrived
        self.arrived += 1
        if self.bucket is not None and not self.bucket.accepts(now):
            self._refuse(index, "rate_limited", now)
            return
        row.replica = self.split.choose(request)
        replica = self.replicas[row.replica]
        job = arrive(self.setup, request, row, index, now)
        reason = replica.refusal(job)
        if reason is not None:
            self._refuse(index, reason, now)
            return
        replica.waiting.join(job)

    def _refuse(self, index: int, reason: str, now: float) -> None:
        row = self.rows[index]
        row.state, row.reason, row.left_s = "rejected", reason, now
        self.arrivals.ended(index, now, refused=True)

    def _ended(self, job: Job, now: float) -> None:
        self.arrivals.ended(job.index, now, refused=False)

    def _stop(self) -> None:
        """The horizon: whoever is still there is unfinished, or timed out if its ignored client has given up.

        A running request whose boundary lies beyond the horizon keeps what happened to it so far, and no more.
        """
        horizon = self.setup.horizon_s
        for replica in self.replicas:
            for job in [*replica.unfinished(), *replica.waiting]:
                assert horizon is not None, "somebody waits, and nothing will ever happen"
                job.row.state = "unfinished"
                if self.setup.on_timeout == "ignore":
                    job.row.reason = deadlines.missed(self.setup, job, horizon)
                    if job.row.reason is not None:
                        job.row.state = "timed_out"

    def _outcome(self) -> Outcome:
        """Without a horizon the run ends with its last event, and that is always somebody leaving."""
        horizon = self.setup.horizon_s
        if horizon is None:
            horizon = max((row.left_s for row in self.rows if row.left_s is not None), default=0.0)
        return Outcome(
            requests=self.rows,
            steps=[replica.steps for replica in self.replicas],
            gaps=[gap for row in self.rows for gap in row.gaps],
            horizon_s=horizon,
        )
