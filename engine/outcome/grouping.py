"""The group over time: how many conversations a replica works on, what memory would allow, and whom that costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.machine import seats
from engine.serving import REJECTED, TIMED_OUT

from .result import Result
from .spread import Floats
from .timeline import bin_width

NOTICED = 0.01
"""From this share of the arrivals on, refusals, time-outs and preemptions have begun."""
FULL = 0.1
"""From this share of the busy time on, memory limits the group."""
_WINDOWS = 20
"""Of a run: lengths vary so much that few conversations say little about them."""


@dataclass(frozen=True, slots=True)
class GroupCourse:
    """All runs together, by bins of `width_s` seconds from 0 on; arrays (bins,), nan where there was nothing."""

    start_s: Floats
    width_s: float
    held_tokens: Floats
    """Mean KV of the conversations that arrived within a twentieth of the run around the bin, in the middle of their
    work, long ones counted more often."""
    allowed: Floats
    """How many of those fit into a replica: KV or max_num_seqs, whichever is less."""
    running: Floats
    """Conversations that a ready replica worked on, average over the bin."""
    waiting: Floats
    """Conversations waiting for a ready replica, average over the bin."""
    kv_limited: Floats
    """Share of the busy time in which somebody waited for KV."""
    lost: Floats
    """Share of the arrivals that were refused or timed out."""
    preempted: Floats
    """Preemptions for each arrival."""
    full_from_s: float | None
    """When memory begins to limit the group: the first bin after the warm-up with `FULL`; None: it doesn't."""
    lost_from_s: float | None
    gave_up: bool
    """Whether more of those lost gave up than were refused."""
    preempted_from_s: float | None
    """From when on those who come are preempted at some time; that time itself isn't kept."""
    runs: int


def group_course(result: Result) -> GroupCourse:
    """The course of a result."""
    frame = _all_runs(result.timeline)
    start, width = frame.index.to_numpy(np.float64), bin_width(float(result.run.horizon_s.max(initial=0.0)))
    lost, preempted, held = _by_arrival(result, width, start.size)
    ready = frame["replicas_ready"].to_numpy(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        running, waiting = (frame[name].to_numpy(np.float64) / ready for name in ("running", "queue"))
    limited = frame["limited_kv"].to_numpy(np.float64)
    capacity, most = result.model.kv_capacity_tokens, result.scenario.batching.max_num_seqs
    counted, states = start >= result.warmup_s, result.run.attempts.state
    return GroupCourse(
        start_s=start,
        width_s=width,
        held_tokens=held,
        allowed=np.where(np.isnan(held), np.nan, seats(capacity, most, held)),
        running=running,
        waiting=waiting,
        kv_limited=limited,
        lost=lost,
        preempted=preempted,
        full_from_s=_first(start, counted & (limited >= FULL)),
        lost_from_s=_first(start, counted & (lost >= NOTICED)),
        gave_up=bool((states == TIMED_OUT).sum() > (states == REJECTED).sum()),
        preempted_from_s=_first(start, counted & (preempted >= NOTICED)),
        runs=result.run.attempts.seeds,
    )


def _all_runs(timeline: pd.DataFrame) -> pd.DataFrame:
    """Means over the runs, one row a bin; where a run wasn't busy it says nothing about limits."""
    columns = ["queue", "running", "replicas_ready", "limited_kv"]
    return timeline.groupby("t_s")[columns].mean()


def _by_arrival(result: Result, width_s: float, bins: int) -> tuple[Floats, Floats, Floats]:
    """(bins,) each: share of arrivals lost, preemptions for each, and the KV that a conversation holds."""
    a, reserve = result.run.attempts, result.scenario.batching.kv_policy == "reserve"
    slot = np.minimum((a.arrival_s / width_s).astype(np.int64), bins - 1)

    def total(amount: NDArray[np.generic]) -> Floats:
        return np.asarray(np.bincount(slot, amount, minlength=bins), np.float64)

    output = a.output_tokens.astype(np.float64)
    own = a.prompt_tokens - a.cached_prefix_tokens + (output if reserve else output / 2)
    came, gone = total(np.ones(slot.size)), total((a.state == REJECTED) | (a.state == TIMED_OUT))
    around = np.ones(2 * (bins // (2 * _WINDOWS)) + 1)
    held, weight = (np.convolve(total(amount), around, "same") for amount in (own * output, output))
    with np.errstate(invalid="ignore", divide="ignore"):
        return gone / came, total(a.preemptions) / came, held / weight


def _first(start_s: Floats, at: NDArray[np.bool_]) -> float | None:
    return float(start_s[at][0]) if at.any() else None
