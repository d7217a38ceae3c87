"""The two recorded vLLM runs: what was asked for, when it was answered, and how many ran and waited each second."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RUNS = ("RTX4090_Llama-3.1-8B", "RTXPRO6000_Qwen3-32B")


@dataclass(frozen=True)
class Recorded:
    """One recorded run. Times are seconds since the first request arrived; requests are in order of arrival."""

    name: str
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_capacity_tokens: int | None
    """Tokens of context that fit, where the run's settings say it."""
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    arrival_s: Floats
    """(n,): when the server's front end had it, on the clock of the other times."""
    queued_s: Floats
    """(n,): when the scheduler put it into its queue, between two steps."""
    scheduled_s: Floats
    """(n,): when it was first chosen for a step."""
    first_token_s: Floats
    finish_s: Floats
    tick_s: Floats
    """(ticks,): when running and waiting were read, once a second."""
    running: Floats
    waiting: Floats
    kv_usage: Floats
    """Shares of the KV cache in use, 0 to 1; all 0 in a run that didn't record them."""

    @property
    def makespan_s(self) -> float:
        """From the first arrival to the last token."""
        return float(self.finish_s.max())


def data_folder() -> Path:
    """The folder of real data for the scripts, found as the tests' `data_dir` finds it."""
    return Path(os.environ.get("HEADROOM_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def read(data: Path, name: str) -> Recorded:
    """Read a run from the folder of real data."""
    folder = data / "vllm_runs"
    meta = json.loads((folder / f"{name}_meta.json").read_text())
    rows = [json.loads(line) for line in (folder / f"{name}_requests.jsonl").read_text().splitlines()]
    with (folder / f"{name}_timeseries.csv").open(newline="") as file:
        ticks = list(csv.DictReader(file))
    wall = _column(rows, "arrival_time")
    started = datetime.fromisoformat(meta["started_at"]).timestamp()
    # Arrivals are on the wall clock, all else is on a monotonic one that started at an unknown moment. A request is
    # queued when the scheduler looks into its mailbox, between two steps; the one that was queued soonest after its
    # arrival ties the clocks together, as if it had been queued at once.
    first = wall[0] + float((_column(rows, "queued_ts") - wall).min())
    return Recorded(
        name=name,
        max_num_seqs=meta["engine_kwargs"]["max_num_seqs"],
        max_num_batched_tokens=meta["engine_kwargs"]["max_num_batched_tokens"],
        kv_capacity_tokens=meta.get("kv_cache", {}).get("num_kv_tokens"),
        prompt_tokens=_column(rows, "input_toks").astype(np.int64),
        output_tokens=_column(rows, "output_toks").astype(np.int64),
        arrival_s=wall - wall[0],
        queued_s=_column(rows, "queued_ts") - first,
        scheduled_s=_column(rows, "scheduled_ts") - first,
        first_token_s=_column(rows, "first_token_ts") - first,
        finish_s=_column(rows, "last_token_ts") - first,
        tick_s=_column(ticks, "t") - (wall[0] - started),
        running=_column(ticks, "running"),
        waiting=_column(ticks, "waiting"),
        kv_usage=_column(ticks, "kv_cache_pct") / 100,
    )


def _column(rows: list[dict[str, Any]], name: str) -> Floats:
    return np.array([float(row[name]) for row in rows])
