"""Named streams of random numbers: what a stream yields depends on (seed, name) and on nothing else.

One stream serves one purpose, so a setting that changes how often one purpose draws never moves the numbers of
another. Two scenarios with the same seed then meet the same luck (common random numbers), and what differs between
their results is due to the setting.

| name | drives | numbers used |
|---|---|---|
| `arrivals` | gaps between arrivals | one uniform a gap, in order of arrival |
| `states` | bursts and calm of process mmpp | one uniform for the first state, then two for each burst and calm |
| `blocks` | which blocks of a resampled trace | one uniform a block |
| `class` | which class a request belongs to | one uniform a request |
| `prompt` | prompt length | one uniform a request |
| `output` | output length | one uniform a request |
| `ramp` | when each user of a closed loop asks first | one uniform a user |
| `think` | how long a user of a closed loop thinks (`think/3`: user 3) | one exponential a request |
| `class/u`, `prompt/u`, `output/u` | what user u of a closed loop asks for | as above |
| `router` | the random router's choices | the router's own rule |
| `router.decode` | its choices in the second of two pools | one uniform a request |

The names, the hash and the generator are part of what a scenario means: changing any of them changes every figure.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

ARRIVALS: Final = "arrivals"
STATES: Final = "states"
BLOCKS: Final = "blocks"
CLASS: Final = "class"
PROMPT: Final = "prompt"
OUTPUT: Final = "output"
ROUTER: Final = "router"
RAMP: Final = "ramp"
THINK: Final = "think"

_STATE_BYTES: Final = 32  # PCG64 takes a 128-bit state and a 128-bit increment


class _Words(ISeedSequence):
    """Hands over words that are already well mixed; NumPy's own mixing costs four times a stream's set-up."""

    __slots__ = ("_words",)

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[np.uint64]:
        """Return the words; the generators used here ask for exactly four of 64 bits."""
        if n_words != self._words.size or np.dtype(dtype) != self._words.dtype:
            raise ValueError(f"{n_words} words of {np.dtype(dtype)} asked for, {self._words.size} of uint64 held")
        return self._words


def stream(seed: int, name: str) -> np.random.Generator:
    """Return a fresh generator at the start of stream `name` of `seed`.

    The whole state of a PCG64 DXSM generator is the 256-bit BLAKE2b hash of seed and name, so neighbouring seeds and
    similar names start at unrelated states of unrelated sequences (the increment is hashed, too).
    """
    digest = blake2b(f"{seed:d}/{name}".encode(), digest_size=_STATE_BYTES).digest()
    words = np.frombuffer(digest, dtype="<u8").astype(np.uint64, copy=False)
    # NumPy takes any ISeedSequence, its stubs only its own SeedSequence.
    return np.random.Generator(np.random.PCG64DXSM(cast(np.random.SeedSequence, _Words(words))))
