"""Prefix hits: how much of each prompt an unlimited shared cache holds from the prompts before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class SeenIds:
    """The block ids of all rows so far, as sorted runs; each run is more than twice as long as the next.

    Eight bytes an id, where a set of Python's takes eighty; and with runs that double, every id is merged only a few
    times, however many parts a file comes in.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def leading(self, ids: NDArray[np.uint64], counts: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return how many ids at each row's beginning occur in any earlier row, and remember the ids of all rows.

        `ids` holds the rows one after the other, `counts` how many belong to each.
        """
        row = np.repeat(np.arange(counts.size), counts)
        unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        known = self._known(unique)
        first_row = np.where(known, -1, row[first])
        self._remember(unique[~known])
        seen = first_row[inverse] < row
        # The ids seen at a row's beginning are as many as stand before its first unseen one.
        ends = np.cumsum(counts)
        unseen = np.append(np.flatnonzero(~seen), ids.size)
        first_unseen = unseen[np.searchsorted(unseen, ends - counts)]
        return np.asarray(np.minimum(first_unseen, ends) - (ends - counts), dtype=np.intp)

    def _known(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        found = np.zeros(ids.size, dtype=np.bool_)
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, ids), run.size - 1)
            found |= run[at] == ids
        return found

    def _remember(self, ids: NDArray[np.uint64]) -> None:
        """Add sorted ids, all of them new."""
        if not ids.size:
            return
        self._runs.append(ids)
        while len(self._runs) > 1 and self._runs[-2].size <= 2 * self._runs[-1].size:
            last = self._runs.pop()
            merged = np.concatenate((self._runs.pop(), last))
            merged.sort(kind="stable")  # two sorted runs: merged in one pass
            self._runs.append(merged)
