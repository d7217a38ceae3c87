"""What the lockstep engine is given and what it gives back: arrays over lanes.

One lane is one replica of one seed of one scenario. The requests of all lanes lie end to end in flat arrays; each
lane's part is in order of arrival and ends with one sentinel that never arrives, so that "the next request of this
lane" is always one index ahead and needs no bounds check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNLIMITED = 2**60
"""Stands for "no limit" in token and request counts."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long after its arrival a request may take, seconds; infinity where nobody minds."""

    timeout_s: float = np.inf
    """To its last token."""
    ttft_timeout_s: float = np.inf
    """To its first token."""
    queue_timeout_s: float = np.inf
    """To the first step that works on it."""

    @property
    def while_waiting(self) -> float:
        """The first that passes for a request that was never scheduled."""
        return min(self.timeout_s, self.ttft_timeout_s, self.queue_timeout_s)

    @property
    def while_running(self) -> bool:
        """Whether running requests have a deadline."""
        return min(self.timeout_s, self.ttft_timeout_s) < np.inf


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """What the users of each lane ask for. A lane has at most M users; absent ones ask for nothing."""

    first_s: Floats
    """(lanes, M): when each asks first, seconds; infinity for absent ones."""
    start: Ints
    """(lanes, M): index of each user's first request in the arrays below."""
    stop: Ints
    """(lanes, M): one past its last."""
    think_s: Floats
    """Pause before each request, seconds."""
    prompt_tokens: Ints
    output_tokens: Ints
    cached_prefix_tokens: Ints
    rank: Ints
    too_long: Bools
    """Requests that could never finish."""
    backoff_s: float
    """What a user waits on top after a refusal, seconds."""
    gives_up: Deadlines
    """When users move on though the server goes on; infinity where they don't."""


@dataclass(frozen=True, slots=True)
class Fed:
    """What is known of requests that are handed to their lanes while these run."""

    has_prefix: bool
    classes: int
    longest: int
    """Most tokens, prompt and answer, of any request."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Requests and limits of L lanes with n requests in all.

    Flat arrays have n + L entries, the last of each lane being its sentinel (arrival ``inf``). Per-lane arrays have L
    entries. Times are seconds; lengths, capacities and budgets are tokens.

    ``base`` holds the step-time tables end to end; lane i's seconds for T tokens are ``base[base_at[i] + T]``.
    """

    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    cached_prefix_tokens: Ints
    start: Ints
    """(L + 1,): lane i's requests are ``start[i]`` up to ``start[i + 1] - 2``, its sentinel the one after."""
    horizon_s: Floats
    base: Floats
    base_at: Ints
    seq_s: Floats
    kv_token_s: Floats
    prefill_pair_s: Floats
    kv_capacity_tokens: Ints
    max_num_seqs: Ints
    max_num_batched_tokens: Ints
    kv_policy: str
    policy: str = "chunked"
    stages: int = 1
    """Above 1 a lane here is a replica that is a pipeline of so many stages, through which its own lanes take turns."""
    until_scheduled: bool = False
    """Whether pipelines stop once nobody waits or comes any more."""
    max_outstanding: Ints | None = None
    max_queued_tokens: Ints | None = None
    rank: Ints | None = None
    """Flat: class of each request by urgency, 0 first; ``None`` when all are alike."""
    deadlines: Deadlines = Deadlines()
    shed_ttft_s: float | None = None
    """Longest predicted time to first token that is let in."""
    codel: tuple[float, float] | None = None
    """Target and interval of controlled delay, seconds."""
    lifo_after_s: float | None = None
    """A class is served newest first once its oldest has waited this long."""
    watermark: float = 0.0
    reserve_output_tokens: int | None = None
    batch_wait_s: float = 0.0
    closed: ClosedLoop | None = None
    """Users who ask again; the flat arrays of requests are then empty room, filled in as they come."""
    fed: Fed | None = None
    """Requests that come later; the flat arrays are then empty room."""
    keep_account: bool = False
    """Whether to say what each request cost, though no deadline makes the server drop any."""
    keep_waits: bool = False
    """Whether to say what kept each request from going on."""
    travel_s: Floats | None = None
    """Flat: how long each request that was answered in time stays outstanding afterwards, seconds; needed only where
    that is counted."""
    issued_s: Floats | None = None
    """Flat, in lanes that only decode: since when deadlines count; their ``arrival_s`` is when a prompt's KV came."""
    first_s: Floats | None = None
    """Flat, likewise: when each request got its first token elsewhere."""

    @property
    def count(self) -> int:
        """Number of lanes."""
        return self.start.size - 1

    @property
    def rules(self) -> tuple[object, ...]:
        """What all lanes of a run have in common: values that aren't a lane's own, and which limits there are."""
        found = ((f.name, getattr(self, f.name)) for f in fields(self) if f.name != "rank")
        return tuple(isinstance(value, np.ndarray) or value for _, value in found)

    @classmethod
    def joined(cls, pieces: Sequence[Lanes]) -> Lanes:
        """The lanes of several pieces one after the other, each with its own step-time table.

        The pieces have the same ``rules``; of columns that are ``None`` in some, zeros are taken there.
        """
        requests = np.cumsum([0, *(piece.start[-1] for piece in pieces)])
        tables = np.cumsum([0, *(piece.base.size for piece in pieces)])
        columns: dict[str, Any] = {}
        for name in (f.name for f in fields(cls) if f.name != "start"):
            values = [getattr(piece, name) for piece in pieces]
            if name == "base_at":
                values = [value + first for value, first in zip(values, tables, strict=False)]
            elif name == "rank" and any(value is not None for value in values):
                values = [np.zeros(p.start[-1], np.int64) if p.rank is None else p.rank for p in pieces]
            columns[name] = np.concatenate(values) if isinstance(values[0], np.ndarray) else values[0]
        starts = [piece.start[:-1] + first for piece, first in zip(pieces, requests, strict=False)]
        return cls(start=np.concatenate([*starts, requests[-1:]]), **columns)


