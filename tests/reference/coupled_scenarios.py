"""Random cases of fleets whose parts react to one another, for comparing simulators: small and nasty.

They are cases of `scenarios.random_case` with routers, retries, throttling, shedding and queue disciplines on top. A
dyadic case stays exact as long as the luck is dyadic too: `coarse` rounds a uniform down to a multiple of 2^-6.
"""

from __future__ import annotations

import random
from collections.abc import Set

from tests.reference.draws import Draws
from tests.reference.model import ROUTING, AdaptiveLifo, Codel, Request, Setup, Throttle
from tests.reference.points import LOAD_AWARE
from tests.reference.scenarios import COARSE, FEATURES, Clock, LinearBase, random_case

COUPLING = frozenset(
    {*ROUTING, "retries", "budget", "layers", "throttle", "shed", "codel", "adaptive_lifo", "routable"}
)
BASIS = FEATURES - {"closed", "split", "disaggregated"}


def coarse(uniform: float) -> float:
    """The multiple of 2^-6 below."""
    return int(uniform * 64) / 64


def is_dyadic(setup: Setup) -> bool:
    """Whether every time of a case is a multiple of a power of two."""
    first = (
        setup.base.overhead_s
        if isinstance(setup.base, LinearBase)
        else setup.base(1)
        if callable(setup.base)
        else setup.base[1]
    )
    return (first * 1024) % 1 == 0


def seeded_draws(seed: int) -> Draws:
    """Coarse luck, every number of it a function of the seed and of what it is for."""

    def uniform(name: str, *which: int) -> float:
        return coarse(random.Random(f"{seed} {name} {which}").random())

    return Draws(
        router=lambda i: uniform("router", i),
        backoff=lambda attempt, request: uniform("backoff", attempt, request),
        throttle=lambda attempt, request: uniform("throttle", attempt, request),
    )


def some_features(rng: random.Random) -> set[str]:
    """A policy, a router, and each other feature in three cases of ten or so; those that need a cause with one."""
    chosen = {extra for extra in sorted(BASIS - {"prefill_first", "static"}) if rng.random() < 0.25}
    chosen |= {rng.choice(["chunked", "chunked", "prefill_first", "static"]), rng.choice(ROUTING)} - {"chunked"}
    chosen |= {name for name in ("shed", "throttle") if rng.random() < 0.3}
    if rng.random() < 0.5:
        chosen |= {"retries"} | {name for name in ("budget", "layers") if rng.random() < 0.35}
        chosen |= set(rng.sample(["deadlines", "max_outstanding", "shed", "rate_limit"], rng.randint(1, 2)))
    if "throttle" in chosen:
        chosen.add(rng.choice(["max_outstanding", "max_queued_tokens", "rate_limit", "shed"]))
    if "static" not in chosen:
        chosen |= set(rng.choice([(), (), ("codel",), ("adaptive_lifo",)]))
    return chosen


def coupled_case(rng: random.Random, features: Set[str] | None = None) -> tuple[Setup, list[Request]]:
    """A case with every feature asked for in use, by default some; requests in order of arrival.

    Features are those of `random_case` but "closed" and "split", a routing policy, "retries" ("budget" and "layers"
    need it), "throttle", "shed", "codel", "adaptive_lifo", and "routable": replicas that take requests in intervals
    only, which never is among the default ones. Neither is "disaggregated", which goes with the orders of the queue and
    "shed" only. ValueError for what is unknown.
    """
    features = some_features(rng) if features is None else features
    if unknown := set(features) - BASIS - COUPLING - {"disaggregated"}:
        raise ValueError(f"features: {sorted(unknown)} unknown; known are {sorted(BASIS | COUPLING)}")
    setup, requests = random_case(rng, features - COUPLING)
    if rng.random() < 0.7:
        _more_replicas(rng, setup)
    clock = Clock(rng, COARSE if is_dyadic(setup) else None)
    tokens = setup.max_num_batched_tokens
    step = setup.base(tokens) if callable(setup.base) else setup.base[tokens]
    setup.routing = next((name for name in ROUTING if name in features), "round_robin")
    if setup.routing in LOAD_AWARE:
        setup.report_interval_s = 0.0 if rng.random() < 0.25 else clock.between(0.3 * step, 12 * step)
        setup.count_own_sends = rng.random() < 0.6
        setup.ties = rng.choice(["lowest", "rotate"])
    _clients(clock, setup, features)
    if "shed" in features:
        setup.shed_ttft_s = clock.between(0.5 * step, rng.choice([4, 20]) * step)
    if "codel" in features:
        setup.discipline = Codel(clock.between(0.5 * step, 6 * step), clock.between(0.5 * step, 10 * step))
    if "adaptive_lifo" in features:
        setup.discipline = AdaptiveLifo(rng.choice([0.0, clock.between(0.5 * step, 12 * step)]))
    if "routable" in features:
        until = requests[-1].arrival_s + 4 * step if requests else 4 * step
        setup.routable = [_intervals(clock, until) for _ in range(setup.replicas)]
    return setup, requests


def _more_replicas(rng: random.Random, setup: Setup) -> None:
    """So that routers have a choice, of smaller replicas, so that there are queues."""
    setup.replicas = rng.choice([2, 3, 5])
    setup.max_num_seqs = rng.randint(1, min(4, setup.max_num_seqs))


def _clients(clock: Clock, setup: Setup, features: Set[str]) -> None:
    """Waits and windows of dyadic cases are such that noticing points, a part of them, are dyadic."""
    rng = clock.rng
    if "retries" in features:
        setup.max_retries = rng.choice([1, 1, 2, 3])
        exact = [0.625, 1.25, 2.5, 5.0]
        setup.backoff_s = rng.choice(exact if clock.dyadic else [0.0, rng.uniform(0.05, 1), rng.uniform(0.5, 6)])
        if "budget" in features:
            setup.retry_budget_ratio = rng.choice([0.0, 0.125, 0.25, 0.5, 1.0])
        if "layers" in features:
            setup.retry_layers, setup.max_retries = 2, min(setup.max_retries, 2)
    if "throttle" in features:
        exact = [6.25, 12.5, 25.0, 50.0, 100.0, 200.0]
        window = rng.choice(exact) if clock.dyadic else rng.choice([rng.uniform(1, 10), rng.uniform(1, 60)])
        setup.throttle = Throttle(rng.choice([1.0, 1.25, 1.5, 2.0]), window)


def _intervals(clock: Clock, until: float) -> list[tuple[float, float]]:
    """None, or up to three, now and then one that begins when another ends."""
    edges = sorted(clock.between(0, until) for _ in range(2 * clock.rng.randint(0, 3)))
    if clock.rng.random() < 0.5:
        return [(0.0, edges[0])] if edges else [(0.0, until)]
    return list(zip(edges[::2], edges[1::2], strict=True))
