"""What traffic hands on: one seed's requests as arrays, in order of arrival."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_TOKENS = 16_777_216
"""Longest prompt and longest answer, in tokens: the bound of every length in a scenario; sums of two stay an int32."""

MOST_REQUESTS = 20_000_000
"""The most requests that a run may have, all seeds together."""


@dataclass(frozen=True, slots=True)
class Requests:
    """One seed's first attempts, in order of arrival; all arrays have one entry a request and are read-only.

    `arrival_s` is in seconds and never decreases; lengths are in tokens, at least 1; `cached_prefix_tokens` is at most
    `prompt_tokens - 1`, since the last prompt token is always worked on. `class_id` points into `class_names`. A lower
    `priority` is more urgent. `notes` says in words what a reader of the result must know.
    """

    arrival_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_prefix_tokens: NDArray[np.int32]
    class_id: NDArray[np.int16]
    priority: NDArray[np.int32]
    class_names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Lock the arrays: results are cached, and a trace's arrays are shared by every seed."""
        for array in (
            self.arrival_s,
            self.prompt_tokens,
            self.output_tokens,
            self.cached_prefix_tokens,
            self.class_id,
            self.priority,
        ):
            array.setflags(write=False)

    def __len__(self) -> int:
        return self.arrival_s.size
