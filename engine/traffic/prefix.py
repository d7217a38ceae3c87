"""The part of a prompt whose KV is cached already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def usable_prefix(cached: int | NDArray[np.int32], prompt_tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return `cached` tokens cut to one less than each prompt: the first new token needs a prompt token's work."""
    if isinstance(cached, int):
        if cached <= 0:
            return np.zeros(prompt_tokens.size, dtype=np.int32)
        # Beyond the longest possible prompt the figure makes no difference, and int32 must hold it.
        cached = min(cached, np.iinfo(np.int32).max)
    return np.minimum(prompt_tokens - 1, cached, dtype=np.int32)
