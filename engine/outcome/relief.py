"""When help arrives: one run's demand, capacity, queue and replicas, and what its longest lag is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.scenario import Startup
from engine.serving import Lives

from .lag import Demand, Episode, demand
from .replicas import Spans
from .result import Result
from .spread import Floats
from .traps import Trap, traps

Ints = NDArray[np.int64]

MOST_POINTS = 600
"""Of a line: a screen shows no more."""

Stage = Literal["detection", "orders", "provision", "image_pull", "weights_load", "warmup", "falling", "alone", "drain"]
"""What a part of a lag is spent on: detection and decision; orders that follow the first; the four stages of a start;
demand that falls to what is there by then; alone: no order was of use; drain: the queue, after the lag."""
_STARTUP: tuple[Stage, ...] = ("provision", "image_pull", "weights_load", "warmup")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of time with a name; seconds after demand had crossed capacity."""

    stage: Stage
    start_s: float
    seconds: float
    """Below 0 for a detection that came before there was anything to detect."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A count that holds from each moment to the next; (n,)."""

    time_s: Floats
    count: Ints


@dataclass(frozen=True, slots=True)
class Relief:
    """What an autoscaler did. The run shown is the one whose lag is the median of all runs'."""

    seed: int
    """The run shown."""
    demand: Demand
    """Thinned to a screen's width."""
    queue_time_s: Floats
    queue: Ints
    """(n,): waiting requests; of neighbouring samples the highest."""
    wanted: Steps
    starting: Steps
    ready: Steps
    episode: Episode | None
    """Of the run shown, the one that harmed most."""
    parts: tuple[Part, ...]
    """What that episode is made of; those before ``drain`` sum to its lag."""
    helped: bool
    """Whether a replica that was ordered in it became ready in it."""
    lags_s: tuple[float | None, ...]
    """Of each run that had an episode, the lag of the one that harmed most; ``None``: no help by the end."""
    runs: int
    harmed: float
    """Requests harmed in a run, mean over runs."""
    offered: float
    """Requests that came in a run, mean over runs."""
    replica_hours: float
    """Paid for in a run, mean over runs."""
    fewest_ready: int
    most_ready: int
    """In the run shown."""
    mean_paid: float
    """Replicas paid for, averaged over all runs after the warm-up."""
    first_ready: int
    """Replicas that the runs began with."""
    traps: tuple[Trap, ...]

    @property
    def typical(self) -> float | None:
        """The lag that is shown; seconds."""
        return self.episode.lag_s if self.episode else None


def relief(result: Result) -> Relief | None:
    """What the autoscaler did; ``None`` where there is none, or nothing that a replica could serve."""
    lives, episodes, each = result.run.lives, result.episodes, result.capacity_rps
    if lives is None or episodes is None or each is None:
        return None
    end, replicas = result.run.horizon_s, result.replicas
    mains = _mains(episodes)
    seed = _typical(mains)
    main = mains.get(seed)
    course = demand(result.run, replicas, seed, each)
    ready = _steps(replicas.ready, seed)
    queue_time, queue = _highest(lives.sample_s, lives.queue[:, seed])
    counts = ready.count[ready.time_s < end[seed]]
    return Relief(
        seed=seed + result.first_seed,
        demand=_thinned(course),
        queue_time_s=queue_time,
        queue=queue,
        wanted=_wanted(lives, seed, result.scenario.fleet.replicas),
        starting=_steps(replicas.starting, seed),
        ready=ready,
        episode=main,
        parts=() if main is None else parts(main, lives, result.scenario.autoscaler.startup, float(end[seed])),
        helped=main is not None and _helped(main, lives),
        lags_s=tuple(mains[i].lag_s for i in sorted(mains)),
        runs=end.size,
        harmed=sum(e.harmed for e in episodes) / end.size,
        offered=result.run.attempts.arrival_s.size / end.size,
        replica_hours=float(replicas.paid.seconds(0.0, end).mean()) / 3600.0,
        fewest_ready=int(counts.min(initial=result.scenario.fleet.replicas)),
        most_ready=int(counts.max(initial=0)),
        mean_paid=replicas.mean_paid(result.warmup_s, end),
        first_ready=result.scenario.fleet.replicas,
        traps=traps(result.scenario, lives),
    )


