"""From a trace to requests, under a scenario's classes, speed and horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from engine.traffic.blocks import Blocks
from engine.traffic.growth import Factors, grown
from engine.traffic.lengths import whole
from engine.traffic.prefix import usable_prefix
from engine.traffic.requests import MOST_REQUESTS, Requests
from engine.traffic.traces import Trace, TraceError

if TYPE_CHECKING:
    from engine.scenario import Run, Traffic

LONGEST_S: Final = 7 * 86_400.0  # the longest run there is, in seconds

Rows = slice | NDArray[np.intp]
"""Which of a trace's rows the requests are."""


def replay(traffic: Traffic, run: Run, trace: Trace, seed: int) -> Requests:
    """Return the trace's requests with times divided by `traffic.trace.speed`, those in [0, run.horizon_s).

    With `resample` blocks they are those of blocks of the trace, drawn for this seed, until the horizon; without a
    horizon, until the trace's own span, its end included. Blocks are cut in the trace's own time, so the speed squeezes
    the same blocks.

    What the trace holds wins. A column that it doesn't have takes the value of the scenario's first class, also for
    rows whose class is another one. Classes are the scenario's, then the trace's others in order of appearance. Lengths
    are as recorded; with `growth` they are multiplied, then rounded half up and kept at 1 or more.

    Raises `TraceError` when the trace and the run don't go together.
    """
    arrival, rows, notes = (_resampled if traffic.trace.resample == "blocks" else _recorded)(traffic, run, trace, seed)
    if run.horizon_s is None:
        _check_unbounded(run, float(arrival[-1]) if arrival.size else 0.0)
    first, count = traffic.classes[0], arrival.size
    factors = grown(traffic.growth, arrival, run.horizon_s)
    prompt = _multiplied(trace.prompt_tokens[rows], factors.prompt)
    names, class_id = _merged_classes(tuple(c.name for c in traffic.classes), trace)
    if trace.cached_prefix_tokens is None:
        prefix = usable_prefix(first.cached_prefix_tokens, prompt)
    else:
        prefix = usable_prefix(trace.cached_prefix_tokens[rows], prompt)
        notes.extend(_cut_prefixes(trace.cached_prefix_tokens, trace.prompt_tokens))
    priority = np.full(count, first.priority, dtype=np.int32) if trace.priority is None else trace.priority[rows]
    return Requests(
        arrival,
        prompt,
        _multiplied(trace.output_tokens[rows], factors.output),
        prefix,
        class_id[rows],
        priority,
        names,
        (*trace.notes, *notes),
    )


def _recorded(traffic: Traffic, run: Run, trace: Trace, seed: int) -> tuple[NDArray[np.float64], Rows, list[str]]:
    """Return the trace's arrivals before the horizon, in seconds, which rows they are, and what to say about others."""
    arrival = trace.arrival_s if traffic.trace.speed == 1.0 else trace.arrival_s / traffic.trace.speed
    total = kept = arrival.size
    notes = []
    if run.horizon_s is not None:
        kept = int(np.searchsorted(arrival, run.horizon_s, side="left"))
        if kept < total:
            notes.append(
                f"The trace's last request arrives at {arrival[-1]:,.1f} s, the horizon is {run.horizon_s:,.1f} s: "
                f"the last {total - kept:,} of {total:,} requests are not simulated."
            )
    if kept * run.seeds > MOST_REQUESTS:
        raise TraceError(
            f"run.seeds: {run.seeds:,} runs of {kept:,} requests of the trace are {kept * run.seeds:,}, more than "
            f"{MOST_REQUESTS:,}; one seed is enough, for all are alike without traffic.trace.resample"
        )
    return arrival[:kept], slice(kept), notes


def _resampled(traffic: Traffic, run: Run, trace: Trace, seed: int) -> tuple[NDArray[np.float64], Rows, list[str]]:
    """Return arrivals from blocks of the trace, in seconds, in which rows each is, and what to say about them."""
    blocks, speed = Blocks(trace, traffic.trace.block_s), traffic.trace.speed
    until = blocks.span_s if run.horizon_s is None else run.horizon_s * speed
    blocks.check(until, run.seeds)
    times, rows = blocks.draw(until, seed)
    if run.horizon_s is None:
        kept = int(np.searchsorted(times, until, side="right"))
        return times[:kept] / speed, rows[:kept], list(blocks.notes)
    arrival = times / speed
    kept = int(np.searchsorted(arrival, run.horizon_s, side="left"))
    return arrival[:kept], rows[:kept], list(blocks.notes)


def _check_unbounded(run: Run, last_s: float) -> None:
    """A run that lasts as long as its trace: not too long, and beyond its warm-up."""
    if last_s > LONGEST_S:
        raise TraceError(
            f"run.horizon_s: null runs to the trace's end, and its last request arrives at {last_s:,.0f} s: "
            f"that is above {LONGEST_S:,.0f} s (7 days); give a horizon up to that, or a higher traffic.trace.speed"
        )
    if run.warmup_s >= last_s and run.warmup_s > 0.0:
        raise TraceError(
            f"run.warmup_s: {run.warmup_s:g} is not before the trace's last request at {last_s:,.1f} s: nothing would "
            "be counted; give a shorter warm-up"
        )


def _cut_prefixes(cached_tokens: NDArray[np.int32], prompt_tokens: NDArray[np.int32]) -> list[str]:
    """Say how many of the trace's own prefixes leave no prompt to work on."""
    cut = int(np.count_nonzero(cached_tokens >= prompt_tokens))
    if not cut:
        return []
    return [
        f"In {cut:,} of {prompt_tokens.size:,} rows of the trace the cached prefix is as long as the prompt or longer; "
        "it was cut to one token less than the prompt."
    ]


def _multiplied(tokens: NDArray[np.int32], factors: Factors) -> NDArray[np.int32]:
    return tokens if factors is None else whole(tokens * factors)


def _merged_classes(names: tuple[str, ...], trace: Trace) -> tuple[tuple[str, ...], NDArray[np.int16]]:
    """Return the scenario's class names followed by the trace's new ones, and each row's index into them."""
    if trace.class_id is None:
        return names, np.zeros(trace.arrival_s.size, dtype=np.int16)
    merged = tuple(dict.fromkeys((*names, *trace.class_names)))
    index = {name: i for i, name in enumerate(merged)}
    translation = np.array([index[name] for name in trace.class_names], dtype=np.int16)
    return merged, translation[trace.class_id]
