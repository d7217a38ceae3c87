"""From columns of numbers, a part at a time, to a trace: ranges, order, rows left out; the same for every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.traffic.requests import MAX_TOKENS
from engine.traffic.traces.text import Text
from engine.traffic.traces.trace import LONGEST_NAME, MOST_CLASSES, Trace, TraceError

LATEST_S: Final = 1e9  # 31 years, where a float still tells tenths of a microsecond
_RANKS: Final = 1_000_000  # as far from 0 as a scenario's priority


@dataclass(frozen=True, slots=True)
class _Role:
    """What a column of numbers means: how it is kept, and its range."""

    dtype: type[np.generic]
    low: float
    high: float
    unit: str


_ROLES: Final = {
    "arrival_s": _Role(np.float64, 0, LATEST_S, " s"),
    "prompt_tokens": _Role(np.int32, 1, MAX_TOKENS, " tokens"),
    "output_tokens": _Role(np.int32, 0, MAX_TOKENS, " tokens"),
    "cached_prefix_tokens": _Role(np.int32, 0, MAX_TOKENS, " tokens"),
    "priority": _Role(np.int32, -_RANKS, _RANKS, ""),
}
_CLASS: Final = "class"

Fault = tuple[int, str, str]
"""Row (from 0 in its part), role, and what is wrong."""


class Rows(Protocol):
    """Rows of a file that can say where a fault is."""

    def fault(self, row: int, column: str, reason: str) -> TraceError:
        """Return the error about a cell: row from 0 in this part, column as it is called in the file."""
        ...


class Recording:
    """Takes the parts of a trace in order and makes one trace of them.

    `columns` maps what a request has (`arrival_s`, `prompt_tokens`, `output_tokens`, and where the file has them
    `cached_prefix_tokens`, `priority`, `class`) to the column's name in the file.
    """

    def __init__(self, text: Text, format: str, columns: Mapping[str, str]) -> None:
        self._text, self._format, self._columns = text, format, columns
        # All at once: joining parts in the end would hold everything twice.
        self._kept: dict[str, NDArray[Any]] = {
            role: np.empty(text.most_rows, dtype=np.int16 if role == _CLASS else _ROLES[role].dtype) for role in columns
        }
        self._count = 0
        self._left_out = 0
        self._last_s = 0.0
        self._classes: dict[str, int] = {}

    def add(self, numbers: Mapping[str, NDArray[np.float64]], classes: NDArray[np.object_] | None, rows: Rows) -> None:
        """Append rows: columns of numbers by role, class names where there are any. Whole numbers come as floats.

        Rows with 0 output tokens are counted and left out. Raises `TraceError` for the first row that is out of range
        or out of order.
        """
        failed = numbers["output_tokens"] == 0
        faults = [*self._disorder(numbers["arrival_s"]), *self._outside(numbers, failed)]
        columns: dict[str, NDArray[Any]] = dict(numbers)
        if classes is not None:
            codes, names = pd.factorize(classes)
            faults.extend(self._unfit(codes, names))
            columns[_CLASS] = self._ids(names)[codes]
        if faults:
            row, role, reason = min(faults, key=lambda fault: fault[0])
            raise rows.fault(row, self._columns[role], reason)
        self._last_s = float(numbers["arrival_s"][-1])
        answered = ~failed
        end = self._count + int(np.count_nonzero(answered))
        for role, column in columns.items():
            self._kept[role][self._count : end] = column[answered]
        self._left_out += failed.size - (end - self._count)
        self._count = end

    def trace(self) -> Trace:
        """Return what was taken in. Raises `TraceError` when that is nothing."""
        count, left_out = self._count, self._left_out
        if count == 0:
            found = "no row has output tokens" if left_out else "there is a header, but no row"
            raise TraceError(f"trace: {found}; expected at least one request with an answer")
        kept = {role: column[:count] for role, column in self._kept.items()}
        return Trace(
            arrival_s=kept["arrival_s"],
            prompt_tokens=kept["prompt_tokens"],
            output_tokens=kept["output_tokens"],
            cached_prefix_tokens=kept.get("cached_prefix_tokens"),
            class_id=kept.get(_CLASS),
            priority=kept.get("priority"),
            class_names=tuple(self._classes),
            format=self._format,
            sha256=self._text.sha256,
            rows_left_out=left_out,
            notes=(f"Rows of the trace with 0 output tokens, left out: {left_out:,} of {count + left_out:,}.",)
            if left_out
            else (),
        )

    def _outside(self, numbers: Mapping[str, NDArray[np.float64]], failed: NDArray[np.bool_]) -> Iterator[Fault]:
        """Yield each column's first value out of range; a request that failed needn't have had a prompt."""
        for role, column in numbers.items():
            limits = _ROLES[role]
            low = column < limits.low
            if role == "prompt_tokens":
                low &= ~failed
            allowed = f"expected {limits.low:,.0f} to {limits.high:,.0f}{limits.unit}"
            if low.any():
                yield int(low.argmax()), role, f"is below {limits.low:,.0f}; {allowed}"
            high = column > limits.high
            if high.any():
                yield int(high.argmax()), role, f"is above {limits.high:,.0f}; {allowed}"

    def _disorder(self, arrival_s: NDArray[np.float64]) -> Iterator[Fault]:
        """Yield the first arrival that is before the one above it."""
        back = np.diff(arrival_s, prepend=self._last_s) < 0.0
        if back.any():
            yield int(back.argmax()), "arrival_s", "is earlier than the row above; expected rows in order of time"

    def _unfit(self, codes: NDArray[np.intp], names: NDArray[np.object_]) -> Iterator[Fault]:
        """Yield the first row of each name that can't be a class's; `codes` index `names`, by first appearance."""
        known = set(self._classes)
        for code, name in enumerate(map(str.strip, names)):
            known.add(name)
            if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
                reason = f"is not a class name; expected 1 to {LONGEST_NAME} printable characters"
            elif len(known) > MOST_CLASSES:
                reason = f"is one class too many; expected at most {MOST_CLASSES:,} different classes"
            else:
                continue
            yield int((codes == code).argmax()), _CLASS, reason
            return

    def _ids(self, names: NDArray[np.object_]) -> NDArray[np.int64]:
        """Return the index of each name among all classes so far, new ones included."""
        return np.array([self._classes.setdefault(name.strip(), len(self._classes)) for name in names], dtype=np.int64)
