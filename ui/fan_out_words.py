"""What the waiting page says about actions of several calls. No Streamlit here."""

from __future__ import annotations

from engine.outcome.fan_out import FanOut, call_share
from ui.words import NBSP, count, digits, seconds

_CALLS = 20
"""Of an action, where the scenario has single calls: what an action would take."""


def fan_out_sentence(f: FanOut, settable: bool = True) -> str:
    """How slow an action is, in calls; and why independent calls would be another matter. `settable`: whether the
    page has a control for the calls an action."""
    if f.median_as_call is None:
        return "**No action has all its answers, so none has a time.**"
    if f.calls == 1:
        share = call_share(0.5, _CALLS)
        hint = " Set the calls an action to simulate calls that are issued together." if settable else ""
        median = seconds(float(f.independent_s[0.5][_CALLS - 1]))
        return (
            f"**Every call is an action of its own. An action of {_CALLS} independent calls would take {median} at the "
            f"median: a call's {_nth(share)} percentile.**{hint}"
        )
    share, action_s = call_share(0.5, f.calls), f.action_s[0.5]
    independent = float(f.independent_s[0.5][f.calls - 1]) if f.calls <= f.independent_s[0.5].size else None
    text = f"**The median action takes {seconds(action_s)}, a call's {_nth(f.median_as_call)} percentile.** "
    text += f"For {f.calls} independent calls it would be exactly the {_nth(share)}"
    text += f", {seconds(independent)}. " if independent is not None else ". "
    if f.median_as_call < share:
        text += "Calls issued together share a queue and its luck, so the slowest stands out less."
    else:
        text += "Calls issued together also stand in each other's way, so the slowest is later still."
    return text


def _nth(share: float) -> str:
    """A percentile: 50th, 96.6th, 92nd."""
    text = digits(100 * share, 3)
    ends = {"1": "st", "2": "nd", "3": "rd"}
    return text + ("th" if text[-2:] in ("11", "12", "13") or "." in text else ends.get(text[-1], "th"))


def fan_out_source(f: FanOut) -> str:
    """Who counts."""
    if f.calls == 1:
        return f"{count(f.actions, 'call')}" + (f", {f.timeless:,} of them not answered." if f.timeless else ".")
    text = f"{count(f.actions, 'action')} of {f.calls:,} calls"
    if f.timeless:
        text += f"; {f.timeless:,} have no time, because a call of theirs wasn't answered"
    if f.median_ci is not None:
        low, high = f.median_ci
        text += f"; the median action between {seconds(low, 3)} and {seconds(high, 3)} (95{NBSP}%)"
    return text + "."
