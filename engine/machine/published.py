"""Published measurements beside what was predicted of them by constants fitted without them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from engine.machine.calibration.scoring import equal_weights, weighted_quantile


@dataclass(frozen=True, slots=True)
class Published:
    """One measurement: what was measured, where it is from, and the prediction with its whole block left out.

    `metric`: tpot, ttft_low_load, batch_latency (seconds) or output_tok_s (tokens a second of the whole group). `seqs`:
    requests at once. `engine` is our name of the engine's generation, `published_engine` the source's. `known`: the
    rest had measurements of its accelerator's family and of its engine.
    """

    source: str
    model: str
    accelerator: str
    family: str
    kind: str
    engine: str
    published_engine: str
    weight_dtype: str
    load: str
    metric: str
    tp: int
    prompt: float
    output: float
    seqs: float
    measured: float
    predicted: float
    known: bool

    @property
    def off(self) -> float:
        """Relative error of the prediction: predicted / measured - 1."""
        return self.predicted / self.measured - 1

    @property
    def deployment(self) -> tuple[str, str, str, str, int]:
        """Source, model, accelerator, engine, devices: what has equal weight in a figure."""
        return (self.source, self.model, self.accelerator, self.published_engine, self.tp)


@dataclass(frozen=True, slots=True)
class Off:
    """How far predictions were off, in percent, with equal weight per deployment. `signed`: above 0 is too high."""

    median: float
    p90: float
    signed: float
    points: int
    deployments: int


@cache
def published() -> tuple[Published, ...]:
    """All that were predicted, in the order of the table that they come from."""
    text = resources.files("engine.machine").joinpath("published.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    words, rows = loaded["words"], loaded["rows"]
    columns = {name: [words[name][i] for i in rows[name]] if name in words else rows[name] for name in rows}
    columns["known"] = [bool(one) for one in columns["known"]]
    return tuple(Published(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))


def how_far_off(points: Iterable[Published]) -> Off | None:
    """Percentiles of the absolute error over points; None without any."""
    taken = list(points)
    if not taken:
        return None
    weights, index = equal_weights([point.deployment for point in taken])
    errors = 100 * np.array([point.off for point in taken])
    median, p90 = (weighted_quantile(np.abs(errors), weights, share) for share in (0.5, 0.9))
    return Off(median, p90, weighted_quantile(errors, weights, 0.5), len(taken), int(index.max()) + 1)
