"""What arrived in a run: how clumped, how long, and whether long prompts have long answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from engine.traffic import Clumps, clumps, counts, slice_of

from .course import Bins
from .result import Result
from .spread import Floats

SHARES = np.concatenate([np.linspace(0.0, 0.9, 46), 1.0 - np.geomspace(0.1, 0.001, 31)[1:], [1.0]])
"""Shares of the requests at which lengths are given: close together where the long ones are."""
_MOST_SECONDS = 900
"""Points of the line of arrivals per second; where a run is longer, each is the highest of several seconds."""
_MOST_LENGTHS = 50_000
"""Requests whose lengths are looked at, evenly from all."""
_MOST_RANKED = 5_000
_CELLS = 24


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of prompts or answers."""

    mean: float
    cv: float
    tokens: Floats
    """(len(SHARES),): the length up to which each share of the requests is."""

    def quantile(self, share: float) -> float:
        """The length up to which a share of the requests is; between those of `SHARES` by a straight line."""
        return float(np.interp(share, SHARES, self.tokens))


@dataclass(frozen=True, slots=True)
class Joint:
    """Prompts and answers together, by cells that have the same ratio of ends."""

    prompt_edges: Floats
    """(cells + 1,): tokens."""
    output_edges: Floats
    share: Floats
    """(answers, prompts): share of the requests in each cell."""
    rank_correlation: float | None
    """Spearman's; None where either is always the same."""


@dataclass(frozen=True, slots=True)
class Arriving:
    """First attempts: retries are what the service does to itself."""

    clumps: Clumps
    """Of all runs."""
    seconds: Bins
    second_rps: Floats
    """(bins,): of the first run, the most that came in a second of each bin."""
    slices: Bins
    """Minutes, or less in a short run."""
    slice_rps: Floats
    """(slices,): of the first run."""
    prompt: Lengths | None
    """None when nothing arrived."""
    output: Lengths | None
    joint: Joint | None

    @property
    def worst_at_s(self) -> float:
        """When the first run's worst slice begins."""
        return float(self.slices.start_s[int(self.slice_rps.argmax())]) if self.slice_rps.size else 0.0


def arriving(result: Result) -> Arriving:
    """What arrived in a result's runs; without a horizon, up to the last arrival."""
    a = result.run.attempts
    rows = np.flatnonzero(a.attempt == 0)
    cuts = np.searchsorted(rows, a.seed_start)
    runs = [np.sort(a.arrival_s[rows[cuts[i] : cuts[i + 1]]]) for i in range(a.seeds)]
    span = result.scenario.run.horizon_s
    if span is None:
        span = max((float(times[-1]) for times in runs if times.size), default=0.0)
    found = clumps(runs, span)
    seconds, second_rps = _seconds(runs[0], span)
    slices = counts(runs[0], found.slice_s, span) / found.slice_s
    rows = rows[:: 1 + rows.size // _MOST_LENGTHS]
    prompt, output = a.prompt_tokens[rows].astype(np.float64), a.output_tokens[rows].astype(np.float64)
    return Arriving(
        clumps=found,
        seconds=seconds,
        second_rps=second_rps,
        slices=Bins(found.slice_s, np.arange(slices.size, dtype=np.float64) * found.slice_s),
        slice_rps=slices,
        prompt=_lengths(prompt),
        output=_lengths(output),
        joint=_joint(prompt, output) if rows.size else None,
    )


def _seconds(times: Floats, span_s: float) -> tuple[Bins, Floats]:
    """The most that came in one of the seconds of each bin."""
    width = 1.0 if slice_of(span_s) > 1.0 else 0.1
    each = counts(times, width, span_s)
    many = 1 + max(each.size - 1, 0) // _MOST_SECONDS
    highest = np.pad(each, (0, -each.size % many)).reshape(-1, many).max(axis=1)
    start: Floats = np.arange(highest.size) * (width * many)
    return Bins(width * many, start), highest / width


def _lengths(tokens: Floats) -> Lengths | None:
    if not tokens.size:
        return None
    mean = float(tokens.mean())
    return Lengths(mean, float(tokens.std()) / mean, np.quantile(tokens, SHARES, method="inverted_cdf"))


def _joint(prompt: Floats, output: Floats) -> Joint:
    edges = [np.geomspace(x.min() * 0.97, x.max() * 1.03, _CELLS + 1) for x in (output, prompt)]
    found, _, _ = np.histogram2d(output, prompt, bins=edges)
    varied = np.ptp(prompt) > 0 and np.ptp(output) > 0
    some = slice(None, None, 1 + prompt.size // _MOST_RANKED)
    correlation = float(stats.spearmanr(prompt[some], output[some]).statistic) if varied else None
    return Joint(edges[1], edges[0], found / prompt.size, correlation)
