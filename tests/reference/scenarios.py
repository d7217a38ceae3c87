"""Random cases for comparing simulators, small and nasty.

About half of them are dyadic: every time and constant is a multiple of 2^-20, and times stay below 2^20, so sums are
exact and many events fall on one instant. In the others arrivals and constants are arbitrary floats, and only events
that are equal by construction (bursts, equal deadlines of one burst) coincide.
"""

from __future__ import annotations

import random
from collections.abc import Set
from dataclasses import dataclass

from tests.reference.model import Request, Setup

FEATURES = frozenset(
    {
        "prefill_first",
        "static",
        "disaggregated",
        "deadlines",
        "ignore",
        "classes",
        "max_outstanding",
        "max_queued_tokens",
        "rate_limit",
        "watermark",
        "reserve_output",
        "closed",
        "split",
        "table",
    }
)

_POLICIES = {"prefill_first", "static", "disaggregated"}

# Grids of dyadic cases, seconds. On the coarse one steps, too, last a few eighths, so that everything coincides.
COARSE, FINE = 2.0**-3, 2.0**-10


@dataclass(frozen=True)
class LinearBase:
    """`overhead_s + max(weights_s, token_s * T)`, with its coefficients readable."""

    overhead_s: float
    weights_s: float
    token_s: float

    def __call__(self, tokens: int) -> float:
        return self.overhead_s + max(self.weights_s, self.token_s * tokens)


def has_exact_times(setup: Setup) -> bool:
    """Whether another simulator has to give the very same times: constants are sums of powers of two."""
    return isinstance(setup.base, LinearBase) and (setup.base.overhead_s * 1024) % 1 == 0


class Clock:
    """Draws times: arbitrary floats, or multiples of a power of two."""

    def __init__(self, rng: random.Random, grid: float | None) -> None:
        self.rng, self.grid = rng, grid

    @property
    def dyadic(self) -> bool:
        """Whether sums of these times are exact."""
        return self.grid is not None

    def between(self, low: float, high: float) -> float:
        """A time in [low, high], at least one grid step above 0."""
        value = self.rng.uniform(low, high)
        if self.grid is None:
            return value
        return max(self.grid, round(value / self.grid) * self.grid)

    def slope(self, low: int, high: int) -> float:
        """A small coefficient, a few millionths."""
        return self.rng.randint(low, high) * 2.0**-20 if self.dyadic else self.rng.uniform(low, high) * 1e-6


def random_case(rng: random.Random, features: Set[str] = frozenset()) -> tuple[Setup, list[Request]]:
    """A case with every feature asked for in use.

    Without any: chunked, both KV policies, prefixes, limits, several replicas by round robin, a horizon or none. The
    policy is one of those in `features`, chunked when there is none. "deadlines": one to three of them; "ignore"
    makes at least one of them a client's; "split": replicas named by the requests; "table": `base` is an irregular
    list; "watermark" means `on_demand`. A closed case always has a horizon. First requests of
    users that are due at or after it are never issued. ValueError for an unknown feature.
    """
    if unknown := set(features) - FEATURES:
        raise ValueError(f"features: {sorted(unknown)} unknown; known are {sorted(FEATURES)}")
    grid = rng.choice([COARSE, COARSE, FINE]) if rng.random() < 0.55 else None
    clock = Clock(rng, grid)
    max_num_seqs = rng.choice([1, 2, 3, 4, 6, 8, 12, 20])
    budget = max_num_seqs + rng.choice([0, 1, 3, 8, 20, 60])
    replicas = rng.choice([1, 1, 2, 3])
    setup = Setup(
        base=_linear(clock),
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=budget,
        policy=(policy := rng.choice(sorted(_POLICIES & set(features)) or ["chunked"])),
        kv_policy="on_demand" if "watermark" in features or rng.random() < 0.6 else "reserve",
        replicas=replicas,
        decode_replicas=rng.choice([1, 1, 2, 3]) if policy == "disaggregated" else 0,
    )
    if grid != COARSE and rng.random() < 0.7:
        setup.seq_s, setup.kv_token_s, setup.prefill_pair_s = clock.slope(0, 900), clock.slope(0, 60), clock.slope(0, 9)
    chatty = rng.random() < 0.35
    count = rng.choice([rng.randint(5, 15), rng.randint(10, 60)])
    requests = [_lengths(rng, budget, chatty) for _ in range(count)]
    _limit_memory(rng, setup, requests, features)
    step = setup.base(budget)  # type: ignore[operator]
    busy = step * (
        sum(r.output_tokens for r in requests) / min(max_num_seqs, 5) + sum(r.prompt_tokens for r in requests) / budget
    )
    busy /= replicas
    _add_options(clock, setup, requests, step, features)
    if "closed" in features:
        _closed(clock, setup, requests, busy)
    else:
        requests = _open(clock, setup, requests, busy)
    if "table" in features:
        longest = max(r.prompt_tokens + r.output_tokens for r in requests)
        setup.base = [clock.between(0.5 * step, 2 * step) for _ in range(max(budget, longest * max_num_seqs) + 1)]
    return setup, requests


