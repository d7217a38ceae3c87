"""Collects the rounds of the lockstep engine into one ``StepLog``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clock import steps_to
from .lanes import Floats, Ints, StepLog

_COLUMNS: tuple[tuple[str, type[np.generic]], ...] = (
    ("lane", np.int32),
    ("t0", np.float64),
    ("d", np.float64),
    ("slope", np.float64),
    ("k", np.int32),
    ("decoding", np.int32),
    ("worked", np.int32),
    ("tokens", np.int32),
    ("held", np.int64),
    ("limit", np.int8),
    ("stalled", np.int32),
    ("before", np.float64),
    ("share", np.float64),
)
_STEPS = [name for name, _ in _COLUMNS].index("k")
_PACK_ROUNDS, _PACK_ENTRIES = 4096, 1 << 16
"""When to pack: soon enough that the rounds' arrays stay in the cache and their memory is used again."""


Sink = Callable[[StepLog], None]
"""Takes each piece of the log as soon as it is packed."""


class LogWriter:
    """Keeps references to each round's arrays and packs them now and then: appending costs no copy.

    Pieces go to ``sink`` in order of round. The engine must not write into an array after handing it over.
    """

    def __init__(self, sink: Sink, empty: bool = False) -> None:
        """``empty``: some entries have no steps, and are left out."""
        self._sink, self._empty = sink, empty
        self._open: list[tuple[NDArray[Any], ...]] = []
        self._entries = 0

    def add(self, *columns: NDArray[Any]) -> None:
        """One round: the columns of ``StepLog`` in order, one entry a live lane; ``stalled`` (and
        what follows) in all rounds or none."""
        self._open.append(columns)
        self._entries += columns[0].size
        if self._entries >= _PACK_ENTRIES or len(self._open) >= _PACK_ROUNDS:
            self.flush()

    def flush(self) -> None:
        """Pack what is open and hand it over."""
        if not self._open:
            return
        columns = []
        for c, (_, kind) in enumerate(_COLUMNS[: len(self._open[0])]):
            packed = np.empty(self._entries, kind)
            np.concatenate([entry[c] for entry in self._open], out=packed, casting="same_kind")
            columns.append(packed)
        self._open, self._entries = [], 0
        if self._empty:
            some = (columns[_STEPS] > 0).nonzero()[0]
            if some.size < columns[_STEPS].size:
                columns = [column.take(some) for column in columns]
        self._sink(StepLog(*columns))


def ended_by(log: StepLog, time_s: Floats) -> Ints:
    """(m,): how many steps of each of the m entries have ended at ``time_s`` (m,), seconds, that instant included."""
    k = log.k.astype(np.int64)
    count = np.where(log.t1 <= time_s, k, 0)
    i = ((log.t0 < time_s) & (time_s < log.t1)).nonzero()[0]
    steps, end = steps_to(log.t0[i], log.d[i], log.slope[i], k[i], time_s[i])
    count[i] = steps - (end > time_s[i])
    return count
