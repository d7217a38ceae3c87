"""Settings by dotted path: reading, changing, and the command line's `--set`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from engine.scenario import jsontext
from engine.scenario.describe import describe, unknown
from engine.scenario.errors import ScenarioError

TAGS = ("kind", "dist")


def parse_set(text: str) -> tuple[str, Any]:
    """("traffic.rate_rps", 8) for "traffic.rate_rps=8". The value is JSON, or else a text. Raises `ScenarioError`."""
    path, sign, value = text.partition("=")
    path = path.strip()
    if not sign:
        raise ScenarioError.of("", text, "has no =", "write it as traffic.rate_rps=8")
    describe(path)
    try:
        return path, jsontext.parse(value)
    except ScenarioError:
        return path, value


def get(document: Any, path: str) -> Any:
    """The value at a dotted path of a plain document. Raises `KeyError` when it isn't there."""
    for part in path.split("."):
        try:
            document = document[int(part)] if isinstance(document, list) else document[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise KeyError(path) from None
    return document


def changes(base: Any, document: Any, path: str = "") -> dict[str, Any]:
    """{path: value} of what differs between two complete documents; `with_changes` makes the second of the first.

    Lists of equal length are compared item by item, others and objects of different kinds are given whole.
    """
    if isinstance(base, dict) and isinstance(document, dict) and base.keys() == document.keys():
        keys: list[Any] = list(document)
        tags = [key for key in TAGS if key in document and base[key] != document[key]]
    elif isinstance(base, list) and isinstance(document, list) and len(base) == len(document):
        keys, tags = list(range(len(document))), []
    else:
        return {path: document} if base != document else {}
    if tags:
        return {path: document}
    found: dict[str, Any] = {}
    for key in keys:
        found |= changes(base[key], document[key], f"{path}.{key}" if path else str(key))
    return found


def with_changes(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a complete document with values put at dotted paths; nothing is validated but the paths.

    Whole sections go in before what is inside them. Where a kind ("shape.kind", "prompt_tokens.dist") changes, keys
    that the new kind doesn't have are dropped. The number after a list's last adds an item. Raises `ScenarioError` for
    a path that the document can't have.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    for path in sorted(changes, key=lambda path: (path.count("."), path.rpartition(".")[2] not in TAGS)):
        _put(changed, path, jsontext.plain(changes[path], path))
    return changed


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    describe(path)
    *parents, last = path.split(".")
    holder: Any = document
    for depth, part in enumerate(parents):
        holder = _enter(holder, part, path, ".".join(parents[: depth + 1]))
    if isinstance(holder, list):
        _at(holder, last, path)
        holder[int(last)] = value
        return
    if last in TAGS and holder.get(last) != value:
        for key in list(holder):
            if not _belongs(".".join([*parents, key]), value):
                del holder[key]
    holder[last] = value


def _enter(holder: Any, part: str, path: str, here: str) -> Any:
    if isinstance(holder, list):
        _at(holder, part, path)
        return holder[int(part)]
    inner = holder.get(part)
    if inner is None:
        info = describe(here)
        inner = holder[part] = copy.deepcopy(info.default) if info.form == "list" else {}
    if not isinstance(inner, dict | list):
        raise unknown(path)
    return inner


def _at(holder: list[Any], part: str, path: str) -> None:
    """Makes sure that the list has this number, adding one item at most."""
    if not part.isdigit() or int(part) > len(holder):
        most = f"the list has {len(holder)} items"
        raise ScenarioError.of(path, part, f"is not a number in the list: {most}", f"give 0 to {len(holder)}")
    if int(part) == len(holder):
        holder.append({})


def _belongs(path: str, kind: Any) -> bool:
    """Whether objects of a kind have the key at `path`."""
    return isinstance(kind, str) and describe(path, kind).kind == kind
