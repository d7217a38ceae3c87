"""KV of the conversations that are under way, where nobody waits: each takes room as it is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InFlight:
    """Conversations under way and their KV in tokens: mean, and standard deviation over time."""

    conversations: float
    mean_tokens: float
    sd_tokens: float


def kv_in_flight(rate_rps: float, word_s: float, prompt_tokens: Floats, output_tokens: Floats) -> InFlight:
    """KV of requests that come independently (Poisson), `rate_rps` a second, and get a token every `word_s` seconds.

    An M/G/infinity system in which a customer's weight grows with its age (Takacs, Introduction to the Theory of
    Queues, 1962, section 3.2; Campbell's theorem): with P and O the lengths, the mean is rate * word_s * E[integral of
    P + g over g = 0..O] (Little's law with token-seconds), the variance rate * word_s * E[integral of (P + g)^2].
    Reading the prompt is taken to need no time. `prompt_tokens` and `output_tokens` (n,) are a sample of the mix;
    `prompt_tokens` may leave out what is cached and shared.
    """
    p, o = np.asarray(prompt_tokens, np.float64), np.asarray(output_tokens, np.float64)
    mean = float((o * p + o**2 / 2).mean())
    square = float((o * p**2 + p * o**2 + o**3 / 3).mean())
    each = rate_rps * word_s
    return InFlight(each * float(o.mean()), each * mean, float(np.sqrt(each * square)))
