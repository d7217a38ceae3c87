"""Where the clock of a promise stands: at the replica, at the router, or with the caller.

At the client a request is what its caller asked for, whatever it took: from the arrival of the first attempt to the
result of the last one, and the network's round trip. A gap between two words is the same everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.scenario import Objective
from engine.serving import Attempts

from .spread import Floats

BETWEEN_TOKENS = ("tpot", "max_itl")
"""Metrics that are times between two tokens; an answer of one token doesn't have them."""


def first_rows(attempts: Attempts) -> NDArray[np.int64]:
    """(requests,): where each request's first attempt stands; those after it follow it."""
    return np.flatnonzero(attempts.attempt == 0)


def last_rows(attempts: Attempts) -> NDArray[np.int64]:
    """(requests,): where each request's last attempt stands."""
    first = first_rows(attempts)
    return np.append(first[1:], attempts.arrival_s.size)[: first.size] - 1


def asked_s(objective: Objective, attempts: Attempts) -> Floats:
    """(attempts,): when the clock starts for each, seconds; at the client when its request's first attempt came."""
    if objective.measured_at != "client":
        return attempts.arrival_s
    first = first_rows(attempts)
    return np.repeat(attempts.arrival_s[first], np.diff(np.append(first, attempts.arrival_s.size)))


def before_s(objective: Objective, attempts: Attempts, network_rtt_s: float) -> Floats | float:
    """What the place adds to each attempt's own time, seconds: (attempts,), or 0 for all."""
    if objective.measured_at != "client" or objective.metric in BETWEEN_TOKENS:
        return 0.0
    return attempts.arrival_s - asked_s(objective, attempts) + network_rtt_s
