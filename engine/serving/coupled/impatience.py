"""Clients who give up on a server that doesn't hear them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.serving.book import Book
from engine.serving.lanes import Deadlines, Floats, Ints
from engine.serving.states import CODEL


class Impatience:
    """When clients give up whom the server doesn't hear: at their deadlines, wherever their requests are."""

    def __init__(self, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        self._number, self._arrival = np.empty(0, np.int64), np.empty(0)

    def watch(self, number: Ints, arrival: Floats) -> None:
        """These attempts have been sent."""
        self._number = np.concatenate([self._number, number])
        self._arrival = np.concatenate([self._arrival, arrival])

    def first_to_fail(
        self,
        book: Book,
        refusals: Callable[[Ints], NDArray[np.int8]],
        dropped: Ints,
        when: Floats,
        now_of: Callable[[Ints], Floats],
    ) -> tuple[Ints, Floats]:
        """Whose client has given up by now, or sees that the server has (``dropped`` at ``when``), and since when."""
        d, number, arrival = self.deadlines, self._number, self._arrival
        now, first, finish = now_of(number), book.first[number], book.finish[number]
        ttft, last = arrival + d.ttft_timeout_s, arrival + d.timeout_s
        late_ttft, late = (ttft <= now) & ~(first < ttft), (last <= now) & ~(finish < last)
        at = np.minimum(np.where(late_ttft, ttft, np.inf), np.where(late, last, np.inf))
        gone = np.full(number.size, np.inf)
        if dropped.size:
            by_number = np.argsort(number)
            place = np.searchsorted(number, dropped, sorter=by_number)
            inside = (place < number.size).nonzero()[0]
            mine = by_number[place[inside]]
            same = number[mine] == dropped[inside]
            gone[mine[same]] = when[inside[same]]
        at = np.minimum(at, gone)
        reason = refusals(number)
        known = (reason > 0) & (reason != CODEL)  # refused at their arrival
        failed = (at < np.inf) & ~known
        settled = failed | (finish < last) & (first < ttft) | (reason > 0)
        settled |= (ttft <= now) & (last <= now)
        result = number[failed], at[failed]
        self._number, self._arrival = number[~settled], arrival[~settled]
        return result
