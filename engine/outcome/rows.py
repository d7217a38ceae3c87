"""The table of requests: one row an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.serving import REASONS, STATES, FleetRun

from .spread import Floats


def rows(run: FleetRun, max_itl_s: Floats, first_seed: int) -> pd.DataFrame:
    """Every attempt of a run in order (seed, request, attempt); empty where absent, times in seconds.

    ``max_itl_s`` (attempts,) is each one's largest gap. With two pools there are, too, who writes the answer, when the
    prompt's KV had come there, and when its writing began.
    """
    a = run.attempts
    columns: dict[str, object] = {
        "seed": a.seed_index + first_seed,
        "request": a.request,
        "attempt": a.attempt,
        "arrival_s": a.arrival_s,
        "class": _words(a.class_id, a.class_names),
        "priority": a.priority,
        "replica": _numbers(a.replica),
        "prompt_tokens": a.prompt_tokens,
        "output_tokens": a.output_tokens,
        "cached_prefix_tokens": a.cached_prefix_tokens,
        "scheduled_s": a.scheduled_s,
        "first_token_s": a.first_token_s,
        "finish_s": a.finish_s,
        "left_s": a.left_s,
        "state": _words(a.state, STATES),
        "reason": _words(a.reason - 1, REASONS[1:]),
        "max_itl_s": max_itl_s,
        "preemptions": a.preemptions,
    }
    if a.handover is not None:
        columns |= {
            "decode_replica": _numbers(a.handover.replica),
            "landed_s": a.handover.landed_s,
            "resumed_s": a.handover.resumed_s,
        }
    return pd.DataFrame(columns)


def _numbers(replica: NDArray[np.int32]) -> pd.arrays.IntegerArray:
    """A column of replicas; empty where there is none."""
    return pd.arrays.IntegerArray(replica.astype(np.int64), replica < 0)


def _words(codes: NDArray[np.signedinteger[Any]], names: Sequence[str]) -> pd.Series:
    """A column of names; empty where the code is -1. Plain text, because categories refuse what a user fills in."""
    return pd.Series(pd.Categorical.from_codes(codes, list(names)).astype("str"))
