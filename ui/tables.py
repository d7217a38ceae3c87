"""What the charts show, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from engine.outcome.overload import Overload, Spent
from engine.outcome.story import Story
from engine.study import Tried
from ui import overload_words
from ui.overload_words import FATES
from ui.words import REASONS


def arrivals_table(story: Story) -> pd.DataFrame:
    """What the first chart shows."""
    a = story.arrivals
    return pd.DataFrame(
        {"from (s)": a.bins.start_s, "arrivals per second": a.rate_rps, "can be served per second": a.capacity_rps}
    ).dropna(subset=["arrivals per second"])


def latency_table(story: Story) -> pd.DataFrame:
    """What the second chart shows."""
    c = story.latencies
    columns: dict[str, object] = {"from (s)": c.bins.start_s}
    for name in c.figures:
        columns |= {f"{name} (s)": c.figures[name], f"{name} low": c.low[name], f"{name} high": c.high[name]}
    return pd.DataFrame(columns).dropna(subset=["p50 (s)"])


def refusals_table(story: Story) -> pd.DataFrame:
    """What the third chart shows."""
    r = story.refusals
    columns = {f"{REASONS[reason]} (%)": 100 * share for reason, share in r.shares.items()}
    return pd.DataFrame({"from (s)": r.bins.start_s, **columns})


def load_table(o: Overload) -> pd.DataFrame:
    """Load, goodput and attempts per request over time."""
    load = o.load
    columns = {
        "from (s)": load.bins.start_s,
        "first attempts per second": load.first_rps,
        "retries per second": load.retries_rps,
        "in time per second": load.in_time_rps,
        "can be served per second": o.fleet_rps,
        "attempts per request": load.amplification,
    }
    return pd.DataFrame(columns).dropna(subset=["first attempts per second"])


def ways_table(found: Sequence[Tried]) -> pd.DataFrame:
    """What each way of saying no does."""
    rows = []
    for tried in found:
        fates = {f"{word} (%)": 100 * tried.fates.shares.get(fate, 0.0) for fate, word in FATES.items()}
        let_in, wasted, end = tried.fates.of_let_in, tried.wasted, tried.end_share
        rows.append(
            {"way": overload_words.name(tried.way), "in time per second": tried.goodput_rps}
            | fates
            | {
                "in time, of those let in (%)": None if let_in is None else 100 * let_in,
                "in time at the end (%)": None if end is None else 100 * end,
                "attempts per request": tried.attempts,
                "work late or for nothing (%)": None if wasted is None else 100 * wasted,
            }
        )
    return pd.DataFrame(rows)


def spent_table(rows: Sequence[tuple[str, Spent]]) -> pd.DataFrame:
    """Tokens worked on, by what became of the request."""
    parts = [{"in time": s.in_time, "late": s.late, "for callers who had left": s.for_nothing} for _, s in rows]
    found = pd.DataFrame(parts).add_suffix(" (tokens)")
    found.insert(0, "scenario", [which for which, _ in rows])
    return found
