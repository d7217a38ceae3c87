"""What the waiting page works out beside its answer: piece after piece in another process, shown as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from engine.scenario import Scenario
from engine.study import POLICIES, PolicyName, PolicyOutcome, Read, cached_shares, chunk_sizes
from engine.traffic import Trace
from ui import runs, work
from ui.following import follow
from ui.runs import Answer, Aside

_AHEAD = 2
"""Pieces that are asked for at a time: the next can begin as soon as one is done."""
APART, LOAD = "apart", "load"


def pieces(scenario: Scenario) -> dict[str, list[str]]:
    """Names of the pieces of each section, in the order in which they are worked out."""
    return {
        APART: [APART],
        LOAD: [] if scenario.batching.policy == "disaggregated" else [LOAD],
        "chunks": [_chunk(tokens) for tokens in chunk_sizes(scenario)],
        "policies": [f"policies {policy}" for policy in POLICIES],
        "cached": [_cached(share) for share in cached_shares(scenario)],
    }


def _chunk(tokens: int) -> str:
    return f"chunks {tokens}"


def _cached(share: float) -> str:
    return f"cached {share:g}"


def known(scenario: Scenario, piece: str) -> Aside | None:
    """A piece's result, if it was worked out already."""
    return runs.shared().known_aside(_key(scenario, piece))


def result(scenario: Scenario, piece: str) -> Any:
    """The same without its envelope; `None` while it isn't known, and when it failed."""
    found = known(scenario, piece)
    return found if found is None else found.result


def reads(scenario: Scenario, section: str) -> list[Read] | None:
    """All results of "chunks" or "cached"; `None` until all are there. Those without any answer are left out."""
    found = [known(scenario, piece) for piece in pieces(scenario)[section]]
    if any(one is None for one in found):
        return None
    return [one.result for one in found if one is not None and one.result is not None and one.result.answered]


def policies(scenario: Scenario) -> tuple[list[PolicyOutcome], dict[PolicyName, str]] | None:
    """The policies' outcomes, and why the others don't go with this scenario; `None` until all are there."""
    if any(known(scenario, piece) is None for piece in pieces(scenario)["policies"]):
        return None
    found = {policy: result(scenario, f"policies {policy}") for policy in POLICIES}
    outcomes = [one for one in found.values() if isinstance(one, PolicyOutcome) and one.answered]
    return outcomes, {policy: one for policy, one in found.items() if isinstance(one, str)}


def go_on(scenario: Scenario, each_rps: float | None, trace: Trace | None) -> int:
    """Ask for what comes next, so that it is worked out; how many sections are complete. `each_rps`: what one replica
    can serve."""
    open_ = [piece for section in pieces(scenario).values() for piece in section if known(scenario, piece) is None]
    for piece in reversed(open_[:_AHEAD]):  # the newest is begun first
        function, arguments = _job(scenario, piece, each_rps, trace)
        runs.shared().aside(_key(scenario, piece), function, *arguments)
    return _complete(scenario)


def _job(
    scenario: Scenario, piece: str, each_rps: float | None, trace: Trace | None
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    kind, _, value = piece.partition(" ")
    match kind:
        case "apart":
            return work.taken_apart, (scenario, trace)
        case "load":
            return work.load_of, (scenario, each_rps, trace)
        case "chunks":
            return work.chunked, (scenario, int(value), trace)
        case "policies":
            return work.under_policy, (scenario, value, trace)
        case _:
            return work.cached, (scenario, float(value))


def _key(scenario: Scenario, piece: str) -> str:
    return f"waiting {piece} {scenario.token}"


def progress(scenario: Scenario, answer: Answer, trace: Trace | None) -> None:
    """How far the pieces are; the page is drawn anew whenever a section is complete."""
    if not answer.final:
        st.caption("The studies below follow the whole answer.")
    elif _complete(scenario) < len(pieces(scenario)):
        each_rps, shown = answer.story.summary["replica"]["capacity_rps"], _complete(scenario)
        follow(lambda: go_on(scenario, each_rps, trace) > shown, lambda _: _working(scenario))


def _complete(scenario: Scenario) -> int:
    """Sections of which everything is known."""
    return sum(all(known(scenario, piece) is not None for piece in section) for section in pieces(scenario).values())


def _working(scenario: Scenario) -> None:
    every = [piece for section in pieces(scenario).values() for piece in section]
    done = sum(known(scenario, piece) is not None for piece in every)
    st.progress(done / len(every), f"{done} of {len(every)} small studies done for the charts below.")