def parts(episode: Episode, lives: Lives, startup: Startup, end_s: float) -> tuple[Part, ...]:
    """What an episode's time is made of; without help by ``end_s`` up to there.

    The start that is taken apart is that of the last replica that became ready in it, or of the first one ordered
    where none did. Its stages have the shares that the scenario gives them.
    """
    crossed = episode.demand_crossed_s
    ready = end_s if episode.ready_s is None else episode.ready_s
    if episode.decided_s is None:
        return _chain(crossed, [("alone", crossed, ready)], episode)
    ordered, useful = _start(episode, lives, ready)
    decided = episode.decided_s
    chain: list[tuple[Stage, float, float]] = [("detection", crossed, decided), ("orders", decided, ordered)]
    stages = [startup.provision_s, startup.image_pull_s, startup.weights_load_s, startup.warmup_s]
    scale, at = (useful - ordered) / (sum(stages) or 1.0), ordered
    for stage, seconds in zip(_STARTUP, stages, strict=True):
        until = min(at + seconds * scale, ready)
        chain.append((stage, at, max(until, at)))
        at = max(until, at)
    return _chain(crossed, [*chain, ("falling", at, ready)], episode)


def _start(episode: Episode, lives: Lives, ready_s: float) -> tuple[float, float]:
    """(ordered, ready) of the start to take apart, seconds."""
    assert episode.decided_s is not None
    mine = (lives.seed == episode.seed) & (lives.ordered_s >= episode.decided_s) & np.isfinite(lives.ready_s)
    mine &= lives.ordered_s <= ready_s
    in_time = mine & (lives.ready_s <= ready_s + 1e-6)
    if in_time.any():
        last = int(np.flatnonzero(in_time)[np.argmax(lives.ready_s[in_time])])
    else:
        last = int(np.flatnonzero(mine)[np.argmin(lives.ordered_s[mine])])
    return float(lives.ordered_s[last]), float(lives.ready_s[last])


def _helped(episode: Episode, lives: Lives) -> bool:
    if episode.decided_s is None or episode.ready_s is None:
        return False
    return _start(episode, lives, episode.ready_s)[1] <= episode.ready_s + 1e-6


def _chain(crossed_s: float, found: list[tuple[Stage, float, float]], episode: Episode) -> tuple[Part, ...]:
    """Parts that take any time, and the drain."""
    if episode.ready_s is not None and episode.drained_s is not None:
        found = [*found, ("drain", episode.ready_s, episode.drained_s)]
    kept = [(stage, since, until) for stage, since, until in found if abs(until - since) > 1e-6]
    return tuple(Part(stage, since - crossed_s, until - since) for stage, since, until in kept)


def _mains(episodes: Sequence[Episode]) -> dict[int, Episode]:
    """By seed, the episode that harmed most, of equal ones the longest."""
    found: dict[int, Episode] = {}
    for e in episodes:
        if e.seed not in found or _weight(e) > _weight(found[e.seed]):
            found[e.seed] = e
    return found


def _weight(e: Episode) -> tuple[int, float]:
    return e.harmed, np.inf if e.lag_s is None else e.lag_s


def _typical(mains: dict[int, Episode]) -> int:
    """The run with the median lag (the lower one of two); a lag without end is the longest. The first without any."""
    order = sorted(mains.values(), key=lambda e: (np.inf if e.lag_s is None else e.lag_s, e.seed))
    return order[(len(order) - 1) // 2].seed if order else 0


def _steps(spans: Spans, seed: int) -> Steps:
    mine = spans.seed == seed
    time = np.unique(np.concatenate([[0.0], spans.start_s[mine], spans.end_s[mine]]))
    return Steps(time, spans.count(seed, time))


def _wanted(lives: Lives, seed: int, at_first: int) -> Steps:
    """Only the moments of a change."""
    mine = lives.tick_seed == seed
    time = np.concatenate([[0.0], lives.tick_s[mine]])
    count = np.concatenate([[at_first], lives.wanted[mine]]).astype(np.int64)
    changed = np.concatenate([[True], np.diff(count) != 0])
    return Steps(time[changed], count[changed])


def _thinned(d: Demand) -> Demand:
    every = max(1, -(-d.time_s.size // MOST_POINTS))
    return Demand(d.time_s[::every], d.demand_rps[::every], d.ready[::every], d.capacity_rps[::every])


def _highest(time_s: Floats, value: Ints) -> tuple[Floats, Ints]:
    """Fewer samples, each the highest of its neighbours."""
    every = max(1, -(-time_s.size // MOST_POINTS))
    starts = np.arange(0, time_s.size, every)
    return time_s[starts], np.maximum.reduceat(value, starts) if starts.size else value
