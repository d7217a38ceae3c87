"""How prompts are read: in larger and smaller chunks, and with a part that is cached already; the same requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.outcome import Result, Spread, quantile
from engine.scenario import Scenario
from engine.traffic import Trace

from .run import simulate
from .suggest import shortened

CHUNKS = (256, 512, 1024, 2048, 4096, 8192, 16384)
"""Token budgets of a step that are tried, where ``max_num_seqs`` allows them."""
SHARES = (0.0, 0.25, 0.5, 0.75)
"""Of a class's mean prompt, cached."""
REQUESTS_PER_REPLICA = 400
SEEDS = 8


@dataclass(frozen=True, slots=True)
class Read:
    """What one way of reading gives, all runs together; seconds, ``nan`` where nothing was observed."""

    value: float
    """The budget in tokens, or the share that is cached."""
    changes: dict[str, Any]
    """What ``Scenario.replace`` takes."""
    first_word_s: dict[str, float]
    """TTFT: ``p50`` and ``p95``."""
    gap_s: dict[str, float]
    """ITL: ``p50`` and ``p99``."""
    pause_s: float
    """95th percentile over answers of the longest gap in each."""
    capacity_rps: float | None
    """Of one replica."""
    answered: int
    runs: int
    horizon_s: float


def chunk_sizes(s: Scenario) -> tuple[int, ...]:
    """The budgets to try, smallest first, the scenario's own among them; none where no budget cuts prompts."""
    if s.batching.policy != "chunked":
        return ()
    own = s.batching.max_num_batched_tokens
    return tuple(sorted({own, *(size for size in CHUNKS if size >= s.batching.max_num_seqs)}))


def with_chunks(s: Scenario, tokens: int, trace: Trace | None = None) -> Read:
    """The scenario's beginning with another budget. Raises ``ScenarioError`` and ``TraceError`` as `simulate` does."""
    return _read(s, float(tokens), {"batching.max_num_batched_tokens": tokens}, trace)


def cached_shares(s: Scenario) -> tuple[float, ...]:
    """The shares to try; none where prompts have no mean to take a share of, or a trace brings its own prefixes."""
    return () if s.traffic.process == "trace" or _mean_prompts(s) is None else SHARES


def with_cached(s: Scenario, share: float) -> Read:
    """The scenario's beginning with so much of every class's mean prompt cached, shorter prompts but for one token."""
    means = _mean_prompts(s)
    if means is None:
        raise ValueError("classes: prompts of an empirical length have no mean here")
    changes = {f"traffic.classes.{i}.cached_prefix_tokens": round(share * mean) for i, mean in enumerate(means)}
    return _read(s, share, changes, None)


def _mean_prompts(s: Scenario) -> list[float] | None:
    found = []
    for kind in s.traffic.classes:
        length = kind.prompt_tokens
        mean = getattr(length, "mean", getattr(length, "value", None))
        if mean is None and length.dist == "uniform":
            mean = (length.low + length.high) / 2
        if mean is None:
            return None
        found.append(float(mean))
    return found


def _read(s: Scenario, value: float, changes: dict[str, Any], trace: Trace | None) -> Read:
    # One length of run for all, whatever the change does to the capacity.
    short = shortened(s, trace, REQUESTS_PER_REPLICA, SEEDS).replace(changes)
    result = simulate(short, trace)
    return Read(
        value=value,
        changes=changes,
        first_word_s=_figures(result, "ttft", ("p50", "p95")),
        gap_s=_figures(result, "itl", ("p50", "p99")),
        pause_s=_pause_s(result),
        capacity_rps=result.capacity_rps,
        answered=int(result.observed.sum()),
        runs=short.run.seeds,
        horizon_s=float(result.run.horizon_s.max(initial=0.0)),
    )


def _pause_s(result: Result) -> float:
    longest = result.metric("max_itl")[result.observed]
    return quantile(np.sort(longest[~np.isnan(longest)]), 0.95)


def _figures(result: Result, metric: str, names: tuple[str, ...]) -> dict[str, float]:
    spread: Spread = result.latency[metric]
    return {name: spread.figures[name] for name in names}
