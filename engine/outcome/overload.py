"""When more is asked than can be served: what became of each request, what retries add, and where the work went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.serving import COMPLETED, REJECTED, TIMED_OUT, UNFINISHED

from .course import Bins
from .places import asked_s
from .result import Result
from .spread import Floats, half_width

Bools = NDArray[np.bool_]
Kind = Literal["idle", "refused", "storm", "saved", "late", "fine"]
"""What to say first. idle: nothing arrived. refused: everybody was. storm: at the end retries bring more than can be
served while first attempts don't, and fewer than half of the requests are answered in time. saved: some were refused
and the promise was kept for those let in. late: it wasn't kept for those let in. fine: kept, and nobody was refused."""

END_SHARE = 0.25
"""Part of a run that counts as its end."""
_TARGET = 0.95
"""Share in time that counts as kept without a promise."""
_FROM_ARRIVAL = ("ttft", "e2e", "queue")
"""Metrics that are broken as soon as a request is older than what is promised."""
_NOTICEABLE = 0.005
"""Share of refused or lost requests from which on it is said."""


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of the requests whose first attempt came after the warm-up, whichever attempt decided it.

    Who is still in the system at the end is in time or late as soon as that is certain.
    """

    in_time: int
    """An attempt kept every promise."""
    late: int
    """An attempt was answered, or will be, but broke one."""
    refused: int
    """The last attempt was refused."""
    gave_up: int
    """The last attempt timed out."""
    waiting: int
    """Too early to tell."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.in_time + self.late + self.refused + self.gave_up + self.waiting

    @property
    def shares(self) -> dict[str, float]:
        """By name, of all; empty when there are none."""
        names = ("in_time", "late", "refused", "gave_up", "waiting")
        return {name: getattr(self, name) / self.total for name in names} if self.total else {}

    @property
    def of_let_in(self) -> float | None:
        """Share in time of those who weren't refused, as far as one can tell; ``None`` without any."""
        decided = self.in_time + self.late + self.gave_up
        return self.in_time / decided if decided else None


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked and what comes of it, bin by bin, all runs together; (bins,) each, per second and run."""

    bins: Bins
    first_rps: Floats
    """First attempts, by arrival."""
    retries_rps: Floats
    """Attempts after the first, by arrival."""
    in_time_rps: Floats
    """Answers that kept every promise, by when they were complete."""
    amplification: Floats
    """Attempts for each first attempt; ``nan`` where none came."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens worked on for attempts that came after the warm-up and ended: prompts read, answers written."""

    in_time: int
    late: int
    for_nothing: int
    """For callers who had given up, or gave up before the end."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.in_time + self.late + self.for_nothing


@dataclass(frozen=True, slots=True)
class End:
    """The last quarter of the runs after the warm-up; per second and run."""

    from_s: float
    first_rps: float
    offered_rps: float
    in_time_rps: float

    @property
    def share(self) -> float | None:
        """Answers in time for each first attempt, at most 1; ``None`` when nobody came."""
        return min(1.0, self.in_time_rps / self.first_rps) if self.first_rps > 0 else None


@dataclass(frozen=True, slots=True)
class Overload:
    """What one result says about refusing and retrying."""

    kind: Kind
    fates: Fates
    in_time_ci: tuple[float, float] | None
    """95 % interval of the share in time from the spread over runs; ``None`` with fewer than two."""
    load: Load
    spent: Spent
    end: End
    attempts: float | None
    """Attempts for each first attempt, after the warm-up; ``None`` when nobody came."""
    first_rps: float
    goodput_rps: float
    """Answers in time per second after the warm-up."""
    fleet_rps: float | None
    """What all replicas together can serve."""
    refused_length: float | None
    """Mean prompt of the attempts that were refused, in means of those that weren't; ``None`` without both."""
    rush_over_s: float | None
    """When first attempts were more than can be served for the last time, the end of that bin; ``None`` if never, or
    if they still are at the end."""


def overload(result: Result, bins: Bins) -> Overload:
    """The facts about overload, over the window after the warm-up; ``bins`` are those of the charts."""
    fleet = None if result.capacity_rps is None else result.capacity_rps * result.run.replicas
    fates, per_seed = _fates(result)
    load, end = _load(result, bins), _end(result)
    window = float(result.usage.window_s.sum())
    first = int((result.counted & (result.run.attempts.attempt == 0)).sum())
    share = fates.in_time / fates.total if fates.total else None
    half = half_width(per_seed[~np.isnan(per_seed)])
    return Overload(
        kind=_kind(result, fates, end, fleet),
        fates=fates,
        in_time_ci=None if half is None or share is None else (max(0.0, share - half), min(1.0, share + half)),
        load=load,
        spent=_spent(result),
        end=end,
        attempts=float(result.counted.sum()) / first if first else None,
        first_rps=first / window if window > 0 else 0.0,
        goodput_rps=result.throughput["goodput_per_s"] or 0.0,
        fleet_rps=fleet,
        refused_length=_refused_length(result),
        rush_over_s=_rush_over(load, fleet, end),
    )


