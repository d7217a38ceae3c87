"""What the reference simulator is given and what it answers.

Times are seconds, lengths are tokens. Nothing here computes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

POLICIES = ("chunked", "prefill_first", "static", "disaggregated", "prefill_only", "decode_only")
ROUTING = ("round_robin", "random", "least_outstanding", "power_of_two", "least_kv")


@dataclass(frozen=True)
class Throttle:
    """Clients refuse locally once they ask for more than k times what was accepted in the last `window_s`."""

    k: float
    window_s: float


@dataclass(frozen=True)
class Codel:
    """Drop at the head when waits have stayed at or above `target_s` for `interval_s`."""

    target_s: float
    interval_s: float


@dataclass(frozen=True)
class AdaptiveLifo:
    """Newest first while the oldest has waited at least `after_s`."""

    after_s: float


@dataclass
class Setup:
    """One fleet of identical replicas behind a router.

    `base` gives the seconds of a step by the tokens T worked on: a function, or a sequence indexed by T.
    `horizon_s=None` runs until every request has ended. `rate_limit` is `(rate_rps, burst)`. `backoff_s` is
    what a closed-loop user waits on top of its think time after a refusal, and in an open loop what a first retry
    waits at most. `report_interval_s` 0 is live, and only load-aware routing has reports. `routable[i]` are the
    intervals [from_s, until_s) in which replica i takes new requests; None: all always do. `discipline` None is first
    in first out. Policy "disaggregated": `replicas` read prompts and `decode_replicas` write answers; between them the
    KV of a prompt of P tokens travels P * transfer_token_s + transfer_latency_s. "prefill_only" and "decode_only" are
    what the replicas of the two pools follow.
    """

    base: Callable[[int], float] | Sequence[float]
    seq_s: float = 0.0
    kv_token_s: float = 0.0
    prefill_pair_s: float = 0.0
    kv_capacity_tokens: int | None = None
    context_limit: int | None = None
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    stages: int = 1  # above 1: each replica is a pipeline
    policy: str = "chunked"  # one of POLICIES
    kv_policy: str = "on_demand"  # on_demand | reserve
    watermark: float = 0.0
    reserve_output_tokens: int | None = None
    batch_wait_s: float = 0.0
    replicas: int = 1
    decode_replicas: int = 0
    transfer_token_s: float = 0.0
    transfer_latency_s: float = 0.0
    max_outstanding: int | None = None
    max_queued_tokens: int | None = None
    rate_limit: tuple[float, float] | None = None
    queue_timeout_s: float | None = None
    timeout_s: float | None = None
    ttft_timeout_s: float | None = None
    on_timeout: str = "abort"  # abort | ignore
    horizon_s: float | None = None
    backoff_s: float = 0.0
    routing: str = "round_robin"
    report_interval_s: float = 0.0
    count_own_sends: bool = True
    ties: str = "lowest"  # lowest | rotate
    routable: Sequence[Sequence[tuple[float, float]]] | None = None
    max_retries: int = 0
    retry_budget_ratio: float | None = None
    retry_layers: int = 1
    throttle: Throttle | None = None
    shed_ttft_s: float | None = None
    discipline: Codel | AdaptiveLifo | None = None

    @property
    def places(self) -> int:
        """Replicas of the fleet, of both pools where there are two."""
        return self.replicas + self.decode_replicas

    def __post_init__(self) -> None:
        """Refuse what has no meaning; ValueError names the field."""
        if self.policy not in POLICIES:
            raise ValueError(f"policy: {self.policy!r} is not known here")
        if (self.policy == "disaggregated") != (self.decode_replicas > 0):
            raise ValueError(f"decode_replicas: {self.decode_replicas} with policy {self.policy}")
        if self.stages > 1 and (
            self.policy != "chunked" or self.discipline is not None or self.shed_ttft_s is not None
        ):
            raise ValueError("stages: a pipeline is chunked, first in first out, and doesn't shed")
        if self.kv_policy not in ("on_demand", "reserve"):
            raise ValueError(f"kv_policy: {self.kv_policy!r} is not known here")
        if self.on_timeout not in ("abort", "ignore"):
            raise ValueError(f"on_timeout: {self.on_timeout!r} is not known here")
        if self.routing not in ROUTING:
            raise ValueError(f"routing: {self.routing!r} is not known here")
        if self.ties not in ("lowest", "rotate"):
            raise ValueError(f"ties: {self.ties!r} is not known here")
        if self.routable is not None and len(self.routable) != self.replicas:
            raise ValueError(f"routable: for {len(self.routable)} replicas, there are {self.replicas}")
        if self.discipline is not None and self.policy == "static":
            raise ValueError("discipline: a static group's queue is first in first out")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError("max_num_batched_tokens: below max_num_seqs")
        if self.watermark and self.kv_policy != "on_demand":
            raise ValueError("watermark: only with kv_policy on_demand")
        for name in ("queue_timeout_s", "timeout_s", "ttft_timeout_s"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name}: {value} is not above 0")


@dataclass
class Request:
    """One request.

    Open loop (`user` None): it arrives at `arrival_s`, on `replica` if given, else where the router sends it.
    Closed loop (every request has a `user`, a number from 0): a user's requests follow one another in the order
    of the list; `arrival_s` counts for the user's first one only, each later one is due `think_s` after the one
    before it ended.
    """

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    cached_prefix_tokens: int = 0
    priority: int = 0
    replica: int | None = None
    user: int | None = None
    think_s: float = 0.0


@dataclass
class Row:
    """What became of one attempt. None where absent; `state` is None for a closed-loop request never issued."""

    request: int = 0  # index in the list given
    attempt: int = 0  # 0 first
    arrival_s: float | None = None
    order: int | None = None  # place among all arrivals of the fleet, from 0
    replica: int | None = None
    scheduled_s: float | None = None
    first_token_s: float | None = None
    finish_s: float | None = None
    left_s: float | None = None
    state: str | None = None
    reason: str | None = None
    preemptions: int = 0
    token_times: list[float] = field(default_factory=list)
    admitted_s: float | None = None  # start of the last admission before the first token
    stalled_s: float = 0.0  # what others' prompts added to the steps in which it wrote or stood still
    preempted_s: float = 0.0  # from losing its KV to its next token
    lost_at_s: float | None = None  # when it lost its KV, until it has its next token
    writer: int | None = None  # disaggregated: the replica that writes, numbered after those that read
    landed_s: float | None = None  # when the prompt's KV had come
    resumed_s: float | None = None  # start of the first step that wrote for it

    @property
    def gaps(self) -> list[float]:
        """Seconds between consecutive tokens, over the tokens that came out."""
        return [b - a for a, b in zip(self.token_times, self.token_times[1:], strict=False)]

    @property
    def max_itl_s(self) -> float | None:
        """The largest gap so far; None with fewer than two tokens out, whatever the state."""
        return max(self.gaps, default=None)


@dataclass
class Step:
    """One step of a replica. A step that crosses the horizon is listed too, with the end it would have had."""

    start: float
    end: float
    T: int  # tokens worked on
    chunk_tokens: int  # those of them that are prefilled
    R: int  # requests worked on
    C: int  # sum of their contexts at the start
    A: int  # attention pairs inside chunks
    n_decode: int  # requests that get a token at the end and had one before: the gaps that the step makes
    running: int  # slots taken after admission (static: finished members of the group included)
    waiting_after_admission: int
    kv_held_at_start: int  # after preemption (static: finished members included)
    limited_by: str  # none | max_num_seqs | kv | token_budget
    # Of a pipeline, where `end` isn't `start` plus the step's own length, and facts but T, R, C, A are the lane's:
    lane: int = 0
    alone_s: float = 0.0  # its length when no other step is in its way


@dataclass
class Outcome:
    """`requests`: one row an attempt, in order of (request, attempt), the requests in the order given.

    `steps[replica]` in order of time, of disaggregated fleets those of replicas that write last; `gaps` attempt by
    attempt.
    """

    requests: list[Row]
    steps: list[list[Step]]
    gaps: list[float]
    horizon_s: float
