"""Blocks: other courses that a recorded day might have taken, from pieces of the day itself.

The non-overlapping block bootstrap (Carlstein, Annals of Statistics 14, 1986): what happens within a block, bursts and
the likeness of neighbours included, stays together; blocks are drawn independently, each as likely as any other.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.traffic import streams
from engine.traffic.requests import MOST_REQUESTS
from engine.traffic.traces import Trace, TraceError

_MOST_BLOCKS: Final = 20_000_000  # to choose from, and drawn for one seed


class Blocks:
    """A trace cut into blocks of `block_s` seconds of its own time, from t = 0 to its last arrival.

    What is left at the end is a block, too, as short as it is (its last arrival belongs to it): so every second of the
    trace is as likely to be drawn as any other, and the mean rate of long runs is the trace's. Raises `TraceError` for
    a trace that takes no time, and for too many blocks.
    """

    def __init__(self, trace: Trace, block_s: float) -> None:
        self.span_s = float(trace.arrival_s[-1])
        if self.span_s <= 0.0:
            raise TraceError(
                "traffic.trace.resample: 'blocks' needs a trace that takes some time, and all requests of this one "
                "arrive at 0 s; use none"
            )
        if self.span_s / block_s > _MOST_BLOCKS:
            raise TraceError(
                f"traffic.trace.block_s: {block_s:g} cuts the trace's {self.span_s:,.0f} s into more than "
                f"{_MOST_BLOCKS:,} blocks; give a longer block"
            )
        self._arrival_s = trace.arrival_s
        start_s = np.arange(np.ceil(self.span_s / block_s)) * block_s
        self._start_s = start_s[start_s < self.span_s]  # rounding may put one too many at the very end
        self._length_s = np.diff(self._start_s, append=self.span_s)
        cuts = np.searchsorted(trace.arrival_s, self._start_s, side="left")
        self._rows = np.append(cuts, trace.arrival_s.size)
        self._block_s = block_s

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader must know."""
        if self._start_s.size > 1:
            return ()
        return (
            f"The trace lasts {self.span_s:,.1f} s, its blocks {self._block_s:,g} s: there is only one block to draw, "
            "and all seeds are alike.",
        )

    def check(self, until_s: float, seeds: int) -> None:
        """Raise `TraceError` where `until_s` seconds of the trace's time, in each of the seeds, would be too much."""
        requests = until_s / self.span_s * self._arrival_s.size * seeds
        if requests > MOST_REQUESTS:
            raise self._too_many(requests, f"in {seeds:,} seeds")
        blocks = until_s / self.span_s * self._start_s.size
        if blocks > _MOST_BLOCKS:
            raise TraceError(
                f"traffic.trace.block_s: {self._block_s:g} takes about {blocks:,.0f} blocks to fill the run, more than "
                f"{_MOST_BLOCKS:,}; give a longer block, or a lower run.horizon_s or traffic.trace.speed"
            )

    def draw(self, until_s: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return times and row numbers of the requests of drawn blocks, laid end to end until they fill `until_s`.

        Times are in seconds of the trace's own time, never decreasing; those of the last block may go beyond `until_s`.
        The same seed draws the same blocks whatever `until_s`. Raises `TraceError` when they hold too many requests.
        """
        drawn, laid_s = self._choose(until_s, seed)
        first, count = self._rows[drawn], np.diff(self._rows)[drawn]
        ends = np.cumsum(count)
        if ends[-1] > MOST_REQUESTS:
            raise self._too_many(int(ends[-1]), f"with seed {seed}")
        # Row numbers run on within a block: shift a plain count by each block's first row.
        rows = np.arange(ends[-1]) + np.repeat(first - (ends - count), count)
        times = (self._arrival_s[rows] - np.repeat(self._start_s[drawn], count)) + np.repeat(laid_s, count)
        # Rounding may put a block's last request an ulp behind the next block's first.
        return np.maximum.accumulate(times), rows

    def _choose(self, until_s: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the blocks drawn and the time at which each is laid."""
        rng = streams.stream(seed, streams.BLOCKS)
        drawn: list[NDArray[np.intp]] = []
        ends: list[NDArray[np.float64]] = []
        total, some = 0.0, int(until_s / self.span_s * self._start_s.size) + 2
        while total < until_s:
            chosen = np.minimum((rng.random(some) * self._start_s.size).astype(np.intp), self._start_s.size - 1)
            lengths = self._length_s[chosen]
            lengths[0] += total
            drawn.append(chosen)
            ends.append(np.cumsum(lengths, out=lengths))
            total, some = float(lengths[-1]), some // 8 + 2
        end = np.concatenate(ends)
        needed = int(np.searchsorted(end, until_s, side="left")) + 1
        return np.concatenate(drawn)[:needed], np.concatenate(([0.0], end[: needed - 1]))

    @staticmethod
    def _too_many(requests: float, where: str) -> TraceError:
        return TraceError(
            f"run.horizon_s: blocks of the trace bring about {requests:,.0f} requests {where}, more than "
            f"{MOST_REQUESTS:,}; lower run.horizon_s, run.seeds or traffic.trace.speed"
        )
