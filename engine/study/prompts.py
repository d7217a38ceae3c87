"""How many prompt tokens a step may read at once, for the policies that don't keep to the token budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.scenario import Batching
from engine.traffic import Requests, Users


def prompts_at_once(batching: Batching, requests: Sequence[Requests] | Sequence[Users]) -> int:
    """The longest prompt (``prefill_first``), or those of the largest possible group (``static``), tokens.

    A preempted request reads what it had written again, so answers count too. 1 for ``chunked``, which keeps to its
    budget.
    """
    if batching.policy == "chunked":
        return 1
    group = batching.max_num_seqs if batching.policy == "static" else 1
    most = 1
    for r in requests:
        size = r.prompt_tokens.astype(np.int64) + r.output_tokens
        if size.size > group:
            size = np.partition(size, size.size - group)[-group:]
        most = max(most, int(size.sum()))
    return most
