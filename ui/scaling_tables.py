"""What the scaling page's charts show, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from engine.outcome.relief import Relief, Steps
from engine.study import RuleOutcome
from ui.scaling_words import NAMES, STAGES, lag_of


def course_table(r: Relief) -> pd.DataFrame:
    """Demand, capacity, queue and replicas at the moments of the first chart."""
    time = r.demand.time_s
    queue = np.searchsorted(r.queue_time_s, time, side="right") - 1
    return pd.DataFrame(
        {
            "from (s)": time,
            "demand per second": r.demand.demand_rps,
            "can be served per second": r.demand.capacity_rps,
            "waiting": np.where(queue >= 0, r.queue[np.maximum(queue, 0)], 0) if r.queue.size else 0,
            "wanted": _at(r.wanted, time),
            "starting": _at(r.starting, time),
            "ready": _at(r.ready, time),
        }
    )


def _at(steps: Steps, time_s: np.ndarray) -> np.ndarray:
    return np.asarray(steps.count[np.searchsorted(steps.time_s, time_s, side="right") - 1])


def waterfall_table(r: Relief) -> pd.DataFrame:
    """The parts of the lag, and the drain."""
    return pd.DataFrame(
        {
            "part": [STAGES[part.stage] for part in r.parts],
            "begins (s after demand outgrew capacity)": [part.start_s for part in r.parts],
            "takes (s)": [part.seconds for part in r.parts],
        }
    )


def rules_table(found: Sequence[RuleOutcome]) -> pd.DataFrame:
    """The rules side by side."""
    return pd.DataFrame(
        {
            "rule": [NAMES[o.rule] for o in found],
            "help arrives after": [lag_of(o) for o in found],
            "late or lost a run": [o.broken for o in found],
            "in time (%)": [None if o.attainment is None else 100 * o.attainment for o in found],
            "replica-hours a run": [o.replica_hours for o in found],
            "$ an hour": [o.per_hour for o in found],
        }
    )
