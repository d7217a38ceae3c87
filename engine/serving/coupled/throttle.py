"""Clients that refuse their own requests while the service refuses many (adaptive throttling, Google's SRE book)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.serving.lanes import Bools, Floats, Ints

from .retries import Tries


@dataclass(frozen=True, slots=True)
class Throttle:
    """How clients throttle themselves."""

    k: float
    window_s: float


def refusal_probability(requests: Floats, accepts: Floats, k: float) -> Floats:
    """Chance that a client refuses a request itself: max(0, (requests - k accepts) / (requests + 1)).

    Source: Site Reliability Engineering, chapter 21.
    """
    return np.asarray(np.maximum(0.0, (requests - k * accepts) / (requests + 1.0)))


class Throttling:
    """Every seed's clients, who count together over the window before the last look."""

    def __init__(self, throttle: Throttle, seeds: int) -> None:
        self.throttle, self.seeds = throttle, seeds
        self.probability: Floats = np.zeros(seeds)
        self._time, self._seed = np.empty(0), np.empty(0, np.int64)
        self._accepted = np.empty(0, np.bool_)
        self._number = np.empty(0, np.int64)

    def count(self, tries: Tries, number: Ints, accepted: Bools) -> None:
        """These attempts were made, under their ``number``; who isn't ``accepted`` was refused at once."""
        self._number = np.concatenate([self._number, number])
        self._time = np.concatenate([self._time, tries.time_s])
        self._seed = np.concatenate([self._seed, tries.seed])
        self._accepted = np.concatenate([self._accepted, accepted])

    def refuse(self, number: Ints) -> None:
        """These were let in, and refused when their turn came."""
        if number.size:
            self._accepted[np.isin(self._number, number)] = False

    def look(self, due: Bools, now: Floats) -> None:
        """Seeds ``due`` (seeds,) count anew at ``now`` (seeds,)."""
        recent = self._time >= (now - self.throttle.window_s)[self._seed]
        self._time, self._seed, self._accepted = self._time[recent], self._seed[recent], self._accepted[recent]
        self._number = self._number[recent]
        before = self._time < now[self._seed]
        requests = np.bincount(self._seed[before], minlength=self.seeds).astype(np.float64)
        accepts = np.bincount(self._seed[before & self._accepted], minlength=self.seeds).astype(np.float64)
        fresh = refusal_probability(requests, accepts, self.throttle.k)
        self.probability = np.where(due, fresh, self.probability)

    def refused(self, seed: Ints, uniforms: Floats) -> Bools:
        """(n,): who is refused by its own client."""
        return np.asarray(uniforms < self.probability[seed], np.bool_)
