"""Which replica a request goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.reference.job import Job
from tests.reference.model import Setup
from tests.reference.points import LOAD_AWARE
from tests.reference.replica import Replica


class Router:
    """`uniform(i)` is the i-th random number that it uses."""

    def __init__(self, setup: Setup, replicas: Sequence[Replica], uniform: Callable[[int], float]) -> None:
        self._setup, self._replicas, self._uniform = setup, replicas, uniform
        self._turn = 0  # requests routed so far
        self._used = 0  # random numbers used so far
        self._reports = 0  # taken so far
        self._said = [0] * len(replicas)  # the load in each replica's last report
        self._sent = [0] * len(replicas)  # what the router has added to it since
        self._live_s = -1.0  # when live reports were taken last
        self._last = -1  # whoever was chosen last

    # -- reports ---------------------------------------------------------------------------------------------

    def next_report_s(self) -> float | None:
        """When replicas report next; None when they don't or do whenever somebody arrives."""
        if self._setup.routing in LOAD_AWARE and self._setup.report_interval_s > 0:
            return self._reports * self._setup.report_interval_s
        return None

    def hear(self, now: float) -> None:
        """Take the reports that are due now: after departures, before arrivals, from routable replicas or not."""
        if self.next_report_s() == now:
            self._take_reports()
            self._reports += 1

    def _take_reports(self) -> None:
        by_kv = self._setup.routing == "least_kv"
        self._said = [replica.kv_held if by_kv else replica.outstanding for replica in self._replicas]
        self._sent = [0] * len(self._replicas)

    # -- choices ---------------------------------------------------------------------------------------------

    def choose(self, job: Job, now: float) -> int | None:
        """Index of the replica that a request arriving now is sent to, accepted there or not; None: nobody takes any.

        One that names its replica, or whose user has one, goes there, but not in the second of two pools. Without a
        routable replica no turn is taken and no luck used.
        """
        candidates = [i for i in range(len(self._replicas)) if self._routable(i, now)]
        if not candidates:
            return None
        turn, self._turn = self._turn, self._turn + 1
        if self._setup.policy != "decode_only":
            if job.request.replica is not None:
                return job.request.replica
            if job.request.user is not None:
                turn = job.request.user
        chosen = self._by_policy(candidates, turn, now)
        self._last = chosen
        if self._setup.count_own_sends:
            self._sent[chosen] += job.size if self._setup.routing == "least_kv" else 1
        return chosen

    def _routable(self, replica: int, now: float) -> bool:
        intervals = self._setup.routable
        return intervals is None or any(begin <= now < end for begin, end in intervals[replica])

    def _by_policy(self, candidates: list[int], turn: int, now: float) -> int:
        n = len(candidates)
        if self._setup.routing == "round_robin":
            return candidates[turn % n]
        if self._setup.routing == "random":
            return candidates[int(self._draw() * n)]
        if self._setup.report_interval_s == 0 and self._live_s != now:
            self._take_reports()  # once an instant: what is sent at that instant are the router's own sends
            self._live_s = now
        if self._setup.routing == "power_of_two":
            first, second = self._draw(), self._draw()
            if n > 1:
                i, j = int(first * n), int(second * (n - 1))
                candidates = [candidates[i], candidates[j + 1 if j >= i else j]]
        return self._least_loaded(candidates)

    def _least_loaded(self, candidates: list[int]) -> int:
        load = {i: self._said[i] + self._sent[i] for i in candidates}
        tied = [i for i in candidates if load[i] == min(load.values())]
        if self._setup.ties == "lowest":
            return min(tied)
        return min(tied, key=lambda i: (i - self._last - 1) % len(self._replicas))  # in turn after the last

    def _draw(self) -> float:
        self._used += 1
        return self._uniform(self._used - 1)
