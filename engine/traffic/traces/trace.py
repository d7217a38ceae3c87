"""A trace as read: recorded requests, not yet placed in a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.traffic.requests import MOST_REQUESTS

MOST_ROWS: Final = MOST_REQUESTS
MOST_CLASSES: Final = 1_000
LONGEST_NAME: Final = 60  # characters of a class name, as in a scenario


class TraceError(ValueError):
    """A trace can't be used; the message says in one line where, what is wrong, and what was expected."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Recorded requests in order of arrival; arrays have one entry a request and are read-only.

    `arrival_s` is in seconds, as recorded (a scenario's `speed` is not applied), lengths are in tokens, at least 1.
    Columns that the file doesn't have are None. `class_id` points into `class_names`, which are in order of
    appearance. `sha256` is that of the file's bytes, in hexadecimal.
    """

    arrival_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_prefix_tokens: NDArray[np.int32] | None
    class_id: NDArray[np.int16] | None
    priority: NDArray[np.int32] | None
    class_names: tuple[str, ...]
    format: str
    sha256: str
    rows_left_out: int
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        """Lock the arrays: every seed of every run shares them."""
        for array in (
            self.arrival_s,
            self.prompt_tokens,
            self.output_tokens,
            self.cached_prefix_tokens,
            self.class_id,
            self.priority,
        ):
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return self.arrival_s.size
