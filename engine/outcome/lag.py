"""Autoscaler lag: what passes between demand that outgrows the ready replicas and help that is of use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.serving import FleetRun, Lives

from .replicas import Replicas
from .spread import Floats

WINDOW_S = 30.0
"""Demand is the work offered over so long before each moment."""
STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class Episode:
    """One stretch of demand above the capacity of the ready replicas; seconds from the run's start."""

    seed: int
    """From 0."""
    demand_crossed_s: float
    decided_s: float | None
    """When the autoscaler first ordered what became of use in it; ``None``: it didn't."""
    ready_s: float | None
    """When capacity was enough again; ``None``: not before the end."""
    drained_s: float | None
    """When the queue was back to its level before."""
    unmet_requests: float
    """Demand above capacity, summed up."""
    harmed: int
    """Requests that came before it had drained, or the next one began, and broke the promise."""
    spare_replicas: int
    """Replicas beyond those ready at its start that its highest demand needed."""

    @property
    def lag_s(self) -> float | None:
        """From demand above capacity to capacity above demand."""
        return None if self.ready_s is None else self.ready_s - self.demand_crossed_s

    @property
    def detection_s(self) -> float | None:
        """Until the decision; below 0 where it came before demand had crossed."""
        return None if self.decided_s is None else self.decided_s - self.demand_crossed_s

    @property
    def provisioning_s(self) -> float | None:
        """From the decision to capacity above demand."""
        return None if self.decided_s is None or self.ready_s is None else self.ready_s - self.decided_s

    def as_summary(self, first_seed: int) -> dict[str, object]:
        """The summary's entry."""
        return {
            "seed": self.seed + first_seed,
            "demand_crossed_s": self.demand_crossed_s,
            "decided_s": self.decided_s,
            "ready_s": self.ready_s,
            "drained_s": self.drained_s,
            "lag_s": self.lag_s,
            "detection_s": self.detection_s,
            "provisioning_s": self.provisioning_s,
            "unmet_requests": self.unmet_requests,
            "harmed": self.harmed,
            "spare_replicas": self.spare_replicas,
        }


@dataclass(frozen=True, slots=True)
class Demand:
    """A seed's demand against what its ready replicas can do, moment by moment; (t,)."""

    time_s: Floats
    demand_rps: Floats
    """Work offered over the last 30 s, in mean requests per second."""
    ready: NDArray[np.int64]
    capacity_rps: Floats


def demand(run: FleetRun, replicas: Replicas, seed: int, capacity_rps: float, *, retries: bool = True) -> Demand:
    """A seed's demand; a request's work is its tokens, cached ones left out, against the mean of all requests. Without
    ``retries`` that of first attempts alone."""
    a = run.attempts
    part = np.arange(int(a.seed_start[seed]), int(a.seed_start[seed + 1]))
    part = part if retries else part[a.attempt[part] == 0]
    work = (a.prompt_tokens - a.cached_prefix_tokens + a.output_tokens).astype(np.float64)
    order = np.argsort(a.arrival_s[part], kind="stable")
    arrival = a.arrival_s[part][order]
    done = np.concatenate([[0.0], np.cumsum(work[part][order])]) / (work.mean() if work.size else 1.0)
    time = np.arange(0.0, float(run.horizon_s[seed]), STEP_S)
    until = np.searchsorted(arrival, time, side="right")
    since = np.searchsorted(arrival, time - WINDOW_S, side="right")
    ready = replicas.ready.count(seed, time)
    offered = np.asarray((done[until] - done[since]) / WINDOW_S, np.float64)
    return Demand(time, offered, ready, np.asarray(ready * capacity_rps, np.float64))


def episodes(run: FleetRun, replicas: Replicas, capacity_rps: float, bad: NDArray[np.bool_]) -> tuple[Episode, ...]:
    """All stretches of demand above capacity, seed by seed; ``bad`` (attempts,) broke the promise.

    Stretches less than 30 s apart are one. Those that are over within 30 s without a decision are the noise of
    arrivals, and left out.
    """
    assert run.lives is not None
    found = []
    for seed in range(run.horizon_s.size):
        d = demand(run, replicas, seed, capacity_rps)
        before = -np.inf
        mine: list[Episode] = []
        for first, last in _stretches(d.demand_rps > d.capacity_rps):
            episode = _episode(run.lives, d, seed, first, last, before, float(run.horizon_s[seed]), capacity_rps)
            short = last - first < WINDOW_S / STEP_S
            if not (short and episode.decided_s is None):
                mine.append(episode)
                before = np.inf if episode.ready_s is None else episode.ready_s
        begins = [e.demand_crossed_s for e in mine] + [np.inf]
        found += [replace(e, harmed=_harmed(run, e, begins[i + 1], bad)) for i, e in enumerate(mine)]
    return tuple(found)


def _harmed(run: FleetRun, e: Episode, next_s: float, bad: NDArray[np.bool_]) -> int:
    """Each request belongs to one episode, though the next may begin before the queue of this one is gone."""
    part = slice(int(run.attempts.seed_start[e.seed]), int(run.attempts.seed_start[e.seed + 1]))
    arrival = run.attempts.arrival_s[part]
    over = np.inf if e.drained_s is None else e.drained_s
    inside = (arrival >= e.demand_crossed_s) & (arrival <= over) & (arrival < next_s)
    return int((bad[part] & inside).sum())


def _stretches(above: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first moment above, first moment not above any more) of each stretch, near ones joined; the latter may be one
    past the end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], above, [False]]).astype(np.int8)))
    joined: list[tuple[int, int]] = []
    for first, last in edges.reshape(-1, 2).tolist():
        if joined and first - joined[-1][1] < WINDOW_S / STEP_S:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _episode(
    lives: Lives, d: Demand, seed: int, first: int, last: int, before_s: float, end_s: float, capacity_rps: float
) -> Episode:  # fmt: skip
    crossed = float(d.time_s[first])
    ended = last < d.time_s.size
    until = float(d.time_s[last]) if ended else end_s
    came = (lives.seed == seed) & (lives.ordered_s > before_s) & (lives.ready_s > crossed) & np.isfinite(lives.ready_s)
    ordered = lives.ordered_s[came & (lives.ordered_s <= until) & (lives.ordered_s > 0)]
    drained = _drained(lives, seed, crossed, until) if ended else None
    short = np.maximum(d.demand_rps[first:last] - d.capacity_rps[first:last], 0.0)
    needed = int(np.ceil(d.demand_rps[first:last].max() / capacity_rps - 1e-9))
    return Episode(
        seed=seed,
        demand_crossed_s=crossed,
        decided_s=float(ordered.min()) if ordered.size else None,
        ready_s=until if ended else None,
        drained_s=drained,
        unmet_requests=float(short.sum() * STEP_S),
        harmed=0,  # until it is known when the next one begins
        spare_replicas=max(needed - int(d.ready[first]), 0),
    )


def _drained(lives: Lives, seed: int, crossed_s: float, ready_s: float) -> float | None:
    """When the queue was first seen back at its level before demand crossed; ``None``: never."""
    time, queue = lives.sample_s, lives.queue[:, seed]
    before = time <= crossed_s
    level = int(queue[before][-1]) if before.any() else 0
    back = (time >= ready_s) & (queue <= level)
    return float(time[back][0]) if back.any() else None
