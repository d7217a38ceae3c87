"""Share links: `s=` carries what a scenario says beyond the defaults, or beyond the preset that `p=` names."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from engine.scenario import token as tokens
from engine.scenario.difference import difference, merge
from engine.scenario.errors import Problem, ScenarioError, sentence, show
from engine.scenario.presets import FIRST, preset, presets
from engine.scenario.salvage import Salvage, nearest_valid
from engine.scenario.scenario import Scenario
from engine.scenario.token import Kind, TokenError

_STATE = ""  # key (the first in canonical order) under which a token says which state of a preset it builds on
_DIGITS = 6

DECODERS: dict[int, Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]] = {
    # schema number -> (base, content of the token) -> document of the present schema
    1: merge,
}


class LinkError(ScenarioError):
    """A link that can't be read as it is.

    `kind` tells the cases apart; `nearest` is the closest valid scenario, `kept` what it takes from the link and
    `dropped` what it doesn't, one line an entry.
    """

    def __init__(self, kind: Kind, problems: tuple[Problem, ...], nearest: Salvage) -> None:
        super().__init__(problems)
        self.args = (kind, problems, nearest)  # so that it can be pickled
        self.kind: Kind = kind
        self.nearest: Scenario = nearest.scenario
        self.kept: tuple[str, ...] = nearest.kept
        self.dropped: tuple[str, ...] = nearest.dropped


@dataclass(frozen=True, slots=True)
class Opened:
    """What a link stands for: the scenario, and the preset that it is told against (None: the defaults)."""

    scenario: Scenario
    preset: str | None


def to_query(scenario: Scenario, preset_name: str | None = None) -> str:
    """The query string for a scenario: "s=...", or "p=monday&s=..." ("p=monday" when it is that preset).

    Raises `LinkError` when the link would be too long.
    """
    base = preset(preset_name).scenario if preset_name else _defaults()
    content = difference(base.to_dict(), scenario.to_dict())
    if preset_name:
        if not content:
            return f"p={preset_name}"
        content[_STATE] = base.token[:_DIGITS]
    try:
        token = tokens.encode(content)
    except TokenError as error:
        whole = Salvage(scenario, (), ())
        raise LinkError(error.kind, (Problem("link", "", error.reason, error.remedy),), whole) from None
    return f"p={preset_name}&s={token}" if preset_name else f"s={token}"


def from_query(link: str) -> Scenario:
    """The scenario of a URL, of "p=...&s=...", "s=..." or "p=...", or of a bare token; of "", the first preset's.

    Raises `LinkError`.
    """
    return open_link(link).scenario


def open_link(link: str) -> Opened:
    """As `from_query`, and which preset the link names. Raises `LinkError`."""
    name, token = _parts(link)
    if name is not None and name not in _scenarios():
        raise _unknown_preset(name, token)
    if token is not None:
        return Opened(_read(token, name), name)
    name = name or FIRST
    return Opened(_scenarios()[name], name)


def _parts(link: str) -> tuple[str | None, str | None]:
    """(preset name, token), each None where the link has none."""
    link = link.strip()
    address, mark, query = link.partition("#")[0].rpartition("?")
    if not mark and "/" in query:
        address, query = query, ""
    if "=" not in query.rstrip("="):
        return None, query if query and not address else None
    found = dict(reversed(parse_qsl(query, keep_blank_values=True)))
    return found.get("p"), found.get("s")


def _read(token: str, name: str | None) -> Scenario:
    try:
        schema, content = tokens.decode(token)
    except TokenError as error:
        state = error.readable.pop(_STATE, None)
        base, _ = _base(state, name) if state is not None or name is None else (_scenarios()[name], True)
        nearest = nearest_valid(merge(base.to_dict(), error.readable), base)
        raise LinkError(error.kind, (Problem("link", "", error.reason, error.remedy),), nearest) from None
    base, known = _base(content.pop(_STATE, None), name)
    document = DECODERS[schema](base.to_dict(), content)
    if not known:
        what = f"the preset {name} has changed" if name else "its preset is missing or has changed"
        problem = Problem("link", "", f"{what} since it was made", "check the values, then share it anew")
        raise LinkError("changed_preset", (problem,), nearest_valid(document, base))
    try:
        return Scenario.from_dict(document)
    except ScenarioError as error:
        raise LinkError("invalid", error.problems, nearest_valid(document, base)) from None


def _base(state: Any, name: str | None) -> tuple[Scenario, bool]:
    """(what a token builds on, whether that is as it was): the defaults, or a preset in the state that it names."""
    if state is None:
        return _defaults(), True
    found = [scenario for scenario in _scenarios().values() if scenario.token[:_DIGITS] == state]
    return (found[0], True) if found else (_scenarios()[name] if name else _defaults(), False)


def _unknown_preset(name: str, token: str | None) -> LinkError:
    names = list(_scenarios())
    close = difflib.get_close_matches(name, names, 1, 0.6)
    guess = f"did you mean {close[0]}? " if close else ""
    problem = Problem("p", show(name), "is not a preset", f"{guess}there are {sentence(names, 'and')}")
    nearest = Salvage(preset(close[0] if close else FIRST).scenario, (), ())
    if token is not None:
        try:
            nearest = Salvage(_read(token, None), (), ())
        except LinkError as error:
            nearest = Salvage(error.nearest, error.kept, error.dropped)
    nearest = replace(nearest, dropped=(str(problem), *nearest.dropped))
    return LinkError("unknown_preset", (problem,), nearest)


@cache
def _scenarios() -> dict[str, Scenario]:
    return {entry.name: entry.scenario for entry in presets()}


@cache
def _defaults() -> Scenario:
    return Scenario()
