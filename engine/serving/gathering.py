"""The seeds' requests end to end: cut into lanes before they run, put back in order afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.traffic import ROUTER, Requests

from .attempts import Attempts, Handover, missed
from .gateway import rate_limited
from .lanes import UNLIMITED, Floats, Ints, Lanes, Served, StepLog
from .lockstep import Lockstep
from .pipelined import Pipelined
from .split import ROUTERS
from .states import CODEL, COMPLETED, RATE_LIMITED, REJECTED, TIMED_OUT, TOO_LONG, UNFINISHED
from .steplog import Sink

if TYPE_CHECKING:
    from .fleet import Fleet


class Gathering:
    """Every attempt of a run and what is known of it so far; all columns (n,), seed after seed."""

    def __init__(self, fleet: Fleet, seed_start: Ints) -> None:
        self.fleet, self.seed_start = fleet, seed_start
        n = int(seed_start[-1])
        self.arrival: Floats = np.empty(0)
        self.prompt = self.output = self.cached = self.priority = np.empty(0, np.int32)
        self.class_id: NDArray[np.int16] = np.empty(0, np.int16)
        self.class_names: tuple[str, ...] = ()
        self.replica = np.zeros(n, np.int32)
        self.scheduled, self.first, self.finish = np.full((3, n), np.nan)
        self.dropped: Floats = np.full(n, np.nan) if fleet.drops else np.empty(0)
        # Zeros that are never touched cost no memory.
        self.spent_tokens, self.spent_s = np.zeros(n, np.int64), np.zeros(n)
        self.state = np.full(n, UNFINISHED, np.int8)
        self.reason = np.zeros(n, np.int8)
        self.preemptions = np.zeros(n, np.int32)
        self.last_token, self.stall_gap = np.zeros((2, n))
        self.waits = np.zeros((3, n)) if fleet.keeps_waits else np.empty((3, 0))
        self.request: Ints | None = None  # where an attempt isn't a request of its own: which request of its seed,
        self.attempt: Ints | None = None  # and which attempt at it
        self.handover: Handover | None = None

    def too_long(self, prompt: NDArray[Any], output: NDArray[Any]) -> NDArray[np.bool_]:
        """Which requests could never finish in the replica, with answers cut to what is reserved for them."""
        model, reserved = self.fleet.model, self.fleet.batching.reserve_output_tokens
        answer = output if reserved is None else np.int32(reserved)
        refused: NDArray[np.bool_] = prompt + answer > (model.kv_capacity_tokens or UNLIMITED)
        refused |= prompt + output > (model.context_limit or UNLIMITED)
        return refused

    def refuse(self, entry: Ints, reason: int | NDArray[np.int8]) -> None:
        """These attempts are refused for ``reason``, one for all or one each."""
        self.state[entry] = REJECTED
        self.reason[entry] = reason

    def take(self, served: Served, at: Ints, entry: Ints) -> None:
        """Attempts ``entry`` fared as numbers ``at`` of a batch of lanes did."""
        self.scheduled[entry] = served.scheduled_s[at]
        self.first[entry] = served.first_token_s[at]
        finish = served.finish_s[at]
        self.finish[entry] = finish
        if served.preemptions.size:
            self.preemptions[entry] = served.preemptions[at]
            self.last_token[entry] = served.last_token_s[at]
        if served.stall_gap_s.size:
            self.stall_gap[entry] = served.stall_gap_s[at]
        self.state[entry[~np.isnan(finish)]] = COMPLETED
        if served.dropped_s.size:
            self.dropped[entry] = served.dropped_s[at]
        if served.spent_s.size:
            self.spent_tokens[entry] = served.spent_tokens[at]
            self.spent_s[entry] = served.spent_s[at]
        if served.waits is not None:
            self.waits[:, entry] = [column[at] for column in served.waits]
        if served.refused.size:
            reason = served.refused[at]
            self.refuse(entry[reason > 0], reason[reason > 0])

    def lanes(self, start: Ints, arrival: Floats, prompt: Ints, output: Ints, cached: Ints, **more: Any) -> Lanes:
        """The fleet's settings for lanes whose requests begin at ``start``; see ``Lanes``."""
        fleet, model, b = self.fleet, self.fleet.model, self.fleet.batching
        count = start.size - 1

        def each(value: int | None) -> Ints:
            return np.full(count, UNLIMITED if value is None else value, np.int64)

        return Lanes(
            arrival_s=arrival,
            prompt_tokens=prompt,
            output_tokens=output,
            cached_prefix_tokens=cached,
            start=start,
            horizon_s=np.full(count, np.inf if fleet.horizon_s is None else fleet.horizon_s),
            base=model.base,
            base_at=np.zeros(count, np.int64),
            seq_s=np.full(count, model.seq_s),
            kv_token_s=np.full(count, model.kv_token_s),
            prefill_pair_s=np.full(count, model.prefill_pair_s),
            kv_capacity_tokens=each(model.kv_capacity_tokens),
            max_num_seqs=each(b.max_num_seqs),
            max_num_batched_tokens=each(b.max_num_batched_tokens),
            kv_policy=b.kv_policy,
            policy=b.policy,
            stages=model.stages,
            until_scheduled=fleet.until_scheduled,
            max_outstanding=None if fleet.max_outstanding is None else each(fleet.max_outstanding),
            max_queued_tokens=None if fleet.max_queued_tokens is None else each(fleet.max_queued_tokens),
            deadlines=fleet.server_deadlines,
            shed_ttft_s=fleet.shed_ttft_s,
            codel=fleet.codel,
            lifo_after_s=fleet.lifo_after_s,
            watermark=b.watermark,
            reserve_output_tokens=b.reserve_output_tokens,
            batch_wait_s=b.batch_wait_s,
            keep_account=fleet.deadlines.while_waiting < np.inf,
            keep_waits=fleet.keeps_waits,
            **more,
        )

    def finish_up(self) -> Attempts:
        """All attempts with their outcomes, deadlines judged."""
        if self.fleet.deadlines.while_waiting < np.inf and self.dropped.size:
            self._judge_deadlines()
        dropped = self.dropped if self.dropped.size else np.broadcast_to(np.nan, self.arrival.shape)
        return Attempts(
            self.seed_start, self.arrival, self.prompt, self.output, self.cached, self.class_id, self.priority,
            self.class_names, self.replica, self.scheduled, self.first, self.finish, dropped, self.state, self.reason,
            self.preemptions, self.last_token, self.stall_gap, self.spent_tokens, self.spent_s, self.request,
            self.attempt, self.waits[0], self.waits[1], self.waits[2], self.handover,
        )  # fmt: skip

    def _judge_deadlines(self) -> None:
        """Why those that were dropped were; and, where clients that gave up are ignored, whom they gave up on."""
        fleet = self.fleet
        ended = np.where(np.isnan(self.dropped), self.finish, self.dropped)
        until = np.where(np.isnan(ended), np.inf if fleet.horizon_s is None else fleet.horizon_s, ended)
        reason = missed(self.arrival, self.scheduled, self.first, until, fleet.deadlines)
        if fleet.deadlines == fleet.server_deadlines:  # what is still running past its deadline ends as unfinished
            reason[np.isnan(self.dropped)] = 0
        # Of one whose client had given up before its turn came to be dropped, the client's word counts.
        late = (reason > 0) & ((self.state != REJECTED) | (self.reason == CODEL))
        self.state[late] = TIMED_OUT
        self.reason[late] = reason[late]
        self.dropped[late] = ended[late]
        self.finish[late] = np.nan


