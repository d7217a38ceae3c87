"""Collects the rounds of the lockstep engine into one ``StepLog``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lanes import StepLog

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
)
_PACK_EVERY = 2048


class LogWriter:
    """Keeps references to each round's arrays and packs them now and then: appending costs no copy.

    The engine must not write into an array after handing it over.
    """

    def __init__(self) -> None:
        self._open: list[tuple[NDArray[Any], ...]] = []
        self._packed: list[tuple[NDArray[Any], ...]] = []

    def add(self, *columns: NDArray[Any]) -> None:
        """One round: the columns of ``StepLog`` in order, one entry a live lane."""
        self._open.append(columns)
        if len(self._open) >= _PACK_EVERY:
            self._pack()

    def close(self) -> StepLog:
        """The whole log; the writer is empty afterwards."""
        self._pack()
        parts, self._packed = self._packed, []
        if not parts:
            return StepLog()
        return StepLog(*(np.concatenate([part[c] for part in parts]) for c in range(len(_COLUMNS))))

    def _pack(self) -> None:
        if self._open:
            rounds, self._open = self._open, []
            self._packed.append(
                tuple(
                    np.concatenate([columns[c] for columns in rounds]).astype(kind, copy=False)
                    for c, (_, kind) in enumerate(_COLUMNS)
                )
            )
