"""How the promise fared in the busiest part of a run, when the average looks fine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .objectives import Scored
from .result import Result

SHARE = 0.1
"""Part of a run's slices that counts as its busiest."""
_SLICES_S = (60.0, 10.0, 1.0)
_FEWEST = 10
"""A run is cut into at least so many slices, so that a tenth of them is one."""


@dataclass(frozen=True, slots=True)
class Busiest:
    """The tenth of a run's slices (at least one) with the most arrivals, each run's own, all runs together."""

    slice_s: float
    """Length of a slice, seconds: a minute unless the run is short."""
    slices: int
    """How many of each run's slices are among the busiest."""
    rate_rps: float
    """Arrivals per second in them."""
    valid: int
    """Requests that arrived in them and count for the promise."""
    broken: float | None
    """Share of those for which the promise wasn't kept; ``None`` when there are none."""


def busiest(result: Result, scored: Scored) -> Busiest | None:
    """The busiest slices after the warm-up, by the number of arrivals; ``None`` when no slice fits into a run.

    Slices are a minute long, or shorter in runs of less than ten minutes; ties go to the earlier one, and what is left
    over at a run's end belongs to none.
    """
    horizon, warmup = result.run.horizon_s, result.warmup_s
    slice_s = slice_width(float(horizon.min(initial=np.inf)) - warmup)
    if slice_s is None:
        return None
    a = result.run.attempts
    within = np.floor((horizon - warmup) / slice_s + 1e-9).astype(np.int64)
    most = int(within.max())
    slot = np.floor((a.arrival_s - warmup) / slice_s).astype(np.int64)
    inside = (slot >= 0) & (slot < within[a.seed_index])
    cell = a.seed_index[inside].astype(np.int64) * most + slot[inside]
    arrivals = np.bincount(cell, minlength=within.size * most).reshape(within.size, most)
    chosen = _busiest_of(arrivals, within)
    taken = chosen.ravel()[cell]
    valid, good = scored.valid[inside][taken], scored.good[inside][taken]
    count = int(valid.sum())
    return Busiest(
        slice_s=slice_s,
        slices=int(chosen.sum(axis=1).max()),
        rate_rps=float(arrivals[chosen].sum() / (chosen.sum() * slice_s)),
        valid=count,
        broken=1.0 - float(good.sum()) / count if count else None,
    )


def slice_width(window_s: float) -> float | None:
    """The longest of 60, 10 and 1 s of which at least ten fit into a window; ``None`` for windows below 10 s."""
    return next((width for width in _SLICES_S if np.isfinite(window_s) and window_s >= width * _FEWEST), None)


def _busiest_of(arrivals: NDArray[np.int64], within: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(seeds, slices): whether a slice is among its seed's busiest; of seed i only ``within[i]`` slices exist."""
    exists = np.arange(arrivals.shape[1]) < within[:, None]
    order = np.argsort(np.where(exists, -arrivals, 1), axis=1, kind="stable")
    chosen = np.zeros(arrivals.shape, np.bool_)
    many = np.ceil(within * SHARE - 1e-9).astype(np.int64)
    np.put_along_axis(chosen, order, np.arange(arrivals.shape[1]) < many[:, None], axis=1)
    return chosen
