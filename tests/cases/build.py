"""Short ways to write down an operator's case, and what was reported of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engine import Result, Scenario, Trace, read_trace

TABLE = Path(__file__).resolve().parent.parent / "truth" / "operator_cases.csv"
CLOSE = 0.25
"""How near a simulated figure has to be to a reported one."""


@cache
def reported(case: int) -> dict[str, Any]:
    """The figures that an operator gave, by name."""
    return figures()[case]


@cache
def figures() -> dict[int, dict[str, Any]]:
    """The figures of every case of the table, by its id."""
    with TABLE.open(newline="") as file:
        return {int(row["id"]): json.loads(row["figures_json"]) for row in csv.DictReader(file)}


def constant(value: int) -> dict[str, Any]:
    return {"dist": "constant", "value": value}


def lognormal(mean: float, cv: float, **bounds: int) -> dict[str, Any]:
    return {"dist": "lognormal", "mean": mean, "cv": cv, **bounds}


def lengths(prompt: int | dict[str, Any], output: int | dict[str, Any], **settings: Any) -> dict[str, Any]:
    """A class of requests; numbers are constant lengths."""
    given = {"prompt_tokens": prompt, "output_tokens": output}
    return settings | {name: constant(n) if isinstance(n, int) else n for name, n in given.items()}


def scenario(**sections: Any) -> Scenario:
    """One replica and one seed, nothing promised, unless said otherwise; sections as in the document."""
    run = {"seeds": 1, "seed": 1, "warmup_s": 0.0} | sections.pop("run")
    fleet = {"replicas": 1} | sections.pop("fleet", {})
    return Scenario.from_dict({"slo": [], "fleet": fleet, "run": run, **sections})


def one_at_a_time(service_s: float) -> dict[str, Any]:
    """Sections for replicas that serve one request of 64 output tokens at a time."""
    return {
        "performance": {"kind": "linear", "overhead_s": service_s / 64},
        "batching": {"max_num_seqs": 1, "max_num_batched_tokens": 1},
    }


def trace(rows: Iterable[tuple[float, int, int]]) -> Trace:
    """Requests of (arrival_s, prompt_tokens, output_tokens), in any order."""
    lines = [",".join(map(str, row)) for row in sorted(rows)]
    return read_trace("\n".join(["arrival_s,prompt_tokens,output_tokens", *lines, ""]).encode())


def starting(seconds: float, cv: float = 0.0) -> dict[str, float]:
    """A start-up of so many seconds."""
    return {"provision_s": seconds, "image_pull_s": 0.0, "weights_load_s": 0.0, "warmup_s": 0.0, "cv": cv}


def first_words(result: Result, **where: Any) -> np.ndarray:
    """TTFT of the completed requests that have these values in the result's table, seconds."""
    rows = result.requests[result.requests.state == "completed"]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return (rows.first_token_s - rows.arrival_s).to_numpy()


def wanted(result: Result) -> list[tuple[float, int]]:
    """(moment, replicas) of every decision of the first seed's autoscaler."""
    lives = result.run.lives
    assert lives is not None
    mine = lives.tick_seed == 0
    return list(zip(lives.tick_s[mine].tolist(), lives.wanted[mine].tolist(), strict=True))


def reversals(result: Result) -> int:
    """How often the number of replicas wanted turned from rising to falling or back."""
    change = np.sign(np.diff([n for _, n in wanted(result)]))
    change = change[change != 0]
    return int((change[1:] != change[:-1]).sum())
