"""What the reference simulator is given and what it answers.

Times are seconds, lengths are tokens. Nothing here computes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Setup:
    """One fleet of identical replicas behind a static split.

    `base` gives the seconds of a step by the tokens T worked on: a function, or a sequence indexed by T.
    `horizon_s=None` runs until every request has ended. `rate_limit` is `(rate_rps, burst)`. `backoff_s` is
    what a closed-loop user waits on top of its think time after a refusal.
    """

    base: Callable[[int], float] | Sequence[float]
    seq_s: float = 0.0
    kv_token_s: float = 0.0
    prefill_pair_s: float = 0.0
    kv_capacity_tokens: int | None = None
    context_limit: int | None = None
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    policy: str = "chunked"  # chunked | prefill_first | static
    kv_policy: str = "on_demand"  # on_demand | reserve
    watermark: float = 0.0
    reserve_output_tokens: int | None = None
    batch_wait_s: float = 0.0
    replicas: int = 1
    max_outstanding: int | None = None
    max_queued_tokens: int | None = None
    rate_limit: tuple[float, float] | None = None
    queue_timeout_s: float | None = None
    timeout_s: float | None = None
    ttft_timeout_s: float | None = None
    on_timeout: str = "abort"  # abort | ignore
    horizon_s: float | None = None
    backoff_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning; ValueError names the field."""
        if self.policy not in ("chunked", "prefill_first", "static"):
            raise ValueError(f"policy: {self.policy!r} is not known here")
        if self.kv_policy not in ("on_demand", "reserve"):
            raise ValueError(f"kv_policy: {self.kv_policy!r} is not known here")
        if self.on_timeout not in ("abort", "ignore"):
            raise ValueError(f"on_timeout: {self.on_timeout!r} is not known here")
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

    Open loop (`user` None): it arrives at `arrival_s`, on `replica` if given, else by round robin.
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
    """What became of one request. None where absent; `state` is None for a closed-loop request never issued."""

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
    R: int  # requests worked on
    C: int  # sum of their contexts at the start
    A: int  # attention pairs inside chunks
    n_decode: int  # requests that get a token at the end and had one before: the gaps that the step makes
    running: int  # slots taken after admission (static: finished members of the group included)
    waiting_after_admission: int
    kv_held_at_start: int  # after preemption (static: finished members included)
    limited_by: str  # none | max_num_seqs | kv | token_budget


@dataclass
class Outcome:
    """`requests` in the order given; `steps[replica]` in order of time; `gaps` request by request."""

    requests: list[Row]
    steps: list[list[Step]]
    gaps: list[float]
    horizon_s: float
