"""Reading a document's values one by one; every function raises `ScenarioError` naming field, value and remedy."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.scenario import ScenarioError

LONGEST = 50
"""Entries of a list."""
MOST = 1e9
"""Of a number, unless it is said otherwise."""


def error(field: str, value: object, reason: str, remedy: str) -> ScenarioError:
    """What is wrong with a value, named by its path."""
    text = "" if value is None else json.dumps(value, ensure_ascii=False, default=repr)
    return ScenarioError.of(field, text if len(text) <= 60 else f"{text[:57]}...", reason, remedy)


def at(where: str, key: str) -> str:
    """The path of a key."""
    return f"{where}.{key}" if where else key


def an_object(value: Any, where: str, keys: Sequence[str]) -> Mapping[str, Any]:
    """An object with some of these keys, or others that don't look like them."""
    if not isinstance(value, dict):
        raise error(where, value, "is not an object", f"give {{...}} with {', '.join(keys)}")
    for key in value:
        near = difflib.get_close_matches(key, keys, n=1, cutoff=0.8)
        if key not in keys and near:
            raise error(at(where, key), None, "is not a key", f"{near[0]} may be meant")
    return value


def a_list(values: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """A list, not too long."""
    found = values.get(key)
    if not isinstance(found, list):
        reason = "is missing" if found is None else "is not a list"
        raise error(at(where, key), found, reason, "give a list of objects")
    if len(found) > LONGEST:
        raise error(at(where, key), len(found), "entries are too many", f"give at most {LONGEST}")
    return found


def a_name(values: Mapping[str, Any], key: str, where: str) -> str:
    """A name that can be shown."""
    found = values.get(key)
    if not isinstance(found, str) or not found or not found.isprintable():
        raise error(at(where, key), found, "is missing" if found is None else "is no name", "give a name")
    return found


def a_number(
    values: Mapping[str, Any], key: str, where: str, default: float | None = None, *, least: float, most: float = MOST
) -> float:
    """A finite number within bounds; `default` where there is none."""
    found = values.get(key, default)
    accepted = f"give a number from {least:g} to {most:g}"
    if found is None:
        raise error(at(where, key), None, "is missing", accepted)
    infinite = isinstance(found, float) and not math.isfinite(found)
    if isinstance(found, bool) or not isinstance(found, int | float) or infinite:
        raise error(at(where, key), found, "is not a number", accepted)
    if not least <= found <= most:
        raise error(at(where, key), found, f"is below {least:g}" if found < least else f"is above {most:g}", accepted)
    return float(found)


def a_whole_number(values: Mapping[str, Any], key: str, where: str, default: int, *, least: int, most: int) -> int:
    """As `a_number`, whole."""
    found = a_number(values, key, where, default, least=least, most=most)
    if found != int(found):
        raise error(at(where, key), found, "is not a whole number", f"give a whole number from {least} to {most}")
    return int(found)
