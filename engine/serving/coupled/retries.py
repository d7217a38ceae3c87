"""Clients who try again: which failures they notice when, whether their budget allows it, and how long they wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.serving.lanes import Bools, Floats, Ints
from engine.traffic import stream


@dataclass(frozen=True, slots=True)
class Retries:
    """How clients try again."""

    most: int = 0
    """Retries of one layer."""
    backoff_s: float = 1.0
    """A retry waits a uniform time up to this, doubled with each of its layer's."""
    budget_ratio: float | None = None
    """Retries allowed per first attempt; ``None``: no limit."""
    layers: int = 1

    @property
    def attempts(self) -> int:
        """Most attempts of one request."""
        return int((self.most + 1) ** self.layers)

    def doublings(self, attempt: Ints) -> Ints:
        """How often the wait after each ``attempt`` has doubled.

        Written with base ``most + 1``, an attempt's digits are the retries that every layer has made so far, the
        innermost first; the first layer that has one left makes the next.
        """
        rest, found = attempt.copy(), np.full(attempt.size, -1, np.int64)
        for _ in range(self.layers):
            digit = rest % (self.most + 1)
            found = np.where((found < 0) & (digit < self.most), digit, found)
            rest //= self.most + 1
        return found


class Uniforms:
    """A uniform for every (seed, request, attempt), from streams ``name.attempt``."""

    def __init__(self, name: str, seeds: Sequence[int], requests: Ints) -> None:
        self._name, self._seeds, self._requests = name, seeds, requests
        self._drawn: dict[tuple[int, int], Floats] = {}

    def of(self, seed: Ints, request: Ints, attempt: Ints) -> Floats:
        """(n,): ``seed`` are positions in the list of seeds, ``request`` counts from 0 in each."""
        out = np.empty(seed.size)
        for key in set(zip(seed.tolist(), attempt.tolist(), strict=True)):
            if key not in self._drawn:
                i, a = key
                self._drawn[key] = stream(self._seeds[i], f"{self._name}.{a}").random(int(self._requests[i]))
            here = (seed == key[0]) & (attempt == key[1])
            out[here] = self._drawn[key][request[here]]
        return out


@dataclass(frozen=True, slots=True)
class Tries:
    """Attempts to come, or that failed: time, seed, request, attempt number; all (n,)."""

    time_s: Floats
    seed: Ints
    request: Ints
    attempt: Ints

    @classmethod
    def none(cls) -> Tries:
        """No attempt."""
        return cls(np.empty(0), *np.empty((3, 0), np.int64))

    def at(self, index: Bools | Ints) -> Tries:
        """Those at ``index``, a mask or positions."""
        return Tries(self.time_s[index], self.seed[index], self.request[index], self.attempt[index])

    def plus(self, other: Tries) -> Tries:
        """These and those."""
        if not other.seed.size:
            return self
        if not self.seed.size:
            return other
        return Tries(
            np.concatenate([self.time_s, other.time_s]),
            np.concatenate([self.seed, other.seed]),
            np.concatenate([self.request, other.request]),
            np.concatenate([self.attempt, other.attempt]),
        )


class Retrying:
    """Every seed's clients. What fails is noticed at the next look, and comes back later or not at all."""

    def __init__(self, retries: Retries, seeds: Sequence[int], requests: Ints, horizon_s: float) -> None:
        self.retries, self.horizon_s = retries, horizon_s
        self.pending = Tries.none()
        self._failed = Tries.none()
        self._granted: Ints = np.zeros(len(seeds), np.int64)
        self._wait = Uniforms("backoff", seeds, requests)

    @property
    def busy(self) -> bool:
        """Whether a retry is on its way, or may be."""
        return bool(self.pending.seed.size or self._failed.seed.size)

    def failed(self, tries: Tries) -> None:
        """These attempts have failed, at their times."""
        self._failed = self._failed.plus(tries)

    def look(self, due: Bools, now: Floats, firsts: Ints) -> None:
        """Seeds ``due`` (seeds,) notice at ``now`` (seeds,) what failed before; ``firsts`` (seeds,) attempts came
        first."""
        if not self._failed.seed.size:
            return
        noticed = due[self._failed.seed]
        found, self._failed = self._failed.at(noticed), self._failed.at(~noticed)
        found = found.at(found.attempt + 1 < self.retries.attempts)
        if not found.seed.size:
            return
        found = found.at(np.lexsort((found.request, found.time_s, found.seed)))
        found = found.at(self._within_budget(found.seed, firsts))
        wait = self._wait.of(found.seed, found.request, found.attempt)
        wait *= self.retries.backoff_s * 2.0 ** self.retries.doublings(found.attempt)
        comes = np.maximum(found.time_s + wait, now[found.seed])
        again = Tries(comes, found.seed, found.request, found.attempt + 1)
        self.pending = self.pending.plus(again.at(comes < self.horizon_s))

    def take(self, until: Floats) -> Tries:
        """Retries that come before ``until`` (seeds,)."""
        p = self.pending
        if not p.seed.size:
            return p
        now = p.time_s < until[p.seed]
        if not np.count_nonzero(now):
            return Tries.none()
        self.pending = p.at(~now)
        return p.at(now)

    def next_s(self, seeds: int) -> Floats:
        """(seeds,): when the next retry comes; infinity where none is on its way."""
        out = np.full(seeds, np.inf)
        np.minimum.at(out, self.pending.seed, self.pending.time_s)
        return out

    def _within_budget(self, seed: Ints, firsts: Ints) -> Bools:
        """(n,): whose retry the budget allows; ``seed`` (n,) ascends."""
        ratio = self.retries.budget_ratio
        if ratio is None:
            self._granted += np.bincount(seed, minlength=firsts.size)
            return np.ones(seed.size, np.bool_)
        # Granted while those before are at most ratio * firsts: the first floor(ratio * firsts) + 1 of the run.
        nth = np.arange(seed.size) - np.searchsorted(seed, seed)
        allowed = np.floor(ratio * firsts).astype(np.int64) + 1 - self._granted
        granted: Bools = nth < allowed[seed]
        self._granted += np.bincount(seed[granted], minlength=firsts.size)
        return granted
