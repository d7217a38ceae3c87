"""What the waiting page's charts show, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from engine.outcome.fan_out import MOST_CALLS, FanOut, call_share
from engine.outcome.where import Where
from engine.study import Interference, LoadCurve, PolicyOutcome, Read
from ui.waiting_words import PARTS, WORD


def where_table(w: Where) -> pd.DataFrame:
    """One row a percentile."""
    rows = []
    for level in w.levels:
        parts = {f"{PARTS[part]} (s)": value for part, value in level.parts.items()}
        lengths = {"prompt tokens": level.prompt_tokens, "answer tokens": level.output_tokens}
        about = {"percentile": level.name, f"{WORD[w.by]} (s)": level.time_s}
        rows.append(about | parts | lengths | {"requests": level.requests})
    return pd.DataFrame(rows)


def interference_table(found: Interference) -> pd.DataFrame:
    """One row a token of somebody who writes all the while."""
    times = found.tokens_s[-1]
    return pd.DataFrame({"token at (s)": times, "gap before it (s)": np.concatenate([[np.nan], np.diff(times)])})


def chunks_table(found: Sequence[Read]) -> pd.DataFrame:
    """One row a budget."""
    return pd.DataFrame({"tokens a step": [int(read.value) for read in found]} | _read(found))


def cached_table(found: Sequence[Read]) -> pd.DataFrame:
    """One row a share."""
    return pd.DataFrame({"cached (%)": [100 * read.value for read in found]} | _read(found))


def _read(found: Sequence[Read]) -> dict[str, list[float | None]]:
    first = {f"first word {name} (s)": [read.first_word_s[name] for read in found] for name in ("p50", "p95")}
    gaps = {f"gap {name} (s)": [read.gap_s[name] for read in found] for name in ("p50", "p99")}
    pauses: dict[str, list[float | None]] = {"longest pause p95 (s)": [read.pause_s for read in found]}
    return first | gaps | pauses | {"a replica can serve (requests/s)": [read.capacity_rps for read in found]}


def load_table(c: LoadCurve) -> pd.DataFrame:
    """One row a load."""
    return pd.DataFrame(
        {
            "load (%)": 100 * c.load,
            "mean wait (s)": c.wait_s,
            "± (s)": c.half_width_s,
            "p95 (s)": c.p95_s,
            "served in (s)": c.service_s,
            "waits per service": c.wait_s / c.service_s,
            "in a step (%)": 100 * c.busy,
            "Allen-Cunneen (s)": c.seats_s,
            "Pollaczek-Khinchine (s)": c.single_s,
        }
    )


def fan_out_table(f: FanOut) -> pd.DataFrame:
    """Independent calls by how many there are in an action, and what is simulated."""
    calls = np.arange(1, MOST_CALLS + 1)
    here = calls == f.calls
    columns: dict[str, object] = {
        "calls": calls,
        "median is a call's percentile": [100 * call_share(0.5, int(n)) for n in calls],
    }
    for level, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        columns[f"independent {name} (s)"] = f.independent_s[level]
        columns[f"simulated {name} (s)"] = np.where(here, f.action_s[level], np.nan)
    return pd.DataFrame(columns)


def policies_table(found: Sequence[PolicyOutcome]) -> pd.DataFrame:
    """One row a policy."""
    return pd.DataFrame(
        {
            "policy": [one.policy for one in found],
            "replicas": [one.replicas for one in found],
            "of them for prompts": [one.split and one.split.prefill_replicas for one in found],
        }
        | {f"first word {name} (s)": [one.ttft_s[name].value for one in found] for name in ("p50", "p95", "p99")}
        | {f"gap {name} (s)": [one.itl_s[name].value for one in found] for name in ("p95", "p99")}
        | {f"longest pause {name} (s)": [one.stall_s[name].value for one in found] for name in ("p95", "p99", "max")}
        | {
            "tokens/s": [one.output_tokens_per_s.value for one in found],
            "promise kept (%)": [
                one.attainment and one.attainment.value and 100 * one.attainment.value for one in found
            ],
            "answered": [one.answered for one in found],
            "not answered": [one.unanswered for one in found],
        }
    )


def _kept(one: PolicyOutcome) -> float | None:
    """The share that kept the promise, percent."""
    return None if one.attainment is None or one.attainment.value is None else 100 * one.attainment.value
