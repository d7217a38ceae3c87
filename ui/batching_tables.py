"""What the batching page's charts show, as tables."""

from __future__ import annotations

import pandas as pd

from engine.machine import Memory
from engine.outcome import GroupCourse
from engine.study import Group, Grouped
from ui.batching_charts import memory_parts
from ui.batching_words import PARTS, WAYS


def sharing_table(g: Group) -> pd.DataFrame:
    """Steps by group size, and what doubling the group gains."""
    s = g.sharing
    columns: dict[str, object] = {"group": s.sizes, "step (ms)": s.step_s * 1e3}
    columns |= {f"{PARTS[name]} (ms)": values * 1e3 for name, values in s.parts.items()}
    columns |= {"tokens per second": s.tokens_per_s, "replica's time a token (ms)": s.word_s * 1e3}
    known = set(s.sizes.tolist())
    gains = [s.gain(size, 2 * size) if 2 * size in known else None for size in s.sizes.tolist()]
    return pd.DataFrame(columns | {"twice the group: times the words": pd.Series(gains, dtype=float)})


def memory_table(m: Memory) -> pd.DataFrame:
    """The bar's parts."""
    parts = memory_parts(m)
    return pd.DataFrame({"of one accelerator": list(parts), "GiB": [size / 2.0**30 for size in parts.values()]})


def seats_table(g: Group) -> pd.DataFrame:
    """Seats by length."""
    return pd.DataFrame({"tokens a conversation holds": g.lengths, "seats a replica": g.seats})


def course_table(c: GroupCourse) -> pd.DataFrame:
    """The group over the run."""
    return pd.DataFrame(
        {
            "from (s)": c.start_s,
            "tokens a conversation holds": c.held_tokens,
            "room for": c.allowed,
            "running": c.running,
            "waiting": c.waiting,
            "limited by memory (% of busy time)": 100 * c.kv_limited,
            "refused or timed out (%)": 100 * c.lost,
            "preemptions for each 100 arrivals": 100 * c.preempted,
        }
    )


def ways_table(g: Grouped) -> pd.DataFrame:
    """Both ways of grouping."""
    rows = [
        {
            "grouping": WAYS[way.policy],
            "a replica can serve (requests/s)": way.capacity_rps,
            "output tokens per second, all replicas": way.tokens_per_s,
            "in the group, average": way.mean_group,
            "TTFT p50 (s)": way.ttft_p50_s,
            "TTFT p95 (s)": way.ttft_p95_s,
            "ITL p50 (s)": way.itl_p50_s,
            "ITL p99 (s)": way.itl_p99_s,
            "answered (%)": 100 * way.answered / way.offered if way.offered else None,
        }
        for way in (g.continuous, g.static)
    ]
    return pd.DataFrame(rows)
