"""Replicas that come and go: what each seed's autoscaler sees, what it orders, and when that is of use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.scenario import Autoscaler
from engine.serving.autoscalers import Controller, Reading, controller
from engine.serving.lanes import Bools, Floats, Ints
from engine.traffic import stream

SAMPLES_A_WINDOW = 4
"""How often a metric is looked at in the time that it is averaged over."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The fleet at one instant, and since the last look at it; all (seeds, replicas)."""

    outstanding: Ints
    mean_outstanding: Floats
    """Averaged over the time since the last look."""
    mean_waiting: Floats
    kv_held: Ints
    busy_s: Floats
    """Seconds in steps since the run began."""


@dataclass(frozen=True, slots=True)
class Lives:
    """Every replica of every seed from its order to its end; a row each, seconds; infinity where it hasn't come."""

    seed: Ints
    replica: Ints
    ordered_s: Floats
    ready_s: Floats
    drained_from_s: Floats
    """From when on it took nothing new; infinity where a start was called off, too."""
    gone_s: Floats
    tick_seed: Ints
    """Of every decision: its seed,"""
    tick_s: Floats
    """when,"""
    wanted: Ints
    """and how many replicas were wanted, starting ones included."""
    sample_s: Floats
    """(samples,): moments, close to each other,"""
    queue: Ints
    """(samples, seeds): and how many requests waited then that had not been begun."""


@dataclass(slots=True)
class _Samples:
    """What was seen so far: times, and totals over ready replicas, (seeds,) each."""

    time_s: list[float] = field(default_factory=list)
    total: list[Floats] = field(default_factory=list)

    def mean(self, since_s: float) -> Floats:
        """Average of the totals seen after ``since_s``; of the last one where there is none."""
        first = len(self.time_s) - 1
        while first > 0 and self.time_s[first - 1] > since_s:
            first -= 1
        return np.asarray(np.mean(self.total[first:], axis=0))


