"""What happens to attempts before they reach a replica: throttled, limited, routed, or nobody there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.serving.lanes import Bools, Floats, Ints
from engine.serving.states import NO_REPLICA, RATE_LIMITED, THROTTLED

from .buckets import Buckets
from .retries import Tries, Uniforms
from .routing import Router
from .throttle import Throttling

if TYPE_CHECKING:
    from engine.serving.fleet import Fleet


class Gateway:
    """All seeds' gateways: refuses attempts or sends them to replicas, in order of time."""

    def __init__(self, fleet: Fleet, seeds: Sequence[int], requests: Ints, replicas: int) -> None:
        count = len(seeds)
        self.router = Router(fleet.routing, seeds, replicas)
        self.throttling = None if fleet.throttle is None else Throttling(fleet.throttle, count)
        self._uniforms = Uniforms("throttle", seeds, requests)
        self._buckets = None if fleet.rate_limit is None else Buckets(*fleet.rate_limit, count)
        self.taking: tuple[Floats, Floats] | None = None
        """(seeds, replicas) each: from when on and until when replicas take requests; ``None``: always."""
        self._all = np.ones(replicas, np.bool_)

    def routable(self, seed: Ints, now: Floats) -> Bools:
        """(n, replicas): which replicas of each of ``seed`` (n,) take requests at ``now`` (n,)."""
        if self.taking is None:
            return np.broadcast_to(self._all, (seed.size, self._all.size))
        at, (since, until) = now[:, None], self.taking
        return np.asarray((since[seed] <= at) & (at < until[seed]), np.bool_)

    def send(self, tries: Tries, weight: Ints) -> tuple[Ints, NDArray[np.int8]]:
        """Replica (-1 for none) and reason of refusal (0 for none) of each of ``tries``, which are in order of (seed,
        time); ``weight`` (n,) is what each adds to its replica's load."""
        replica = np.full(tries.seed.size, -1, np.int64)
        reason = np.zeros(tries.seed.size, np.int8)
        passed = np.arange(tries.seed.size)
        if self.throttling is not None:
            refused = self.throttling.refused(tries.seed, self._uniforms.of(tries.seed, tries.request, tries.attempt))
            reason[refused] = THROTTLED
            passed = passed[~refused]
        if self._buckets is None and not self.router.routing.load_aware:
            seed = tries.seed[passed]
            replica[passed] = self.router.choose_many(seed, self.routable(seed, tries.time_s[passed]))
            passed = passed[:0]
        for at in _one_a_seed(tries.seed, passed):
            if self._buckets is not None:
                passes = self._buckets.passes(tries.seed[at], tries.time_s[at])
                reason[at[~passes]] = RATE_LIMITED
                at = at[passes]
            if at.size:
                seed = tries.seed[at]
                replica[at] = self.router.choose(seed, self.routable(seed, tries.time_s[at]), weight[at])
        reason[(replica < 0) & (reason == 0)] = NO_REPLICA
        return replica, reason


def _one_a_seed(seed: Ints, chosen: Ints) -> list[Ints]:
    """The ``chosen`` positions in turns: every seed's first, every seed's second, ..."""
    if not chosen.size:
        return []
    mine = seed[chosen]
    nth = np.arange(mine.size) - np.searchsorted(mine, mine)
    order = np.argsort(nth, kind="stable")
    return np.split(chosen[order], np.cumsum(np.bincount(nth))[:-1])