@dataclass(slots=True)
class StepLog:
    """One entry a lane and round: a run of ``k`` steps in which nothing changed but the contexts' lengths.

    Step j = 0..k-1 lasts ``d + j * slope`` seconds. Entries are in order of round, so a lane's are in order of time.
    Every column has the same length.
    """

    lane: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    t0: Floats = field(default_factory=lambda: np.empty(0))
    d: Floats = field(default_factory=lambda: np.empty(0))
    slope: Floats = field(default_factory=lambda: np.empty(0))
    k: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    decoding: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Requests that had a token before and get one in each of these steps: each makes k gaps."""
    worked: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """R: requests worked on in each step."""
    tokens: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """T: tokens worked on in each step, by which the KV held grows."""
    held: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """KV tokens held when the first of these steps starts."""
    limit: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    """What kept the queue waiting: index into ``LIMITS``."""
    stalled: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Running requests that stand still in these steps; empty under policies that let nobody stand still."""
    before: Floats = field(default_factory=lambda: np.empty(0))
    """Seconds by which the gaps that each of these steps makes are longer than the step. Empty, as the next, but in
    pipelines. There a step's time is from the lane's last one on, unless somebody joins the lane meanwhile."""
    share: Floats = field(default_factory=lambda: np.empty(0))
    """Share of the steps' time in which the pipeline's stages work on them: each for its part of that time."""

    @property
    def running(self) -> NDArray[np.int32]:
        """Requests that run, worked on or not."""
        return self.worked + self.stalled if self.stalled.size else self.worked

    @classmethod
    def joined(cls, pieces: Sequence[StepLog]) -> StepLog:
        """Several pieces as one."""
        if not pieces:
            return cls()
        return cls(*(np.concatenate([getattr(piece, f.name) for piece in pieces]) for f in fields(cls)))

    @property
    def t1(self) -> Floats:
        """End of the last step, by the same expression as the engine's clock, so equal to it bit by bit."""
        k = self.k.astype(np.float64)
        return self.t0 + (k * self.d + self.slope * (0.5 * k * (k - 1.0)))

    def busy(self, seconds: Floats) -> Floats:
        """What ``seconds`` of each entry's time (as many) come to in time at work."""
        return seconds * self.share if self.share.size else seconds

    @property
    def longest(self) -> Floats:
        """Duration of the longest of the k steps (slopes are never negative)."""
        return self.d + self.slope * (self.k - 1)


LIMITS = ("none", "max_num_seqs", "kv", "token_budget")
"""Names of the codes in ``StepLog.limit``."""


@dataclass(slots=True)
class Served:
    """What happened to each request: flat, sentinels included, ``nan`` where it didn't."""

    scheduled_s: Floats
    first_token_s: Floats
    finish_s: Floats
    dropped_s: Floats
    """When it left because a deadline had passed; empty without deadlines."""
    spent_tokens: Ints
    """Tokens worked on for it, repeats included; empty, as ``spent_s``, unless work may be wasted."""
    spent_s: Floats
    """Its share of the steps' time, seconds."""
    refused: NDArray[np.int8]
    """Reason code of each that was refused by its replica, else 0; empty without limits."""
    preemptions: NDArray[np.int32]
    """How often each was preempted; empty, as the next two, when nobody was."""
    last_token_s: Floats
    """When the last token before a preemption came, while the next one hasn't; else 0."""
    stall_gap_s: Floats
    """Largest gap between two tokens that contains a preemption, seconds; 0 where none. In a pipeline the largest of
    all gaps."""
    stall_gaps: Floats
    """(m,): every gap that contains a preemption, another stall or the way between two pools, seconds."""
    stall_gap_end_s: Floats
    """(m,): when the token after it came."""
    stall_gap_lane: NDArray[np.int32]
    """(m,): its lane."""
    asked: Ints
    """Flat, with a closed loop: which of the loop's requests each number stood for, -1 for none; else empty."""
    waits: tuple[Floats, Floats, Floats] | None = None
    """Flat, where asked for: start of the last admission before the first token; seconds that others' prompts stalled
    each after it; seconds lost by preemptions after it."""