def _linear(clock: Clock) -> LinearBase:
    rng = clock.rng
    flat = rng.random() < (0.7 if clock.grid == COARSE else 0.4)
    if clock.grid is None:
        return LinearBase(rng.uniform(0.01, 0.2), rng.uniform(0, 0.5), 0.0 if flat else rng.uniform(0.001, 0.02))
    slope = COARSE if clock.grid == COARSE else 2.0 ** -rng.randint(6, 10)
    return LinearBase(COARSE * rng.randint(1, 2), COARSE * rng.randint(0, 4), 0.0 if flat else slope)


def _lengths(rng: random.Random, budget: int, chatty: bool) -> Request:
    """Chatty: answers longer than questions, so that KV grows while decoding; else of every kind."""
    if chatty:
        return Request(0.0, rng.randint(1, 12), rng.randint(8, 40), cached_prefix_tokens=rng.choice([0, 0, 3]))
    prompt = rng.choice([rng.randint(1, 8), rng.randint(1, 40), rng.randint(1, min(6 * budget, 240))])
    output = rng.choice([1, rng.randint(1, 6), rng.randint(2, 24), rng.randint(8, 40)])
    cached = rng.choice([0, 0, 0, rng.randint(0, prompt), prompt - 1])
    return Request(0.0, prompt, output, cached_prefix_tokens=cached)


