"""How many replicas were starting, ready and paid for, whether an autoscaler moved them or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.serving import FleetRun

from .spread import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of time [start, end) of a seed each; (n,), seconds."""

    seed: Ints
    start_s: Floats
    end_s: Floats

    def seconds(self, since_s: float, until_s: Floats) -> Floats:
        """(seeds,): seconds of all stretches together inside [since_s, until_s of the seed]."""
        inside = np.minimum(self.end_s, until_s[self.seed]) - np.maximum(self.start_s, since_s)
        return np.bincount(self.seed, np.maximum(inside, 0.0), until_s.size).astype(np.float64)

    def count(self, seed: int, times_s: Floats) -> Ints:
        """(t,): how many stretches of a seed cover each time."""
        mine = self.seed == seed
        begun = np.searchsorted(np.sort(self.start_s[mine]), times_s, side="right")
        return np.asarray(begun - np.searchsorted(np.sort(self.end_s[mine]), times_s, side="right"), np.int64)

    def most(self, seeds: int) -> int:
        """The most stretches of a seed at once."""
        counts = (self.count(i, self.start_s[self.seed == i]).max(initial=0) for i in range(seeds))
        return max(map(int, counts), default=0)

    def cut(self, until_s: Floats) -> Spans:
        """Those that begin before ``until_s`` of their seed, cut there."""
        end = np.minimum(self.end_s, until_s[self.seed])
        some = self.start_s < end
        return Spans(self.seed[some], self.start_s[some], end[some])


@dataclass(frozen=True, slots=True)
class Replicas:
    """All stretches of a run in which replicas were in a state."""

    starting: Spans
    """Ordered and not ready yet."""
    ready: Spans
    """Taking requests."""
    working: Spans
    """Able to work: ready, or finishing what they had."""
    paid: Spans
    """From the order to the end."""

    @classmethod
    def of(cls, run: FleetRun) -> Replicas:
        """The replicas of a run, cut at each seed's end."""
        lives, seeds, end = run.lives, run.horizon_s.size, run.horizon_s
        if lives is None:
            seed = np.repeat(np.arange(seeds), run.replicas)
            always = Spans(seed, np.zeros(seed.size), end[seed]).cut(end)
            none = Spans(seed[:0], np.zeros(0), np.zeros(0))
            return cls(none, always, always, always)
        last = np.minimum(lives.drained_from_s, lives.gone_s)
        return cls(
            *(
                Spans(lives.seed, start, stop).cut(end)
                for start, stop in (
                    (lives.ordered_s, np.minimum(lives.ready_s, lives.gone_s)),
                    (lives.ready_s, last),
                    (lives.ready_s, lives.gone_s),
                    (lives.ordered_s, lives.gone_s),
                )
            )
        )

    def mean_paid(self, since_s: float, until_s: Floats) -> float:
        """Replicas paid for, averaged over [since_s, until_s] and seeds; 0 for an empty window."""
        return _mean(self.paid, since_s, until_s)

    def mean_ready(self, since_s: float, until_s: Floats) -> float:
        """Replicas that took requests, averaged likewise."""
        return _mean(self.ready, since_s, until_s)


def _mean(spans: Spans, since_s: float, until_s: Floats) -> float:
    window = float(np.maximum(until_s - since_s, 0.0).sum())
    return float(spans.seconds(since_s, until_s).sum()) / window if window > 0 else 0.0