def _fates(result: Result) -> tuple[Fates, Floats]:
    """The fates, and (seeds,) each seed's share in time, ``nan`` where nobody came."""
    a = result.run.attempts
    if not a.arrival_s.size:
        return Fates(0, 0, 0, 0, 0), np.full(a.seeds, np.nan)
    first = np.flatnonzero(a.attempt == 0)  # attempts of a request stand together, in order
    last = np.append(first[1:], a.arrival_s.size) - 1
    counts = a.arrival_s[first] >= result.warmup_s
    certain, broken = _unfinished(result)
    in_time = np.logical_or.reduceat(result.kept | certain, first)
    late = np.logical_or.reduceat(((a.state == COMPLETED) & ~result.kept) | broken, first) & ~in_time
    state, open_ = a.state[last], ~(in_time | late)

    def many(which: Bools) -> int:
        return int((which & counts).sum())

    fates = Fates(
        in_time=many(in_time),
        late=many(late),
        refused=many(open_ & (state == REJECTED)),
        gave_up=many(open_ & (state == TIMED_OUT)),
        waiting=many(open_ & (state == UNFINISHED)),
    )
    seed = a.seed_index[first]
    came = np.bincount(seed[counts], minlength=a.seeds)
    good = np.bincount(seed[counts & in_time], minlength=a.seeds)
    return fates, np.divide(good, came, out=np.full(a.seeds, np.nan), where=came > 0)


def _unfinished(result: Result) -> tuple[Bools, Bools]:
    """(attempts,) each: in the system at the end with every promise kept already; or with one broken already."""
    a = result.run.attempts
    still = a.state == UNFINISHED
    end = np.repeat(result.run.horizon_s, np.diff(a.seed_start))
    certain, broken = still & bool(result.scenario.slo), np.zeros(still.size, np.bool_)
    for objective in result.scenario.slo:
        metric = result.measured(objective)
        known = ~np.isnan(metric)
        age = end - asked_s(objective, a)
        waited = ~known & (age >= objective.threshold_s) & (objective.metric in _FROM_ARRIVAL)
        certain = certain & known & (metric <= objective.threshold_s)
        broken |= still & ((metric > objective.threshold_s) | waited)
    return certain, broken


def _load(result: Result, bins: Bins) -> Load:
    a, many = result.run.attempts, bins.start_s.size
    length = np.clip(result.run.horizon_s[:, None] - bins.start_s, 0.0, bins.width_s).sum(axis=0)

    def per_second(time_s: Floats) -> Floats:
        slot = np.clip((time_s / bins.width_s).astype(np.int64), 0, many - 1)
        count = np.bincount(slot, minlength=many).astype(np.float64)
        rate: Floats = np.divide(count, length, out=np.full(many, np.nan), where=length > 0)
        return rate

    first, again = per_second(a.arrival_s[a.attempt == 0]), per_second(a.arrival_s[a.attempt > 0])
    return Load(
        bins=bins,
        first_rps=first,
        retries_rps=again,
        in_time_rps=per_second(a.finish_s[result.kept]),
        amplification=np.divide(first + again, first, out=np.full(many, np.nan), where=first > 0),
    )


def _end(result: Result) -> End:
    a, horizon = result.run.attempts, result.run.horizon_s
    start = result.warmup_s + (1.0 - END_SHARE) * np.maximum(horizon - result.warmup_s, 0.0)
    length, begin = float((horizon - start).sum()), start[a.seed_index]
    late = a.arrival_s >= begin
    counts = [(late & (a.attempt == 0)).sum(), late.sum(), (result.kept & (a.finish_s >= begin)).sum()]
    first, offered, in_time = (float(count) / length if length > 0 else 0.0 for count in counts)
    return End(float(start.mean()), first, offered, in_time)


def _spent(result: Result) -> Spent:
    """A completed attempt's tokens are its own: what a preemption made necessary again isn't counted. The step that
    finishes a prompt makes the first token of the answer, so that one is no work of its own."""
    a = result.run.attempts
    own = a.prompt_tokens.astype(np.int64) - a.cached_prefix_tokens + a.output_tokens - 1
    done, lost = result.observed, result.counted & (a.state == TIMED_OUT)
    return Spent(
        in_time=int(own[done & result.kept].sum()),
        late=int(own[done & ~result.kept].sum()),
        for_nothing=int(a.spent_tokens[lost].sum()),
    )


def _refused_length(result: Result) -> float | None:
    a = result.run.attempts
    refused = a.state == REJECTED
    sides = [a.prompt_tokens[result.counted & which] for which in (refused, ~refused)]
    return float(sides[0].mean() / sides[1].mean()) if all(side.size for side in sides) else None


def _rush_over(load: Load, fleet_rps: float | None, end: End) -> float | None:
    above = np.flatnonzero(np.nan_to_num(load.first_rps) > (fleet_rps or np.inf))
    if not above.size:
        return None
    over = float(load.bins.start_s[above[-1]]) + load.bins.width_s
    return over if over <= end.from_s else None


def _kind(result: Result, fates: Fates, end: End, fleet_rps: float | None) -> Kind:
    total = fates.total
    if not total:
        return "idle"
    if fates.refused == total:
        return "refused"
    if fleet_rps is not None and end.first_rps <= fleet_rps < end.offered_rps and (end.share or 0.0) < 0.5:
        return "storm"
    slo = result.scenario.slo
    if (fates.of_let_in or 0.0) < min((objective.target for objective in slo), default=_TARGET):
        return "late"
    return "saved" if fates.refused >= _NOTICEABLE * total else "fine"
