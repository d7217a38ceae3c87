"""How clumped arrivals are: windows of several lengths, gaps, and the worst window against the average one.

Conventions, so that figures can be compared with those published for real traces: only whole windows count, from 0 on,
and variances are those of a sample (n - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

WIDTHS_S: Final = (1.0, 10.0, 60.0)
"""Windows in which arrivals are counted."""
_SLICES_S: Final = (60.0, 10.0, 1.0)
_FEWEST_SLICES: Final = 3
_FEWEST_WINDOWS: Final = 5
"""From fewer windows a dispersion says nothing: its relative error is about sqrt(2 / windows)."""
_COARSE: Final = 0.2
"""Share of gaps of 0 from which on a clock is looked for that ticks too slowly."""
_RARELY: Final = 0.05
"""Share of the gaps that may be shorter than half a tick."""
_TICKS: Final = 3.0
"""A window that tells anything lasts this many ticks."""


@dataclass(frozen=True, slots=True)
class Clumps:
    """Arrivals of one or several runs of the same length, taken together."""

    requests: float
    """Arrivals a run, mean."""
    span_s: float
    """Length of a run."""
    rate_rps: float
    dispersion: dict[float, float | None]
    """By window in seconds: index of dispersion of counts, variance over mean, 1 for independent arrivals (Cox and
    Lewis, The Statistical Analysis of Series of Events, 1966, section 4.5); None where there are too few windows, or
    the recording clock ticks too slowly for them."""
    gap_cv: float | None
    """Coefficient of variation of the gaps between arrivals: 1 for independent ones; None as of `dispersion`."""
    slice_s: float
    """What the worst one is looked for among: minutes, or less where a run has fewer than three."""
    worst: float | None
    """Arrivals of a run's worst slice over those of its average one; mean of the runs."""
    tick_s: float
    """Distance of two times that the recording clock can tell apart; 0 where it is fine enough."""

    @property
    def worst_rps(self) -> float | None:
        """Arrivals a second of the worst slice."""
        return None if self.worst is None else self.worst * self.rate_rps


def clumps(runs: Sequence[Floats], span_s: float) -> Clumps:
    """Clumps of runs of `span_s` seconds, each given by its arrivals in ascending order, seconds."""
    tick_s = max((tick(times) for times in runs), default=0.0)
    width = slice_of(span_s)
    total = sum(times.size for times in runs)
    return Clumps(
        requests=total / max(len(runs), 1),
        span_s=span_s,
        rate_rps=total / (len(runs) * span_s) if runs and span_s > 0 else 0.0,
        dispersion={
            w: None if w < _TICKS * tick_s else dispersion([counts(times, w, span_s) for times in runs])
            for w in WIDTHS_S
        },
        gap_cv=None if tick_s else gap_cv(runs),
        slice_s=width,
        worst=_worst([counts(times, width, span_s) for times in runs]),
        tick_s=tick_s,
    )


def counts(arrival_s: Floats, width_s: float, span_s: float) -> Counts:
    """(windows,): arrivals in each whole window of [0, span_s)."""
    many = int(span_s / width_s * (1 + 1e-12))
    slot = (arrival_s / width_s).astype(np.int64)
    return np.bincount(slot[slot < many], minlength=many)


def dispersion(runs: Sequence[Counts]) -> float | None:
    """Variance over mean of counts: both averaged over the runs, so that chance differences between runs don't count as
    clumps; None for fewer than five windows a run, or no arrivals."""
    used = [run for run in runs if run.size >= _FEWEST_WINDOWS]
    mean = float(np.mean([run.mean() for run in used])) if used else 0.0
    return float(np.mean([run.var(ddof=1) for run in used])) / mean if mean > 0 else None


def gap_cv(runs: Sequence[Floats]) -> float | None:
    """Standard deviation over mean of the gaps inside the runs; None with fewer than two gaps, or none above 0."""
    gaps = np.concatenate([np.diff(times) for times in runs]) if runs else np.empty(0)
    mean = float(gaps.mean()) if gaps.size > 1 else 0.0
    return float(gaps.std(ddof=1)) / mean if mean > 0 else None


def tick(arrival_s: Floats) -> float:
    """Seconds between two ticks of the clock that recorded the times; 0 unless many times are equal and the others are
    about equally far apart."""
    gaps = np.diff(arrival_s)
    if not gaps.size or np.count_nonzero(gaps == 0) < _COARSE * gaps.size:
        return 0.0
    apart = gaps[gaps > 0]
    usual = float(np.median(apart)) if apart.size else 0.0
    return usual if usual and float(np.quantile(apart, _RARELY)) >= usual / 2.0 else 0.0


def slice_of(span_s: float) -> float:
    """A minute, or ten seconds or one where fewer than three minutes fit into the span."""
    return next((width for width in _SLICES_S if span_s >= _FEWEST_SLICES * width), _SLICES_S[-1])


def _worst(runs: Sequence[Counts]) -> float | None:
    over = [run.max() / run.mean() for run in runs if run.size and run.any()]
    return float(np.mean(over)) if over else None
