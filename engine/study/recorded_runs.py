"""Two recorded runs of real servers, and the same requests simulated; `tests/vllm_runs/shown.py` makes the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Side = Literal["recorded", "fitted", "predicted"]
SIDES: tuple[Side, ...] = ("recorded", "fitted", "predicted")
"""The real server; simulated with step times fitted to the run; simulated from model and hardware, nothing fitted."""
Curve = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run. Curves are (points,), over `time_s` since the first arrival."""

    title: str
    figures: Mapping[str, Mapping[Side, float]]
    """Seconds, by the figure's name: makespan, percentiles of TTFT and E2E."""
    time_s: Curve
    running: Mapping[Side, Curve]
    """Requests being worked on."""
    waiting: Mapping[Side, Curve]
    """Requests in the queue."""


@cache
def recorded_runs() -> tuple[RecordedRun, ...]:
    """Both runs, the one that is short of KV cache first."""
    text = resources.files("engine.study").joinpath("recorded_runs.json").read_text(encoding="utf-8")
    return tuple(_run(one) for one in json.loads(text))


def _run(one: dict[str, Any]) -> RecordedRun:
    table = one["figures"]
    rows = zip(table["name"], *(table[side] for side in SIDES), strict=True)
    return RecordedRun(
        title=one["title"],
        figures={name: dict(zip(SIDES, values, strict=True)) for name, *values in rows},
        time_s=np.array(one["time_s"], np.float64),
        running={side: np.array(one["running"][side], np.float64) for side in SIDES},
        waiting={side: np.array(one["waiting"][side], np.float64) for side in SIDES},
    )