class OpenGathering(Gathering):
    """Requests whose times are known before: each seed's are split over the replicas, then everything runs."""

    def __init__(self, fleet: Fleet, requests: Sequence[Requests]) -> None:
        sizes = [r.arrival_s.size for r in requests]
        super().__init__(fleet, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        self.arrival = _column(requests, "arrival_s", np.float64)
        self.prompt = _column(requests, "prompt_tokens", np.int32)
        self.output = _column(requests, "output_tokens", np.int32)
        if fleet.batching.reserve_output_tokens is not None:
            self.output = np.minimum(self.output, np.int32(fleet.batching.reserve_output_tokens))
        self.cached = _column(requests, "cached_prefix_tokens", np.int32)
        self.class_id = _column(requests, "class_id", np.int16)
        self.priority = _column(requests, "priority", np.int32)
        self.class_names = requests[0].class_names

    def route(self, first_seed: int) -> None:
        """Pass the gateway, choose replicas, and refuse what could never finish there."""
        fleet, split = self.fleet, ROUTERS[self.fleet.routing.policy]
        for i, (lo, hi) in enumerate(zip(self.seed_start, self.seed_start[1:], strict=False)):
            part, passed = slice(lo, hi), np.ones(hi - lo, np.bool_)
            if fleet.rate_limit is not None:
                passed = ~rate_limited(self.arrival[part], *fleet.rate_limit)
                self.replica[part] = -1
                self.refuse(lo + np.flatnonzero(~passed), RATE_LIMITED)
            routed = lo + np.flatnonzero(passed) if fleet.rate_limit is not None else part
            self.replica[routed] = split(int(passed.sum()), fleet.replicas, first_seed + i, ROUTER)
        self.refuse(np.flatnonzero(self.too_long(self.prompt, self.output) & (self.state != REJECTED)), TOO_LONG)

    def run(self, lo: int, hi: int, sink: Sink) -> Served:
        """Serve seeds lo..hi-1 as one batch of lanes and take their outcomes over."""
        rows = self.rows(lo, hi)
        engine = Pipelined if self.fleet.model.stages > 1 else Lockstep
        served = engine(self.lanes_of(rows), numbered(sink, lo * self.fleet.replicas)).run()
        self.take(served, rows.at, rows.entry)
        return served

    def rows(self, lo: int, hi: int) -> Rows:
        """The attempts of seeds lo..hi-1 that weren't refused, laid out over lanes, seed after seed."""
        replicas = self.fleet.replicas
        part = slice(int(self.seed_start[lo]), int(self.seed_start[hi]))
        entry = np.flatnonzero(self.state[part] != REJECTED)
        lane = (self.seeds_of(lo, hi) * replicas + self.replica[part])[entry]
        return Rows.of(entry + part.start, lane, (hi - lo) * replicas)

    def seeds_of(self, lo: int, hi: int) -> Ints:
        """Of every attempt of seeds lo..hi-1: which of them it belongs to, from 0."""
        return np.repeat(np.arange(hi - lo), np.diff(self.seed_start[lo : hi + 1]))

    def lanes_of(self, rows: Rows) -> Lanes:
        """The lanes that serve some attempts."""
        urgency, rank = np.unique(self.priority[rows.entry], return_inverse=True)
        ranks = None
        if urgency.size > 1:
            ranks = np.zeros(rows.total, np.int64)
            ranks[rows.at] = rank
        prompt, output = rows.flat(self.prompt), rows.flat(self.output)
        return self.lanes(rows.start, rows.times(self.arrival), prompt, output, self.cached_of(rows), rank=ranks)

    def cached_of(self, rows: Rows) -> Ints:
        """Tokens of shared prefix, flat."""
        return rows.flat(self.cached, 0) if self.cached.any() else np.zeros(rows.total, np.int64)


@dataclass(frozen=True, slots=True)
class Rows:
    """Attempts laid out over lanes, as ``Lanes`` wants them."""

    entry: Ints
    """(n,): the attempts, lane after lane, in a lane in the order given."""
    at: Ints
    """(n,): their places in flat arrays."""
    start: Ints
    """(lanes + 1,): see ``Lanes``."""

    @classmethod
    def of(cls, entry: Ints, lane: NDArray[Any], count: int) -> Rows:
        """Attempts ``entry`` (n,) in order of time, each in its ``lane`` (n,) of ``count``."""
        if count <= 1 << 16:
            lane = lane.astype(np.uint16)  # NumPy's stable sort of 16-bit keys is a radix sort
        order = np.argsort(lane, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(lane, minlength=count) + 1)]).astype(np.int64)
        return cls(entry[order], np.arange(entry.size) + lane[order], start)  # one sentinel for every lane before

    @property
    def total(self) -> int:
        """Length of flat arrays."""
        return int(self.start[-1])

    def flat(self, values: NDArray[Any], sentinel: int = 1) -> Ints:
        """``values``, one an attempt of the run, where these attempts are."""
        out = np.full(self.total, sentinel, np.int64)
        out[self.at] = values[self.entry]
        return out

    def times(self, values: Floats) -> Floats:
        """Likewise; sentinels never come."""
        out = np.full(self.total, np.inf)
        out[self.at] = values[self.entry]
        return out


def numbered(sink: Sink, before: int) -> Sink:
    """``sink`` with lanes numbered over all batches: ``before`` lanes went before this one's."""

    def take(log: StepLog) -> None:
        log.lane += before
        sink(log)

    return take


def _column(requests: Sequence[Requests], name: str, kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([getattr(r, name) for r in requests]).astype(kind, copy=False)