class Scaling:
    """All seeds' replicas; ``taking`` is from when on and until when each takes requests, (seeds, replicas)."""

    def __init__(
        self, autoscaler: Autoscaler, seeds: Sequence[int], replicas: int, places: int, kv_capacity: int | None
    ) -> None:
        self.autoscaler, self.kv_capacity = autoscaler, kv_capacity
        count = len(seeds)
        self.controllers: list[Controller] = [controller(autoscaler, replicas) for _ in seeds]
        first = self.controllers[0]
        shortest = min(first.window_s, first.short_window_s or first.window_s)
        self.sample_every_s = min(first.interval_s, shortest / SAMPLES_A_WINDOW)
        self.next_tick_s = first.next_tick_s()
        start = autoscaler.startup
        self._mean_s = start.provision_s + start.image_pull_s + start.weights_load_s + start.warmup_s
        self._streams = [stream(seed, "startup") for seed in seeds]
        never = np.full((count, places), np.inf)
        self.ordered, self.ready, self.drain, self.gone = never, never.copy(), never.copy(), never.copy()
        self.ordered[:, :replicas] = self.ready[:, :replicas] = 0.0
        self.samples = _Samples()
        self._busy: Floats = np.zeros((count, places))
        self._arrived: Ints = np.zeros(count, np.int64)
        self._unserved: Ints = np.zeros(count, np.int64)
        self._past: list[tuple[int, int, float, float, float, float]] = []
        self._ticks: list[tuple[float, list[int]]] = []

    @property
    def taking(self) -> tuple[Floats, Floats]:
        """From when on and until when each replica takes requests."""
        return self.ready, self.drain

    def came(self, seed: Ints, unserved: Bools) -> None:
        """An attempt of each of ``seed`` (n,) has come; ``unserved`` (n,) found no replica."""
        self._arrived += np.bincount(seed, minlength=self._arrived.size)
        self._unserved += np.bincount(seed[unserved], minlength=self._arrived.size)

    def sample(self, now: float, levels: Levels, last_boundary_s: Floats) -> None:
        """Look at the fleet at ``now``: note the metric, and which draining replicas have emptied.

        ``last_boundary_s`` (seeds, replicas) is when each last ended a step.
        """
        empty = (self.drain <= now) & (levels.outstanding == 0)
        for seed, replica in zip(*empty.nonzero(), strict=True):
            self._leave(int(seed), int(replica), max(self.drain[seed, replica], last_boundary_s[seed, replica]))
        passed = now - (self.samples.time_s[-1] if self.samples.time_s else 0.0)
        self.samples.time_s.append(now)
        self.samples.total.append(self._total(now, levels, max(passed, 1e-9)))
        self._busy = levels.busy_s
        self._arrived, self._unserved = np.zeros((2, self._arrived.size), np.int64)

    def _total(self, now: float, levels: Levels, passed_s: float) -> Floats:
        """(seeds,): the metric summed over ready replicas, and whatever found none."""
        counts = (self.ready <= now) & (self.drain > now)
        each: dict[str, Callable[[], Floats | Ints]] = {
            "outstanding": lambda: levels.mean_outstanding,
            "queue": lambda: levels.mean_waiting,
            "running": lambda: levels.mean_outstanding - levels.mean_waiting,
            "kv_usage": lambda: levels.kv_held / (self.kv_capacity or np.inf),
            "utilization": lambda: (levels.busy_s - self._busy) / passed_s,
        }
        if self.autoscaler.metric == "rate":
            return self._arrived / passed_s
        total = np.where(counts, each[self.autoscaler.metric](), 0.0).sum(axis=1)
        # Refused demand wakes a fleet of none.
        return np.asarray(total + np.where(counts.any(axis=1), 0, self._unserved), np.float64)

    def tick(self, now: float) -> None:
        """Every seed's autoscaler decides at ``now``."""
        first = self.controllers[0]
        long = self.samples.mean(now - first.window_s)
        short = long if first.short_window_s is None else self.samples.mean(now - first.short_window_s)
        ready = ((self.ready <= now) & (self.drain > now)).sum(axis=1)
        starting = ((self.ordered <= now) & (self.ready > now)).sum(axis=1)
        wishes = []
        for seed, rule in enumerate(self.controllers):
            reading = Reading(now, int(ready[seed]), int(starting[seed]), float(long[seed]), float(short[seed]))
            wanted = rule.decide(reading)
            wishes.append(wanted)
            more = wanted - reading.present
            if more > 0:
                self._order(seed, more, now)
            elif more < 0:
                self._remove(seed, -more, now)
        self._ticks.append((now, wishes))
        self.next_tick_s = first.next_tick_s(now)

    def _order(self, seed: int, count: int, now: float) -> None:
        free = np.isinf(self.ordered[seed]).nonzero()[0][:count]
        self.ordered[seed, free] = now
        self.ready[seed, free] = now + self._startups(seed, free.size)

    def _startups(self, seed: int, count: int) -> Floats:
        cv = self.autoscaler.startup.cv
        if not cv or not self._mean_s:
            return np.full(count, self._mean_s)
        return self._streams[seed].gamma(1 / cv**2, self._mean_s * cv**2, count)

    def _remove(self, seed: int, count: int, now: float) -> None:
        """The youngest go first, those that aren't ready yet before all others."""
        here = ((self.ordered[seed] <= now) & (self.drain[seed] > now)).nonzero()[0]
        youngest = here[np.lexsort((-here, -self.ready[seed, here]))][:count]
        for replica in youngest.tolist():
            if self.ready[seed, replica] > now:
                self.ready[seed, replica] = np.inf
                self._leave(seed, replica, now)
            else:
                self.drain[seed, replica] = now

    def _leave(self, seed: int, replica: int, at: float) -> None:
        """Its place is free for another."""
        place = (seed, replica)
        ordered, ready, drain = (float(times[place]) for times in (self.ordered, self.ready, self.drain))
        self._past.append((seed, replica, ordered, ready, drain, float(at)))
        for times in (self.ordered, self.ready, self.drain):
            times[place] = np.inf

    def lives(self, sample_s: Floats, queue: Ints) -> Lives:
        """Everything that came and went; ``queue`` (samples, seeds) are the requests that waited at ``sample_s``."""
        here = np.isfinite(self.ordered).nonzero()
        present = [
            (int(i), int(j), *(float(times[i, j]) for times in (self.ordered, self.ready, self.drain)), np.inf)
            for i, j in zip(*here, strict=True)
        ]
        rows = np.array([*self._past, *present], np.float64).reshape(-1, 6)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 2], rows[:, 0]))]
        count = self._arrived.size
        return Lives(
            rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64), rows[:, 2], rows[:, 3], rows[:, 4], rows[:, 5],
            tick_seed=np.tile(np.arange(count), len(self._ticks)),
            tick_s=np.repeat([at for at, _ in self._ticks], count),
            wanted=np.array([wish for _, wishes in self._ticks for wish in wishes], np.int64),
            sample_s=sample_s,
            queue=queue,
        )  # fmt: skip
