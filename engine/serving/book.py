"""The requests of all lanes: what each asks for, and what has happened to it so far. Flat arrays, as in ``Lanes``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .lanes import Floats, Ints, Lanes, Served

if TYPE_CHECKING:
    from .spending import Spending
    from .waits import Waits


_ROOM = (
    ("arrival", np.inf), ("prompt", 1), ("output", 1), ("cached", 0), ("size", 1), ("scheduled", np.nan),
    ("first", np.nan), ("finish", np.nan), ("dropped", np.nan), ("preemptions", 0), ("out", 0), ("last_token", 0),
    ("stall_gap", 0), ("since", np.nan), ("turn", 0),
)  # fmt: skip
"""Arrays with an entry a request, and what a request that never arrives has there."""


class Book:
    """Facts and outcomes of every request; an index into these arrays is the request's number.

    A lane's numbers rise in order of arrival, so among requests that were admitted first come, first served, with
    nobody skipped, the one admitted last has the highest.
    """

    def __init__(self, lanes: Lanes) -> None:
        self.arrival = lanes.arrival_s
        self.prompt, self.output, self.cached = lanes.prompt_tokens, lanes.output_tokens, lanes.cached_prefix_tokens
        self.rank = lanes.rank
        self.has_prefix = bool(self.cached.any() if lanes.closed is None else lanes.closed.cached_prefix_tokens.any())
        if lanes.fed is not None:
            self.has_prefix = lanes.fed.has_prefix
        own = self.has_prefix or lanes.closed is not None or lanes.fed is not None
        self.size: Ints = self.prompt - self.cached if own else self.prompt
        """Tokens to prefill, before any preemption."""
        self.total = self.arrival.size
        self.scheduled, self.first, self.finish = np.full((3, self.total), np.nan)
        if lanes.first_s is not None:
            self.first = lanes.first_s
        self._issued = lanes.issued_s
        self.deadlines = lanes.deadlines
        timed = lanes.deadlines.while_waiting < np.inf or lanes.codel is not None
        self.dropped = np.full(self.total if timed else 0, np.nan)  # when a request left because a deadline had passed
        # Allocated by the first preemption: how often, tokens out then, when the last came, largest gap until the next.
        self.preemptions = np.zeros(0, np.int32)
        self.out: Ints | None = None
        self.last_token, self.stall_gap = np.zeros((2, 0))
        # In which order they were admitted, where that isn't the order of arrival.
        in_order = lanes.lifo_after_s is None and lanes.stages == 1
        self.turn: Ints | None = None if in_order else np.zeros(self.total, np.int64)
        self._turns = 0
        self.since: Floats | None = None  # when each last began to decode; where a policy lets decoding requests stall
        self.stalls: list[tuple[Floats, Floats, NDArray[np.int32]]] = []  # gap, its end, lane

    def grow(self, more: int) -> None:
        """Room for ``more`` requests; like all the room so far it is of requests that never arrive."""
        self.total += more
        for name, fill in _ROOM:
            old = getattr(self, name)
            if old is not None and old.size:
                setattr(self, name, np.concatenate([old, np.full(more, fill, old.dtype)]))

    def last_admitted(self, request: NDArray[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
        """A number by which requests can be compared: highest for the least urgent, of those the one admitted last."""
        if self.rank is None and self.turn is None:
            return request
        turn = request if self.turn is None else self.turn.take(request, mode="clip")
        rank = 0 if self.rank is None else self.rank.take(request, mode="clip") << 40
        return np.where(request < 0, -1, rank + turn)

    def admit(self, request: Ints) -> None:
        """Each ``request`` is admitted now, after all before."""
        if self.turn is not None:
            self._turns += 1
            self.turn[request] = self._turns

    def prefill(self, request: Ints) -> Ints:
        """Tokens that each request has to prefill: its own, and after a preemption those that it had made."""
        size = self.size.take(request)
        if self.out is not None:
            size += self.out.take(request)
        return size

    def remaining(self, request: Ints) -> Ints:
        """Tokens that each request still has to make when its prefill begins."""
        left = self.output.take(request)
        if self.out is not None:
            left -= self.out.take(request)
        return left

    def preempt(self, request: Ints) -> None:
        """Count a preemption of each request."""
        if self.out is None:
            self.out, self.preemptions = np.zeros(self.total, np.int64), np.zeros(self.total, np.int32)
            self.last_token = np.zeros(self.total)
            if not self.stall_gap.size:
                self.stall_gap = np.zeros(self.total)
        self.preemptions[request] += 1

    def stop_decoding(self, request: Ints, out: Ints, now: Floats) -> None:
        """Preempted with ``out`` tokens made, the last of them just ``now``, seconds."""
        assert self.out is not None, "preempt comes first"
        self.out[request] = out
        self.last_token[request] = now

    def prompt_done(self, request: Ints, now: Floats, i: Ints, lane: NDArray[np.int32]) -> Ints:
        """Each request has finished its prefill and makes a token; returns its context, tokens.

        ``i`` are the rows of its lane among the live ones, ``lane`` (live lanes,) their numbers.
        """
        context = self.prompt.take(request)
        if self.since is not None:
            self.since[request] = now
        if self.out is not None:
            out = self.out.take(request)
            context += out
            resumed = out > 0
            if np.count_nonzero(resumed):
                self._resume(request[resumed], now[resumed], lane[i[resumed]])
                request, now = request[~resumed], now[~resumed]
        self.first[request] = now
        return context

    def end_stall(self, request: Ints, before: Floats, now: Floats, lane: NDArray[np.int32]) -> None:
        """Each request makes a token ``now`` after a stall; its lane's last decode step had ended ``before``."""
        assert self.since is not None
        if not self.stall_gap.size:
            self.stall_gap = np.zeros(self.total)
        gap = now - np.maximum(self.since[request], before)
        self.stall_gap[request] = np.maximum(self.stall_gap[request], gap)
        self.stalls.append((gap, now, lane))

    def _resume(self, request: Ints, now: Floats, lane: NDArray[np.int32]) -> None:
        gap = now - self.last_token[request]
        self.stall_gap[request] = np.maximum(self.stall_gap[request], gap)
        self.last_token[request] = 0.0
        self.stalls.append((gap, now, lane))

    def end_travel(self, request: Ints, now: Floats, lane: NDArray[np.int32]) -> None:
        """Each request makes its second token ``now``, having come from where it made its first."""
        if not self.stall_gap.size:
            self.stall_gap = np.zeros(self.total)
        gap = now - self.first[request]
        self.stall_gap[request] = gap
        self.stalls.append((gap, now, lane))

    @property
    def issued(self) -> Floats:
        """Since when each request's deadlines count, seconds: its arrival, unless it has arrived elsewhere before."""
        return self.arrival if self._issued is None else self._issued

    def due(self, request: Ints) -> Floats:
        """Deadline of each request that was scheduled before, seconds."""
        d, issued = self.deadlines, self.issued[request]
        unstarted = np.isnan(self.first[request])
        return issued + np.where(unstarted, min(d.timeout_s, d.ttft_timeout_s), d.timeout_s)

    def complete(self, request: Ints, now: Floats) -> None:
        """Each request has made its last token, in time or too late."""
        if self.dropped.size:
            issued = self.issued.take(request)
            late = now >= issued + self.deadlines.timeout_s
            late |= self.first.take(request) >= issued + self.deadlines.ttft_timeout_s
            if np.count_nonzero(late):
                self.dropped[request[late]] = now[late]
                request, now = request[~late], now[~late]
        self.finish[request] = now

    def served(self, refused: NDArray[np.int8], asked: Ints, spending: Spending | None, waits: Waits | None) -> Served:
        """Everything that happened."""
        none = (np.empty(0), np.empty(0), np.empty(0, np.int32))
        gap, gap_end, gap_lane = (np.concatenate(column) for column in zip(*self.stalls or [none], strict=True))
        return Served(
            scheduled_s=self.scheduled,
            first_token_s=self.first,
            finish_s=self.finish,
            dropped_s=self.dropped,
            spent_tokens=np.empty(0, np.int64) if spending is None else spending.tokens,
            spent_s=np.empty(0) if spending is None else spending.seconds,
            refused=refused,
            preemptions=self.preemptions,
            last_token_s=self.last_token,
            stall_gap_s=self.stall_gap,
            stall_gaps=gap,
            stall_gap_end_s=gap_end,
            stall_gap_lane=gap_lane,
            asked=asked,
            waits=None if waits is None else (waits.admitted, waits.stalled, waits.preempted),
        )
