"""Routers that run along with the fleet: what each seed's router knows of its replicas, and whom it chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.serving.lanes import Bools, Floats, Ints
from engine.traffic import stream

_BLOCK = 4096
"""Uniforms drawn at once from a stream."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Settings of a router."""

    policy: str = "round_robin"
    report_interval_s: float = 0.1
    """Seconds between two reports of the replicas; 0: the router always knows."""
    count_own_sends: bool = True
    rotate: bool = False
    """Of equal replicas the next in turn, instead of the lowest index."""

    @property
    def load_aware(self) -> bool:
        """Whether replicas have to report."""
        return POLICIES[self.policy].load_aware

    @property
    def reads_kv(self) -> bool:
        """Whether they report the KV tokens that they hold, instead of their requests."""
        return self.policy == "least_kv"


class Draws:
    """The next uniforms of every seed's stream ``router``, as many at a time as an attempt needs."""

    def __init__(self, seeds: Sequence[int], each: int) -> None:
        self._streams = [stream(seed, "router") for seed in seeds]
        self._each = each
        self._block: Floats = np.stack([self._more(i) for i in range(len(seeds))]) if each else np.empty((0, 0, 0))
        self._used = np.zeros(len(seeds), np.int64)

    def _more(self, i: int) -> Floats:
        return self._streams[i].random(_BLOCK * self._each).reshape(_BLOCK, self._each)

    def take_many(self, count: Ints) -> Floats:
        """(n, each): the next ``count`` (seeds,) of every seed, seed after seed."""
        found = []
        for i in count.nonzero()[0].tolist():
            left = int(count[i])
            while left:
                if self._used[i] == _BLOCK:
                    self._block[i] = self._more(i)
                    self._used[i] = 0
                begin = int(self._used[i])
                end = min(begin + left, _BLOCK)
                found.append(self._block[i, begin:end].copy())
                self._used[i] = end
                left -= end - begin
        return np.concatenate(found)

    def take(self, seed: Ints) -> Floats:
        """(n, each): for one attempt of each of ``seed`` (n,), no repeats."""
        for i in seed[self._used[seed] == _BLOCK]:
            self._block[i] = self._more(int(i))
            self._used[i] = 0
        drawn = self._block[seed, self._used[seed]]
        self._used[seed] += 1
        return drawn


class Router:
    """All seeds' routers; arrays are (seeds, replicas) unless said otherwise."""

    def __init__(self, routing: Routing, seeds: Sequence[int], replicas: int) -> None:
        self.routing, self._policy = routing, POLICIES[routing.policy]
        count = len(seeds)
        self.reported = np.zeros((count, replicas))
        self.sent = np.zeros((count, replicas))
        self.turn: Ints = np.zeros(count, np.int64)
        self.last: Ints = np.full(count, -1, np.int64)
        self._draws = Draws(seeds, self._policy.uniforms)

    def report(self, seed: Ints, load: NDArray[np.int64]) -> None:
        """Replicas of ``seed`` (n,) report their ``load`` (n, replicas)."""
        self.reported[seed] = load
        self.sent[seed] = 0.0

    def choose(self, seed: Ints, routable: Bools, weight: Ints) -> Ints:
        """A replica for one attempt of each of ``seed`` (n,), no repeats; -1 where none is ``routable`` (n, replicas).

        ``weight`` (n,) is what each adds to the load of the replica that it is sent to.
        """
        some = routable.any(axis=1)
        if np.count_nonzero(some) < some.size:
            chosen = np.full(seed.size, -1, np.int64)
            if np.count_nonzero(some):
                chosen[some] = self.choose(seed[some], routable[some], weight[some])
            return chosen
        uniforms = self._draws.take(seed) if self._policy.uniforms else np.empty((seed.size, 0))
        replica = self._policy.pick(self, seed, routable, uniforms)
        self.turn[seed] += 1
        self.last[seed] = replica
        if self.routing.load_aware and self.routing.count_own_sends:
            self.sent[seed, replica] += weight
        return replica

    def choose_many(self, seed: Ints, routable: Bools) -> Ints:
        """As ``choose``, for any number of attempts in order of (seed, time), by a policy that doesn't look at load."""
        some = routable.any(axis=1)
        chosen, at, can = np.full(seed.size, -1, np.int64), seed[some], routable[some]
        if not at.size:
            return chosen
        count = np.bincount(at, minlength=self.turn.size)
        nth = np.arange(at.size) - np.searchsorted(at, at)
        if self._policy.uniforms:
            uniforms = self._draws.take_many(count)
            place = (uniforms[:, 0] * can.sum(axis=1)).astype(np.int64)
        else:
            place = (self.turn[at] + nth) % can.sum(axis=1)
        self.turn += count
        chosen[some] = _nth(can, place)
        return chosen

    def load(self, seed: Ints) -> Floats:
        """(n, replicas): what the router of each of ``seed`` believes."""
        return np.asarray(self.reported[seed] + self.sent[seed])

    def first_of(self, seed: Ints, ties: Bools) -> Ints:
        """Of the replicas that tie (n, replicas), the next in turn."""
        count = ties.shape[1]
        ahead = (np.arange(count) - self.last[seed][:, None] - 1) % count
        return np.asarray(np.where(ties, ahead, count).argmin(axis=1), np.int64)


def _nth(routable: Bools, n: Ints) -> Ints:
    """Index of the n-th (from 0) routable replica of each row."""
    return np.asarray((np.cumsum(routable, axis=1) > n[:, None]).argmax(axis=1), np.int64)


def _round_robin(router: Router, seed: Ints, routable: Bools, uniforms: Floats) -> Ints:
    return _nth(routable, router.turn[seed] % routable.sum(axis=1))


def _random(router: Router, seed: Ints, routable: Bools, uniforms: Floats) -> Ints:
    return _nth(routable, (uniforms[:, 0] * routable.sum(axis=1)).astype(np.int64))


def _least(router: Router, seed: Ints, routable: Bools, uniforms: Floats) -> Ints:
    load = np.where(routable, router.load(seed), np.inf)
    if not router.routing.rotate:
        return np.asarray(load.argmin(axis=1), np.int64)
    return router.first_of(seed, load == load.min(axis=1, keepdims=True))


def _power_of_two(router: Router, seed: Ints, routable: Bools, uniforms: Floats) -> Ints:
    count = routable.sum(axis=1)
    first = (uniforms[:, 0] * count).astype(np.int64)
    second = (uniforms[:, 1] * (count - 1)).astype(np.int64)
    second += second >= first
    offered = np.zeros(routable.shape, np.bool_)
    rows = np.arange(seed.size)
    offered[rows, _nth(routable, first)] = True
    two = count > 1
    offered[rows[two], _nth(routable[two], second[two])] = True
    return _least(router, seed, offered, uniforms)


@dataclass(frozen=True, slots=True)
class _Policy:
    pick: Callable[[Router, Ints, Bools, Floats], Ints]
    uniforms: int = 0
    load_aware: bool = False


POLICIES: dict[str, _Policy] = {
    "round_robin": _Policy(_round_robin),
    "random": _Policy(_random, uniforms=1),
    "least_outstanding": _Policy(_least, load_aware=True),
    "power_of_two": _Policy(_power_of_two, uniforms=2, load_aware=True),
    "least_kv": _Policy(_least, load_aware=True),
}
"""Routing policies by their name in the scenario."""
