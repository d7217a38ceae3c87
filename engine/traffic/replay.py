"""From a trace to requests, under a scenario's classes, speed and horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from engine.traffic.prefix import usable_prefix
from engine.traffic.requests import Requests
from engine.traffic.traces import Trace, TraceError

if TYPE_CHECKING:
    from engine.scenario import Run, Traffic

LONGEST_S: Final = 7 * 86_400.0  # the longest run there is, in seconds


def replay(traffic: Traffic, run: Run, trace: Trace) -> Requests:
    """Return the trace's requests with times divided by `traffic.trace.speed`, those in [0, run.horizon_s).

    What the trace holds wins. A column that it doesn't have takes the value of the scenario's first class, also for
    rows whose class is another one. Classes are the scenario's, then the trace's others in order of appearance.
    """
    arrival = trace.arrival_s if traffic.trace.speed == 1.0 else trace.arrival_s / traffic.trace.speed
    kept, notes = _within_horizon(arrival, run.horizon_s)
    first = traffic.classes[0]
    prompt = trace.prompt_tokens[:kept]
    names, class_id = _merged_classes(tuple(c.name for c in traffic.classes), trace)
    if trace.cached_prefix_tokens is None:
        prefix = usable_prefix(first.cached_prefix_tokens, prompt)
    else:
        given = trace.cached_prefix_tokens[:kept]
        prefix = usable_prefix(given, prompt)
        cut = int(np.count_nonzero(prefix < given))
        if cut:
            notes.append(
                f"In {cut:,} of {kept:,} rows of the trace the cached prefix is as long as the prompt or longer; "
                "it was cut to one token less than the prompt."
            )
    priority = np.full(kept, first.priority, dtype=np.int32) if trace.priority is None else trace.priority[:kept]
    return Requests(
        arrival[:kept],
        prompt,
        trace.output_tokens[:kept],
        prefix,
        class_id[:kept],
        priority,
        names,
        (*trace.notes, *notes),
    )


def _within_horizon(arrival_s: NDArray[np.float64], horizon_s: float | None) -> tuple[int, list[str]]:
    """Return how many arrivals come before the horizon, and what to say about the others."""
    total, last = arrival_s.size, float(arrival_s[-1])
    if horizon_s is None:
        if last > LONGEST_S:
            raise TraceError(
                f"run.horizon_s: null runs to the trace's end, and its last request arrives at {last:,.0f} s: "
                f"that is above {LONGEST_S:,.0f} s (7 days); give a horizon up to that, or a higher traffic.trace.speed"
            )
        return total, []
    kept = int(np.searchsorted(arrival_s, horizon_s, side="left"))
    if kept == total:
        return total, []
    return kept, [
        f"The trace's last request arrives at {last:,.1f} s, the horizon is {horizon_s:,.1f} s: "
        f"the last {total - kept:,} of {total:,} requests are not simulated."
    ]


def _merged_classes(names: tuple[str, ...], trace: Trace) -> tuple[tuple[str, ...], NDArray[np.int16]]:
    """Return the scenario's class names followed by the trace's new ones, and each request's index into them."""
    if trace.class_id is None:
        return names, np.zeros(trace.arrival_s.size, dtype=np.int16)
    merged = tuple(dict.fromkeys((*names, *trace.class_names)))
    index = {name: i for i, name in enumerate(merged)}
    translation = np.array([index[name] for name in trace.class_names], dtype=np.int16)
    return merged, translation[trace.class_id]
