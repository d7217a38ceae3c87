"""Where the attempts of each window went."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.serving.lanes import Ints

from .retries import Tries


class Sent:
    """One window's attempts and where they went."""

    def __init__(self, tries: Tries, entry: Ints, replica: Ints, number: Ints, reason: NDArray[np.int8]) -> None:
        self.tries, self.entry, self.replica, self.number, self.reason = tries, entry, replica, number, reason
        self.told = False

    @classmethod
    def joined(cls, windows: list[Sent]) -> Sent:
        """All windows as one."""
        if not windows:
            none = np.empty(0, np.int64)
            return cls(Tries.none(), none, none, none, np.empty(0, np.int8))
        tries = Tries(*(np.concatenate([getattr(w.tries, name) for w in windows]) for name in Tries.__slots__))
        columns = ("entry", "replica", "number", "reason")
        return cls(tries, *(np.concatenate([getattr(w, name) for w in windows]) for name in columns))
