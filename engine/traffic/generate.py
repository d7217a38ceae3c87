"""From a scenario's traffic and a seed to requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.traffic import classes, streams
from engine.traffic.arrivals import arrival_times
from engine.traffic.growth import Factors, Grown, grown
from engine.traffic.lengths import lengths, only_length
from engine.traffic.prefix import usable_prefix
from engine.traffic.replay import replay
from engine.traffic.requests import Requests
from engine.traffic.traces import Trace, TraceError

if TYPE_CHECKING:
    from engine.scenario import Run, Traffic, TrafficClass

Uniforms = Callable[[], NDArray[np.float64]]


def generate(traffic: Traffic, run: Run, seed: int, trace: Trace | None = None) -> Requests:
    """Return the requests that arrive in [0, run.horizon_s) under one seed, in order of arrival.

    `seed` is the absolute one (`run.seed + i` for seed i of a run). With process `trace` the requests are those of
    `trace`, the same for every seed unless blocks of it are drawn; with another process `trace` isn't looked at.

    Raises `TraceError` when process `trace` comes without a trace, or when the trace and the run don't go together, and
    `ScenarioError` when a seed brings more requests than a run may have.
    """
    if traffic.process == "trace":
        if trace is None:
            source = "null" if traffic.trace.source is None else repr(traffic.trace.source)
            raise TraceError(
                f"traffic.trace.source: {source} was not read: process trace needs a trace; "
                "give one, or choose another traffic.process"
            )
        return replay(traffic, run, trace, seed)
    if run.horizon_s is None:
        raise ValueError("run.horizon_s: null has no end without a trace: give a horizon in seconds")
    arrivals = arrival_times(traffic, run.horizon_s, seed)
    return _with_lengths(arrivals, traffic.classes, seed, grown(traffic.growth, arrivals, run.horizon_s))


def _with_lengths(arrivals: NDArray[np.float64], kinds: Sequence[TrafficClass], seed: int, growth: Grown) -> Requests:
    """Give each arrival its class, and the lengths, cached prefix and priority of that class."""
    count = arrivals.size
    prompt_uniforms = _uniforms(seed, streams.PROMPT, count)
    output_uniforms = _uniforms(seed, streams.OUTPUT, count)
    class_id = np.zeros(count, dtype=np.int16)
    if len(kinds) > 1:
        class_id = classes.choose([kind.weight for kind in kinds], _uniforms(seed, streams.CLASS, count)())
    prompt, output, prefix = (np.empty(count, dtype=np.int32) for _ in range(3))
    for i, kind in enumerate(kinds):
        rows = np.flatnonzero(class_id == i) if len(kinds) > 1 else slice(None)
        prompt[rows] = _lengths(kind.prompt_tokens, prompt_uniforms, rows, growth.prompt)
        output[rows] = _lengths(kind.output_tokens, output_uniforms, rows, growth.output)
        prefix[rows] = usable_prefix(kind.cached_prefix_tokens, prompt[rows])
    priority = np.array([kind.priority for kind in kinds], dtype=np.int32)[class_id]
    return Requests(arrivals, prompt, output, prefix, class_id, priority, tuple(kind.name for kind in kinds))


def _uniforms(seed: int, name: str, count: int) -> Uniforms:
    """Return what draws the first `count` uniforms of a stream, once, and only if it is called."""
    return cache(lambda: streams.stream(seed, name).random(count))


def _lengths(
    settings: Any, uniforms: Uniforms, rows: NDArray[np.intp] | slice, factors: Factors
) -> NDArray[np.int32] | int:
    """Return the lengths of the requests in `rows`, or the one length that all have: then nothing is drawn."""
    if factors is not None:
        return lengths(settings, uniforms()[rows], factors[rows])
    alike = only_length(settings)
    return lengths(settings, uniforms()[rows]) if alike is None else alike
