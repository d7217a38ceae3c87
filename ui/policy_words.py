"""What the waiting page says about batching policies on the same traffic. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf

from engine.study import PolicyName, PolicyOutcome
from ui.words import NBSP, count, listed, percent, plain, seconds

NAMES: dict[PolicyName, str] = {
    "chunked": "in chunks",
    "prefill_first": "prompts first",
    "static": "in groups",
    "disaggregated": "two pools",
}
"""Short names, for an axis and for buttons."""
_WITH: dict[PolicyName, str] = {
    "chunked": "with prompts in chunks",
    "prefill_first": "with prompts read first",
    "static": "in groups",
    "disaggregated": "with two pools",
}
_SAME = 0.05


def policies_sentence(found: Sequence[PolicyOutcome]) -> str:
    """Who has the first word soonest, and who pauses least."""
    if len(found) == 1:
        return _only(found[0]) + _behind(found)
    first = min(found, key=_first)
    steady = min(found, key=_pause)
    text = f"**The first word comes soonest {_how(first)}: {seconds(_first(first))} for the slowest in 20. "
    if isinf(_pause(steady)):
        text = f"{text.rstrip()}** Answers of one word have no pauses. "
    elif isinf(_pause(first)):
        text += f"Words pause least {_how(steady)}: {seconds(_pause(steady))}.** "
    elif steady is first:
        text += f"Nobody's longest pause is shorter either: {seconds(_pause(steady))}.** "
    else:
        text += f"Words pause least {_how(steady)}: {seconds(_pause(steady))}, against {seconds(_pause(first))}.** "
    return text + _kept(found) + _behind(found)


def _only(one: PolicyOutcome) -> str:
    """A policy that has no other beside it."""
    pause = "" if isinf(_pause(one)) else f", longest pause of an answer {seconds(_pause(one))} (p95)"
    kept = one.attainment.value if one.attainment else None
    promise = "" if kept is None else f" The promise is kept for {percent(kept)} of requests."
    return (
        f"**With these settings there are answers {_how(one)} only: first word within {seconds(_first(one))} for "
        f"95{NBSP}%{pause}.**{promise}"
    )


def _behind(found: Sequence[PolicyOutcome]) -> str:
    """Two pools of which no split completes what comes."""
    if all(one.split is None or one.split.keeps_up for one in found):
        return ""
    return " But two pools don't keep up with what comes: one of their queues grows as long as the run lasts."


def _first(one: PolicyOutcome) -> float:
    return _value(one.ttft_s["p95"].value)


def _pause(one: PolicyOutcome) -> float:
    return _value(one.stall_s["p95"].value)


def _value(value: float | None) -> float:
    return float("inf") if value is None else value


def _how(one: PolicyOutcome) -> str:
    if one.split is None:
        return _WITH[one.policy]
    return f"with {one.split.prefill_replicas} of {one.replicas} replicas only for prompts"


def _kept(found: Sequence[PolicyOutcome]) -> str:
    shares = {one.policy: one.attainment.value for one in found if one.attainment and one.attainment.value is not None}
    if not shares:
        return ""
    best = max(shares.values())
    winners = [_WITH[policy] for policy, share in shares.items() if share > best - _SAME * (1 - best) - 1e-9]
    if len(winners) == len(found):
        return f"The promise is kept alike by all: for {percent(best)} of requests."
    return f"The promise is kept best {listed(winners, 'or')}: for {percent(best)} of requests."


def source(found: Sequence[PolicyOutcome], refused: Mapping[PolicyName, str]) -> str:
    """What was simulated, and why other policies couldn't be."""
    one = found[0]
    machines = "accelerator" if one.accelerators == 1 else count(one.accelerators, "accelerator")
    text = f"{count(one.runs, 'run')} of {seconds(one.horizon_s)} each, the same requests on the same {machines}."
    if any(other.split for other in found):
        text += " The first gap of two pools contains the way between them."
    splits = next((other.splits for other in found if other.splits), ())
    if len(splits) > 1:
        text += f" Of {len(splits)} ways to share the replicas out to two pools the best is shown."
    for policy, why in refused.items():
        text += f" Without “{NAMES[policy]}”: {plain(why)}."
    return text