def _limit_memory(rng: random.Random, setup: Setup, requests: list[Request], features: Set[str]) -> None:
    """KV from tiny (somebody may be too long) to unlimited; sometimes a context limit."""
    sizes = sorted(r.prompt_tokens + r.output_tokens for r in requests)
    longest, middle = sizes[-1], sizes[len(sizes) // 2]
    if "reserve_output" in features:
        setup.reserve_output_tokens = rng.randint(1, 30)
        longest += setup.reserve_output_tokens
    tight = int(middle * rng.uniform(1, 3))
    if "watermark" in features:
        setup.watermark = rng.choice([1 / 16, 1 / 8, 1 / 4, 0.013, 0.21])
    kinds: list[int | None] = [longest, longest + rng.randint(0, 20), max(longest, tight), tight]
    if "watermark" not in features and rng.random() < 0.35:
        kinds = [100 * longest, None]
    setup.kv_capacity_tokens = rng.choice(kinds)
    if rng.random() < 0.15:
        setup.context_limit = rng.randint(middle, longest)


def _add_options(clock: Clock, setup: Setup, requests: list[Request], step: float, features: Set[str]) -> None:
    rng = clock.rng
    if setup.policy == "disaggregated":
        if not clock.dyadic:  # else steps of both pools, all equally long, would end together but for rounding
            setup.kv_token_s = setup.kv_token_s or clock.slope(1, 60)
        setup.transfer_token_s = rng.choice([0.0, clock.slope(0, 2000), clock.slope(0, 50_000)])
        setup.transfer_latency_s = rng.choice([0.0, clock.between(0, 4 * step), clock.between(0, 30 * step)])
    if setup.policy == "static" and rng.random() < 0.7:
        setup.batch_wait_s = clock.between(0, 12 * step)
    if "max_outstanding" in features:
        setup.max_outstanding = rng.randint(1, 2 * setup.max_num_seqs + 2)
    if "max_queued_tokens" in features:
        setup.max_queued_tokens = rng.randint(1, 150)
    if "rate_limit" in features:
        rate = rng.randint(1, 16) / 4 if clock.dyadic else rng.uniform(0.2, 4)
        setup.rate_limit = (rate, rng.randint(1, 6))
    if "classes" in features:
        for request in requests:
            request.priority = rng.choice([0, 0, 1, 1, 5])
    if "split" in features and "closed" not in features:
        for request in requests:
            request.replica = rng.randrange(setup.replicas)
    if "deadlines" in features or "ignore" in features:
        names = ["timeout_s", "ttft_timeout_s", "queue_timeout_s"]
        chosen = set(rng.sample(names, rng.randint(1, 3))) if "deadlines" in features else set()
        if "ignore" in features:
            setup.on_timeout = "ignore"
            chosen.add(rng.choice(names[:2]))
        spread = {"timeout_s": 40, "ttft_timeout_s": 15, "queue_timeout_s": 10}
        for name in sorted(chosen):
            setattr(setup, name, clock.between(step, rng.choice([1, 2]) * spread[name] * step))
        if len(chosen) > 1 and rng.random() < 0.15:  # equal deadlines: the order of reasons decides
            same = clock.between(step, 15 * step)
            for name in sorted(chosen):
                setattr(setup, name, same)


def _horizon(clock: Clock, busy: float) -> float:
    return clock.between(0.15 * busy, 1.3 * busy)


def _open(clock: Clock, setup: Setup, requests: list[Request], busy: float) -> list[Request]:
    """Bursts, or one by one, over no time at all up to more than they need; cut to the horizon, if there is one."""
    rng = clock.rng
    span = busy * rng.choice([0.0, 0.2, 0.6, 1.2, 2.5])
    bursty = rng.choice([0.0, 0.3, 0.8])
    times: list[float] = []
    while len(times) < len(requests):
        at = clock.between(0, span)
        times += [at] * (rng.randint(2, 6) if rng.random() < bursty else 1)
    for request, at in zip(requests, sorted(times[: len(requests)]), strict=True):
        request.arrival_s = at
    if rng.random() < 0.55:
        setup.horizon_s = max(_horizon(clock, span + busy / 2), requests[0].arrival_s + clock.between(0, busy))
        if rng.random() < 0.3:  # at a request's own instant: nobody arrives at the horizon
            setup.horizon_s = max(setup.horizon_s, requests[len(requests) // 2].arrival_s)
    return [r for r in requests if setup.horizon_s is None or r.arrival_s < setup.horizon_s]


def _closed(clock: Clock, setup: Setup, requests: list[Request], busy: float) -> None:
    rng = clock.rng
    users = rng.randint(2, min(16, len(requests)))
    lazy = rng.choice([0.0, 0.02, 0.1]) * busy
    setup.backoff_s = clock.between(0.01 * busy, 0.05 * busy)
    ramp = rng.choice([0.0, 0.2]) * busy if clock.dyadic else 0.2 * busy
    for index, request in enumerate(requests):
        request.user = index % users
        if index < users:
            request.arrival_s = clock.between(0, ramp)
        else:
            request.think_s = 0.0 if lazy == 0 else clock.between(0, lazy)
    setup.horizon_s = min(r.arrival_s for r in requests[:users]) + _horizon(clock, 1.5 * busy)
