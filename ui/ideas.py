"""Suggestions in words. No Streamlit here."""

from __future__ import annotations

from collections.abc import Sequence

from engine.study import Suggestion
from ui.words import count, digits, money, percent, seconds

_NOT_WORTH_SAYING = 0.005
"""Dollars an hour."""


def button(s: Suggestion) -> str:
    """What a button that makes the change says."""
    number = float(s.after) if not isinstance(s.after, str) else 0.0
    match s.kind:
        case "replicas":
            return f"Add {count(round(number - float(s.before or 0)), 'replica')}"
        case "readers":
            return f"Add {count(round(number - float(s.before or 0)), 'replica')} for prompts"
        case "writers":
            return f"Add {count(round(number - float(s.before or 0)), 'replica')} for answers"
        case "fewer_readers":
            return f"Remove {count(round(float(s.before or 0) - number), 'replica')} for prompts"
        case "fewer_writers":
            return f"Remove {count(round(float(s.before or 0) - number), 'replica')} for answers"
        case "fewer_replicas":
            return f"Remove {count(round(float(s.before or 0) - number), 'replica')}"
        case "answers":
            return f"Shorten answers by {percent(1 - number, 2)}"
        case "cap":
            return f"Refuse above {count(round(number), 'request')} a replica"
        case "queue_timeout":
            return f"Drop after {seconds(number)} in the queue"
        case "chunk":
            return f"Limit a step to {count(round(number), 'token')}"
        case "seats":
            return f"Limit a replica to {count(round(number), 'seat')}"
        case "weights":
            return f"Store the weights in {s.after}"
        case "traffic":
            return f"Send {digits(number)} requests a second"
        case "users":
            return f"Let {count(round(number), 'user')} in"
        case "stricter":
            return f"Promise {seconds(number)} instead of {seconds(float(s.before or 0))}"


def effect(s: Suggestion) -> str:
    """What the change does to the promise and to the bill; Markdown."""
    after, before = percent(s.attainment_after), percent(s.attainment_before)
    kept = f"Kept for **{after}**" + (f" instead of {before}" if after != before else ", as now")
    if s.cost_before is None or s.cost_after is None:
        return f"{kept}."
    more = s.cost_after - s.cost_before
    if abs(more) < _NOT_WORTH_SAYING:
        return f"{kept}, at the same cost."
    return f"{kept}, for {money(abs(more))} an hour {'more' if more > 0 else 'less'}.".replace("$", "\\$")


def source(found: Sequence[Suggestion]) -> str:
    """Where the predictions come from."""
    if not found:
        return "No single change that was tried helps the promise by more than the spread between runs."
    first = found[0]
    return (
        f"Predicted from {count(first.runs, 'run')} of {seconds(first.horizon_s)}, the same requests for every change. "
        "Undo takes a change back."
    )
