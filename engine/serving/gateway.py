"""Refusals at the gateway, before the router: the token bucket."""

from __future__ import annotations

import numpy as np

from .lanes import Bools, Floats


def rate_limited(arrival_s: Floats, rate_rps: float, burst: float) -> Bools:
    """(n,): which arrivals of one seed find less than one token in the bucket.

    The bucket starts full with ``burst`` tokens, fills at ``rate_rps`` a second and gives one to each arrival that
    passes. Every decision depends on those before, so this is a loop; it costs about a microsecond an arrival.
    """
    refused = np.zeros(arrival_s.size, np.bool_)
    level, before = float(burst), 0.0
    for i, now in enumerate(arrival_s.tolist()):
        level = min(burst, level + rate_rps * (now - before))
        before = now
        if level < 1.0:
            refused[i] = True
        else:
            level -= 1.0
    return refused
