"""Replicas whose requests stay outstanding for a while after their prompt is read: its KV is on its way."""

from __future__ import annotations

import numpy as np

from .book import Book
from .checked import CheckedQueue
from .lanes import Bools, Floats, Ints, Lanes
from .state import LaneState


class SendingQueue(CheckedQueue):
    """Counts those on their way, too, against ``max_outstanding``. An arrival at the end of a way finds it ended."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        assert lanes.travel_s is not None
        self.travel_s = lanes.travel_s
        self.lands = np.full((lanes.count, 4), np.inf)
        """(lanes, places): when each way ends, seconds; infinity in free places."""
        self.next_landing: Floats = np.full(lanes.count, np.inf)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        super().keep(alive)
        self.lands, self.next_landing = self.lands[alive], self.next_landing[alive]

    def ended(self, i: Ints, request: Ints, now: Floats) -> None:
        """Of ``request`` in lanes ``i`` (no repeats), those answered in time set out ``now``, seconds."""
        sent = ~np.isnan(self.book.finish.take(request))
        i, lands = i[sent], now[sent] + self.travel_s.take(request[sent])
        free = np.isinf(self.lands[i])
        if not free.any(axis=1).all():
            self.lands = np.concatenate([self.lands, np.full_like(self.lands, np.inf)], axis=1)
            free = np.isinf(self.lands[i])
        self.lands[i, free.argmax(axis=1)] = lands
        self.next_landing[i] = np.minimum(self.next_landing[i], lands)

    @property
    def _sees_leaving(self) -> bool:
        return True

    def _next_leaving(self) -> Floats:
        return np.minimum(self.next_expiry(), self.next_landing)

    def _leave(self, now: Floats) -> None:
        super()._leave(now)
        i = (self.next_landing <= now).nonzero()[0]
        lands = self.lands[i]
        lands[lands <= now[i, None]] = np.inf
        self.lands[i] = lands
        self.next_landing[i] = lands.min(axis=1)

    def _outstanding(self, i: Ints) -> Ints:
        travelling = np.isfinite(self.lands[i]).sum(axis=1)
        return np.asarray(super()._outstanding(i) + travelling, np.int64)
