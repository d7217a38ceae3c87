"""The nearest valid scenario to a document that isn't valid, or not complete."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from engine.scenario.errors import Problem, ScenarioError, show
from engine.scenario.paths import changes, get
from engine.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Salvage:
    """A valid scenario, what of the original it keeps, and what it doesn't: both one line an entry."""

    scenario: Scenario
    kept: tuple[str, ...]
    dropped: tuple[str, ...]


def nearest_valid(document: dict[str, Any], base: Scenario) -> Salvage:
    """Keeps what is accepted; a number out of bounds takes the bound, anything else faulty is as in `base`."""
    document, usual = copy.deepcopy(document), base.to_dict()
    dropped: list[str] = []
    while True:
        try:
            scenario = Scenario.from_dict(document)
        except ScenarioError as error:
            for problem in error.problems:
                _repair(document, usual, problem, dropped)
        else:
            kept = changes(usual, scenario.to_dict())
            return Salvage(scenario, tuple(f"{path}: {show(value)}" for path, value in kept.items()), tuple(dropped))


def _repair(document: dict[str, Any], usual: dict[str, Any], problem: Problem, dropped: list[str]) -> None:
    """Removes one fault: by the nearest accepted value, or by going back to `usual` at the fault or around it.

    Every call makes the document more like `usual`, or takes a bound once; so repairing ends.
    """
    clamped = [f"{problem.field}: {problem.value} {problem.reason}; {show(value)} instead" for value in problem.nearest]
    parts = problem.field.split(".") if problem.field else []
    if clamped and clamped[0] not in dropped and _has(document, problem.field):
        _assign(document, parts, problem.nearest[0])
        dropped.append(clamped[0])
        return
    for depth in range(len(parts), 0, -1):
        path = ".".join(parts[:depth])
        if not _has(document, path):
            continue
        if not _has(usual, path):
            _remove(document, parts[:depth])
        elif get(document, path) != get(usual, path):
            _assign(document, parts[:depth], copy.deepcopy(get(usual, path)))
        else:
            continue
        dropped.append(str(problem))
        return
    document.clear()
    document.update(copy.deepcopy(usual))
    dropped.append(str(problem))


def _has(document: Any, path: str) -> bool:
    try:
        get(document, path)
    except KeyError:
        return False
    return True


def _assign(document: Any, parts: list[str], value: Any) -> None:
    holder = get(document, ".".join(parts[:-1])) if len(parts) > 1 else document
    holder[int(parts[-1]) if isinstance(holder, list) else parts[-1]] = value


def _remove(document: Any, parts: list[str]) -> None:
    holder = get(document, ".".join(parts[:-1])) if len(parts) > 1 else document
    del holder[int(parts[-1]) if isinstance(holder, list) else parts[-1]]


def complete_json(text: str) -> dict[str, Any]:
    """What the beginning of an object's JSON text says for certain: {} when that is nothing.

    The text is cut after the last complete entry that isn't inside a list, and the open objects are closed.
    """
    closers: list[str] = []
    end, quoted, escaped = "", False, False
    for position, char in enumerate(text):
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
        elif char in "}],":
            if not closers:
                return {}
            if char != ",":
                closers.pop()
            if "]" not in closers:
                end = text[: position + (char != ",")] + "".join(reversed(closers))
    try:
        found = json.loads(end) if end else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
