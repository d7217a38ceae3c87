"""Step times of a measured profile: overhead + max(weights, token * T), and slopes."""

from __future__ import annotations

import numpy as np

from engine.machine.steptime import Term
from engine.scenario import Linear


def linear_terms(profile: Linear, step_tokens: int) -> tuple[Term, ...]:
    """The terms of a profile, with base arrays for 0..step_tokens tokens.

    Matrix products take the longer of reading the weights and computing the tokens: what reading takes is `weights`,
    what computing takes beyond it `compute`.
    """
    tokens = np.arange(step_tokens + 1, dtype=np.float64)
    products = np.maximum(profile.weights_s, profile.token_s * tokens)
    none = np.zeros_like(tokens)
    return (
        Term("compute", products - profile.weights_s),
        Term("attention", none, pair_s=profile.prefill_pair_s),
        Term("weights", np.full_like(tokens, profile.weights_s)),
        Term("kv", none, kv_token_s=profile.kv_token_s),
        Term("overhead", np.full_like(tokens, profile.overhead_s), seq_s=profile.seq_s),
    )
