"""What the charts show, as tables."""

from __future__ import annotations

import pandas as pd

from engine.outcome.story import Story
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
