"""Where a request's seconds go: the parts of its way that add up to its time to the last (or first) token.

* ``queue``: from its arrival to the first step that works on it.
* ``frontend``: the front end's own time, the same for everybody.
* ``prompt``: from the admission that leads to its first token, to that token.
* ``stalled``: after it, what others' prompts add to the steps in which it writes, and the steps in which it stands
  still.
* ``preempted``: before the first token from the first admission to the last, after it from losing its KV to the next
  token.
* ``handover``: in a disaggregated fleet from the first token to the first step that writes on: the way of the KV, and
  waiting for a seat.
* ``answer``: the rest: what writing takes in the company that it has, if nobody in it read a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .result import Result

Floats = NDArray[np.float64]
Part = Literal["frontend", "queue", "prompt", "handover", "answer", "stalled", "preempted"]
By = Literal["e2e", "ttft"]
"""Whose percentiles, and up to which token the seconds are taken apart."""

PARTS: tuple[Part, ...] = ("queue", "frontend", "prompt", "handover", "answer", "stalled", "preempted")
"""In the order in which they are stacked."""
LEVELS = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
_AROUND = 0.005
"""Share of the requests on either side of a percentile that stand for it."""
_FEWEST = 10
"""Requests on either side, where there are as many."""


@dataclass(frozen=True, slots=True)
class Level:
    """The requests around one percentile of the time to the last token, or to the first."""

    name: str
    share: float
    time_s: float
    """The percentile itself: the sum of the parts."""
    parts: dict[Part, float]
    """Seconds of each part: the percentile, shared out as those around it spend theirs."""
    requests: int
    prompt_tokens: float
    """Their mean lengths."""
    output_tokens: float

    @property
    def largest(self) -> Part:
        """The part that takes most."""
        return max(self.parts, key=lambda part: self.parts[part])


@dataclass(frozen=True, slots=True)
class Where:
    """Typical and unlucky requests, taken apart."""

    by: By
    levels: tuple[Level, ...]
    """In the order of ``LEVELS``; empty when no request was complete."""
    others: int
    """Attempts after the warm-up that weren't completed: no bar knows of them."""
    wait_mean_s: float
    """Mean time in the queue; ``nan`` without requests."""
    service_mean_s: float
    """Mean time from the first step that works on a request to its last token, front end left out."""
    utilization: float | None
    """Share of the replicas' time in which they were in a step."""


def parts(result: Result, by: By = "e2e") -> dict[Part, Floats]:
    """Each part's seconds, (observed,) entries each, of a result that was simulated with ``waits``.

    The parts of a request add up to its ``e2e_s``, or ``ttft_s``. Raises ``ValueError`` for a result without them.
    """
    a, rows = result.run.attempts, result.observed
    if not a.admitted_s.size and a.arrival_s.size:
        if result.run.stages > 1:
            raise ValueError("waits: pipelines keep none")
        raise ValueError("waits: the run wasn't asked to keep them; simulate with waits=True")
    arrival, scheduled, first, finish = (c[rows] for c in (a.arrival_s, a.scheduled_s, a.first_token_s, a.finish_s))
    admitted, stalled, lost = a.admitted_s[rows], a.stalled_s[rows], a.preempted_s[rows]
    found: dict[Part, Floats] = {
        "frontend": np.full(arrival.size, result.model.frontend_s),
        "queue": scheduled - arrival,
        "prompt": first - admitted,
        "preempted": admitted - scheduled,
    }
    if by == "ttft":
        return found
    moved = np.zeros(arrival.size) if a.handover is None else np.nan_to_num(a.handover.resumed_s[rows] - first)
    return found | {
        "handover": moved,
        # Rounding may leave a trifle below nothing of an answer of one token.
        "answer": np.maximum((finish - first) - stalled - lost - moved, 0.0),
        "stalled": stalled,
        "preempted": found["preempted"] + lost,
    }


def where(result: Result, by: By = "e2e") -> Where:
    """A result simulated with ``waits``, taken apart at the percentiles of ``LEVELS``."""
    a, rows = result.run.attempts, result.observed
    found, total = parts(result, by), result.metric(by)[rows]
    order = np.argsort(total, kind="stable")
    prompt, output = a.prompt_tokens[rows], a.output_tokens[rows]
    levels = []
    for name, share in LEVELS if order.size else ():
        around = order[_around(order.size, share)]
        time_s, around_s = float(result.latency[by].figures[name]), float(total[around].mean())
        scale = time_s / around_s if around_s > 0 else 1.0
        spent = {part: float(values[around].mean()) * scale for part, values in found.items()}
        levels.append(
            Level(
                name=name,
                share=share,
                time_s=time_s,
                parts={part: spent[part] for part in PARTS if part in spent},
                requests=around.size,
                prompt_tokens=float(prompt[around].mean()),
                output_tokens=float(output[around].mean()),
            )
        )
    served = (a.finish_s - a.scheduled_s)[rows]
    return Where(
        by=by,
        levels=tuple(levels),
        others=int(result.counted.sum()) - order.size,
        wait_mean_s=float(found["queue"].mean()) if order.size else float("nan"),
        service_mean_s=float(served.mean()) if order.size else float("nan"),
        utilization=result.usage.utilization,
    )


def _around(size: int, share: float) -> slice:
    """Ranks around a percentile: as far to either side as ``_AROUND`` says, or ``_FEWEST``, cut at the ends."""
    middle = max(int(np.ceil(round(share * size, 9))), 1) - 1
    reach = max(int(_AROUND * size), _FEWEST)
    reach = min(reach, middle, size - 1 - middle) if min(middle, size - 1 - middle) > 0 else 0
    return slice(middle - reach, middle + reach + 1)
