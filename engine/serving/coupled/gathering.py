"""Runs a fleet whose replicas, clients and router react to one another, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.serving.attempts import Attempts
from engine.serving.gathering import Gathering
from engine.serving.inbox import Leavers
from engine.serving.lanes import Fed, Floats, Ints, Served
from engine.serving.states import CODEL, NO_REPLICA, TOO_LONG
from engine.serving.steplog import Sink
from engine.serving.windowed import Windowed
from engine.traffic import Requests

from .clock import Grid, noticing_s
from .firsts import Firsts
from .gateway import Gateway
from .impatience import Impatience
from .retries import Retrying, Tries
from .scaling import Levels, Lives, Scaling
from .sent import Sent

if TYPE_CHECKING:
    from engine.serving.fleet import Fleet


QUEUE_EVERY_S = 1.0
"""How close the moments are at which a scaled fleet's queue is known."""


class CoupledGathering(Gathering):
    """All seeds at once. Lane seed * replicas + replica is a replica; a seed's first attempts are known before."""

    def __init__(self, fleet: Fleet, requests: Sequence[Requests], first_seed: int, sink: Sink) -> None:
        sizes = np.array([r.arrival_s.size for r in requests], np.int64)
        super().__init__(fleet, np.concatenate([[0], np.cumsum(sizes)]))
        self.firsts = Firsts(fleet, requests, self.seed_start)
        self.seeds, self.replicas = sizes.size, fleet.places
        self.end_s = np.inf if fleet.horizon_s is None else fleet.horizon_s
        names = [first_seed + i for i in range(self.seeds)]
        self.gateway = Gateway(fleet, names, sizes, self.replicas)
        scaler, capacity = fleet.autoscaler, fleet.model.kv_capacity_tokens
        self.scaling = None
        if scaler is not None:
            self.scaling = Scaling(scaler, names, fleet.replicas, self.replicas, capacity)
            self.gateway.taking = self.scaling.taking
        self.retrying = Retrying(fleet.retries, names, sizes, self.end_s) if fleet.retries.most else None
        self.impatience = Impatience(fleet.deadlines) if fleet.ignores_clients and fleet.retries.most else None
        routing = fleet.routing
        self.live = routing.load_aware and not routing.report_interval_s
        interval = routing.report_interval_s if routing.load_aware else None
        self.reports = Grid(interval or np.inf, self.seeds)
        d = fleet.deadlines
        self.patience_s = min(d.timeout_s, d.ttft_timeout_s) if fleet.ignores_clients else np.inf
        self.samples = Grid(np.inf if self.scaling is None else self.scaling.sample_every_s, self.seeds)
        self.notices = Grid(self._noticing_s(interval), self.seeds)
        self.now: Floats = np.zeros(self.seeds)
        self.engine = Windowed(self._empty_lanes(), sink)
        if self.retrying is not None or self.gateway.throttling is not None:
            self.engine.queue.leavers = Leavers()
        self.sent: list[Sent] = []
        self._late: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty(0))
        self._of_number = np.zeros((4, self.engine.book.total), np.int64)  # seed, request, attempt, replica
        self._present, self._sampled_s = np.empty(0, np.int64), 0.0  # for the autoscaler: who was there when it looked

    def _noticing_s(self, report_interval_s: float | None) -> float:
        fleet = self.fleet
        if not fleet.retries.most and fleet.throttle is None:
            return float(np.inf)
        return noticing_s(
            backoff_s=fleet.retries.backoff_s if fleet.retries.most else None,
            throttle_window_s=None if fleet.throttle is None else fleet.throttle.window_s,
            report_interval_s=report_interval_s,
        )

    def _empty_lanes(self) -> Any:
        """Lanes with room for requests, more of which is made when it is needed."""
        count, room = self.seeds * self.replicas, 2 * int(self.seed_start[-1]) + 2
        ones = np.ones(room, np.int64)
        f = self.firsts
        answer = max(int(f.output.max(initial=0)), self.fleet.batching.reserve_output_tokens or 0)
        fed = Fed(bool(f.cached.any()), f.urgencies, int(f.prompt.max(initial=0)) + answer)
        start = np.zeros(count + 1, np.int64)
        return self.lanes(start, np.full(room, np.inf), ones, ones.copy(), np.zeros(room, np.int64), fed=fed)

    # -- the loop ------------------------------------------------------------------------------------------------------

    def run(self) -> Served:
        """Serve everybody; returns what the replicas say."""
        while True:
            self._decide()
            until = self._next_stop()
            self._hand_over(until)
            self.engine.run_to(np.repeat(until, self.replicas))
            self.now = until
            self._take_leavers()
            if not self._goes_on():
                break
        served = self.engine.end()
        self._settle(served)
        return served

    def _decide(self) -> None:
        """What clients and routers learn at the start of a window."""
        looking = self.notices.due(self.now)
        if np.count_nonzero(looking):
            if self.retrying is not None:
                self.retrying.look(looking, self.now, self.firsts.taken)
            if self.gateway.throttling is not None:
                self.gateway.throttling.look(looking, self.now)
        if self.scaling is not None:
            self._scale(self.scaling)
        if self.gateway.router.routing.load_aware:
            due = self.reports.due(self.now)
            seed = (np.ones(self.seeds, np.bool_) if self.live else due).nonzero()[0]
            if seed.size:
                engine = self.engine
                load = engine.kv_held() if self.fleet.routing.reads_kv else engine.outstanding()
                self.gateway.router.report(seed, load.reshape(self.seeds, self.replicas)[seed])

    def _scale(self, scaling: Scaling) -> None:
        """Samples and ticks that are due; both come for all seeds at once."""
        now = float(self.now[0])
        ticks = scaling.next_tick_s <= now
        if self.samples.due(self.now).any() or ticks:
            engine, shape = self.engine, (self.seeds, self.replicas)
            outstanding = engine.outstanding()
            present, waiting = self._means(now)
            levels = Levels(
                outstanding.reshape(shape),
                present.reshape(shape),
                waiting.reshape(shape),
                engine.kv_held().reshape(shape),
                engine.busy_until().reshape(shape),
            )
            scaling.sample(now, levels, engine.s.t.reshape(shape))
        if ticks:
            scaling.tick(now)

    def _means(self, now: float) -> tuple[Floats, Floats]:
        """(lanes,): requests in each replica, and of these those not begun, averaged over the time since the last
        sample."""
        number, book, since = self._present, self.engine.book, self._sampled_s
        left = np.fmin(book.finish[number], book.dropped[number]) if book.dropped.size else book.finish[number]
        left = np.where(self.engine.queue.refusals(number) > 0, np.fmin(left, book.arrival[number]), left)
        begin, end = np.maximum(book.arrival[number], since), np.fmin(left, now)
        begun = np.fmin(book.scheduled[number], end)
        seed, _, _, replica = self._of_number[:, number]
        lane, count = seed * self.replicas + replica, self.seeds * self.replicas
        passed = max(now - since, 1e-9)
        self._present, self._sampled_s = number[~(left <= now)], now
        return (
            np.bincount(lane, np.maximum(end - begin, 0.0), count) / passed,
            np.bincount(lane, np.maximum(begun - begin, 0.0), count) / passed,
        )

    def _next_stop(self) -> Floats:
        until = np.minimum(np.minimum(self.reports.next_s, self.notices.next_s), self.samples.next_s)
        if self.scaling is not None:
            until = np.minimum(until, self.scaling.next_tick_s)
        if self.live:
            until = np.minimum(until, self.firsts.next_after(self.now))
            if self.retrying is not None:
                p = self.retrying.pending
                later = p.time_s > self.now[p.seed]
                np.minimum.at(until, p.seed[later], p.time_s[later])
        return np.minimum(until, self.end_s)

    def _goes_on(self) -> bool:
        if self.end_s < np.inf:
            return bool((self.now < self.end_s).any())
        waiting = self.firsts.left() or (self.retrying is not None and self.retrying.busy)
        return bool(waiting or self.engine.outstanding().any())

    def _hand_over(self, until: Floats) -> None:
        """Attempts that come before ``until`` (seeds,) pass the gateway and go to their replicas."""
        tries = self.firsts.take(until)
        if self.retrying is not None:
            tries = tries.plus(self.retrying.take(until))
        if not tries.seed.size:
            return
        tries = tries.at(np.lexsort((tries.request, tries.attempt > 0, tries.time_s, tries.seed)))
        f, entry = self.firsts, self.seed_start[tries.seed] + tries.request
        size = f.prompt[entry] - f.cached[entry]
        weight = size if self.fleet.routing.reads_kv else np.ones(entry.size, np.int64)
        replica, reason = self.gateway.send(tries, weight)
        if self.scaling is not None:
            self.scaling.came(tries.seed, reason == NO_REPLICA)
        reason[f.too_long[entry] & (reason == 0)] = TOO_LONG
        number = np.zeros(entry.size, np.int64)
        go = (reason == 0).nonzero()[0]
        if go.size:
            lane = tries.seed[go] * self.replicas + replica[go]
            go = go[np.argsort(lane, kind="stable")]
            number[go] = self._feed(tries.at(go), entry[go], replica[go])
        self.sent.append(Sent(tries, entry, replica, number, reason))

    def _feed(self, tries: Tries, entry: Ints, replica: Ints) -> Ints:
        f, lane = self.firsts, tries.seed * self.replicas + replica
        number = self.engine.queue.feed(
            lane, tries.time_s, f.prompt[entry], f.output[entry], f.cached[entry], f.rank[entry]
        )
        if number[-1] >= self._of_number.shape[1]:
            more = max(int(number[-1]) + 1, 2 * self._of_number.shape[1]) - self._of_number.shape[1]
            self._of_number = np.pad(self._of_number, ((0, 0), (0, more)))
        self._of_number[:, number] = tries.seed, tries.request, tries.attempt, replica
        if self.scaling is not None:
            self._present = np.concatenate([self._present, number])
        if self.impatience is not None:
            self.impatience.watch(number, tries.time_s)
        return number

    def _take_leavers(self) -> None:
        """Who was refused, gave up, or was dropped in the window, as its client sees it."""
        if self.retrying is None and self.gateway.throttling is None:
            return
        sent = self.sent[-1] if self.sent and not self.sent[-1].told else None
        if sent is not None:
            sent.told = True
            self._tell_refused(sent)
        book, queue = self.engine.book, self.engine.queue
        assert queue.leavers is not None
        number, when = (np.concatenate(pair) for pair in zip(self._late, queue.leavers.pop(), strict=True))
        later = when > self.now[self._of_number[0, number]]
        self._late = (number[later], when[later])
        number, when = number[~later], when[~later]
        failed = queue.refusals(number) == CODEL
        if self.gateway.throttling is not None:
            patient = when < book.arrival[number] + self.patience_s  # who had given up before isn't refused
            self.gateway.throttling.refuse(number[failed & patient])
        if self.retrying is None:
            return
        if book.dropped.size:
            failed |= ~np.isnan(book.dropped[number])
        number, when = number[failed], when[failed]
        if self.impatience is not None:
            number, when = self.impatience.first_to_fail(book, queue.refusals, number, when, self._now_of)
        self.retrying.failed(Tries(when, *self._of_number[:3, number]))

    def _now_of(self, number: Ints) -> Floats:
        return np.asarray(self.now[self._of_number[0, number]])

    def _tell_refused(self, sent: Sent) -> None:
        """Clients of those who were refused at their arrival know it at once."""
        reason = np.where(sent.number > 0, self.engine.queue.refusals(sent.number), sent.reason)
        refused = (reason > 0) & (reason != CODEL)
        if self.gateway.throttling is not None:
            self.gateway.throttling.count(sent.tries, sent.number, ~refused)
        if self.retrying is not None:
            self.retrying.failed(sent.tries.at(refused & (reason != TOO_LONG)))

    def lives(self, attempts: Attempts, horizon_s: Floats) -> Lives | None:
        """When replicas came and went, and the queue over time; ``None`` without an autoscaler."""
        if self.scaling is None:
            return None
        time = np.arange(0.0, float(horizon_s.max(initial=0.0)) + QUEUE_EVERY_S, QUEUE_EVERY_S)
        queue = np.zeros((time.size, self.seeds), np.int64)
        until = np.fmin(attempts.scheduled_s, attempts.left_s)
        for i, (lo, hi) in enumerate(zip(attempts.seed_start, attempts.seed_start[1:], strict=False)):
            came, gone = np.sort(attempts.arrival_s[lo:hi]), np.sort(until[lo:hi])
            queue[:, i] = np.searchsorted(came, time, side="right") - np.searchsorted(gone, time, side="right")
        return self.scaling.lives(time, queue)

    # -- afterwards ----------------------------------------------------------------------------------------------------

    def _settle(self, served: Served) -> None:
        """Every attempt's facts and outcome, in order of (seed, request, attempt)."""
        joined = Sent.joined(self.sent)
        tries = joined.tries
        order = np.lexsort((tries.attempt, tries.request, tries.seed))
        tries, entry = tries.at(order), joined.entry[order]
        number, reason = joined.number[order], joined.reason[order]
        counts = np.bincount(tries.seed, minlength=self.seeds)
        super().__init__(self.fleet, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        f = self.firsts
        self.arrival, self.request, self.attempt = tries.time_s, tries.request, tries.attempt
        self.prompt, self.output, self.cached = (
            column[entry].astype(np.int32) for column in (f.prompt, f.output, f.cached)
        )
        self.class_id, self.priority, self.class_names = f.class_id[entry], f.priority[entry], f.class_names
        self.replica = joined.replica[order].astype(np.int32)
        self.refuse((reason > 0).nonzero()[0], reason[reason > 0])
        fed = (number > 0).nonzero()[0]
        self.take(served, number[fed], fed)
