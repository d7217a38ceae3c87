"""What the promise page shows, as tables."""

from __future__ import annotations

import pandas as pd

from engine.outcome.promises import Terms
from engine.outcome.promises.budget import Budget
from engine.outcome.promises.burn_rate import burn_rate
from engine.outcome.promises.rescore import TARGETS
from engine.study import Fewest
from ui.measuring_words import alert_when
from ui.promise_words import PARTS, choice_word
from ui.words import digits, percent, seconds


def curve_table(t: Terms) -> pd.DataFrame:
    """Attainment against the threshold."""
    c = t.curve
    assert c is not None
    columns = {"within (s)": c.threshold_s, "in time (%)": 100 * c.share, "low": 100 * c.low, "high": 100 * c.high}
    frame, w = pd.DataFrame(columns), t.windows_curve
    if w is None:
        return frame
    kept = pd.DataFrame({"within (s)": w.threshold_s, "windows kept (%)": 100 * w.share})
    return frame.merge(kept, on="within (s)", how="left")


def choices_table(t: Terms) -> pd.DataFrame:
    """The same run under each choice, and which targets it would keep."""
    rows = []
    for c in t.choices:
        pace = None if c.share is None or c.part == "window" else burn_rate(1 - c.share, t.objective.target)
        low, high = c.ci95 or (None, None)
        rows.append(
            {
                "part": PARTS[c.part], "choice": choice_word(c, t.objective),
                "in time (%)": None if c.share is None else 100 * c.share,
                "low": None if low is None else 100 * low, "high": None if high is None else 100 * high,
                "good": c.good, "counted": c.valid, "burn rate": pace,
            }
            | {f"keeps {percent(target)}": _mark(c.kept(target)) for target in TARGETS}
        )  # fmt: skip
    return pd.DataFrame(rows)


def _mark(kept: bool | None) -> str:
    return "–" if kept is None else "yes" if kept else "no"


def budget_table(b: Budget) -> pd.DataFrame:
    """What is left of the budget."""
    return pd.DataFrame({"at (s)": b.time_s, "left, all runs (%)": 100 * b.left, "left, worst run (%)": 100 * b.worst})


def alerts_table(t: Terms) -> pd.DataFrame:
    """Every alert: what it asks for, and what it would have done."""
    return pd.DataFrame(
        [
            {
                "burn rate": f"{a.rule.burn:g}",
                "windows": f"{seconds(a.rule.long_s)} and {seconds(a.rule.short_s)}",
                "bad requests above": percent(a.error_share) if a.possible else "100 %",
                "budget gone by then": percent(a.consumed),
                "sounds": alert_when(a),
                "at": "–" if a.at_s is None else seconds(a.at_s),
                "after trouble began": "–" if a.late_s is None else seconds(a.late_s),
            }
            for a in t.alerts
        ]
    )


def readings_table(t: Terms) -> pd.DataFrame:
    """Percentiles as they are and as the histogram has them."""
    return pd.DataFrame(
        [
            {
                "percentile": f"p{r.q * 100:g}", "true (s)": r.true_s, "read (s)": r.read_s,
                "error (%)": None if r.error is None else 100 * r.error,
                "bucket from (s)": r.bucket_s[0], "to (s)": r.bucket_s[1],
            }
            for r in t.readings
        ]
    )  # fmt: skip


def windows_table(t: Terms) -> pd.DataFrame:
    """Windows of every kind."""
    return choices_table(t)[lambda frame: frame["part"] == PARTS["window"]][
        ["choice", "in time (%)", "good", "counted"]
    ]


def averages_table(t: Terms) -> pd.DataFrame:
    """Means of percentiles."""
    return pd.DataFrame(
        [
            {
                "by": name, "parts": a.parts, "p99 of all (s)": a.true_s, "mean of p99s (s)": a.mean_s,
                "weighted by traffic (s)": a.weighted_s, "lowest part (s)": a.lowest_s, "highest part (s)": a.highest_s,
            }
            for name, a in t.averages.items()
        ]
    )  # fmt: skip


def omission_table(t: Terms) -> pd.DataFrame:
    """Everybody against a tester."""
    o = t.omission
    assert o is not None
    return pd.DataFrame(
        [
            {
                "who": who, "requests": seen.requests, "mean (s)": seen.mean_s, "p50 (s)": seen.p50_s,
                "p75 (s)": seen.p75_s, "p99 (s)": seen.p99_s,
            }
            for who, seen in (("everybody", o.everybody), (f"a tester, {o.connections} connections", o.tester))
        ]
    )  # fmt: skip


def sure_table(t: Terms) -> pd.DataFrame:
    """How well percentiles are known."""
    return pd.DataFrame(
        [
            {
                "percentile": f"p{digits(100 * s.q, 4)}", "value (s)": s.value_s, "low (s)": s.low_s,
                "high (s)": s.high_s, "requests needed": s.needs,
            }
            for s in t.sure
        ]
    )  # fmt: skip


def fewest_table(found: Fewest) -> pd.DataFrame:
    """Every number of replicas that was tried with all runs."""
    return pd.DataFrame(
        [
            {
                "replicas": trial.replicas, "in time (%)": 100 * trial.attainment,
                "low": None if trial.ci95 is None else 100 * trial.ci95[0],
                "high": None if trial.ci95 is None else 100 * trial.ci95[1],
                "runs that keep it": trial.runs_kept, "$ an hour": trial.cost,
            }
            for trial in found.trials
        ]
    )  # fmt: skip
