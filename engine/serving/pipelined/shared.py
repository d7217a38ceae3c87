"""Queue and policy of a replica whose lanes take turns."""

from __future__ import annotations

import numpy as np

from ..book import Book
from ..checked import CheckedQueue
from ..chunked import Chunked
from ..lanes import Bools, Floats, Ints, Lanes
from ..state import LaneState
from .shelf import Shelf


class SharedQueue(CheckedQueue):
    """The queue of a replica, for all of its lanes; between their steps it is only asked when it may change."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        self._all = np.arange(lanes.count)

    def in_line(self) -> Bools:
        """(replicas,): where somebody waits who came before the present time."""
        return self._waits(self._all[: self.head.shape[0]])

    def next_change(self) -> Floats:
        """(replicas,): when the queue's head may change by itself, seconds."""
        self.wait = self.in_line()
        self.ta = self.book.arrival.take(self.next)
        return super().next_change()


class ChunkedInTurns(Chunked):
    """``chunked`` for the lane that lies on the bench."""

    shelf: Shelf

    def _last_token(self, i: Ints, request: Ints) -> Floats:
        return self.shelf.since[i, self.shelf.on[i]]
