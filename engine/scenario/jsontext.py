"""JSON in and out: strict reading with a place in every error, canonical writing, plain values from any others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

from engine.scenario.errors import ScenarioError, show

MAX_BYTES = 4_000_000  # of a scenario file: a table of 10,000 lengths takes about 200 kB
MAX_DEPTH = 32
_EXACT = 2**53  # whole floats up to here are written without a fraction


def _no_constants(name: str) -> NoReturn:
    raise ScenarioError.of("", name, "is not JSON", "give a finite number, or null")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ScenarioError.of("", show(twice), "is given twice in one object", "keep one of the two")
    return found


def parse(text: str) -> Any:
    """The value that a JSON text stands for. Raises `ScenarioError` naming line and column."""
    if len(text) > MAX_BYTES:
        raise ScenarioError.of("", f"{len(text):,} characters", f"are more than {MAX_BYTES:,}", "shorten the scenario")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constants)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ScenarioError.of("", "", f"not JSON at {where}: {error.msg.lower()}", "check quotes and commas") from None
    except RecursionError:
        raise ScenarioError.of("", "", "nested too deeply", "a scenario has few levels") from None
    except ScenarioError:
        raise
    except ValueError:
        raise ScenarioError.of("", "", "a number has too many digits", "give fewer digits") from None


def read(path: Path) -> Any:
    """The value in a JSON file. Raises `ScenarioError` when it can't be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError.of("", str(path), "is not UTF-8 text", "save the scenario as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not a file name"
        raise ScenarioError.of("", str(path), f"can't be read: {reason.lower()}", "give a scenario file") from None
    if len(data) > MAX_BYTES:
        raise ScenarioError.of("", str(path), f"is larger than {MAX_BYTES:,} bytes", "a scenario is a short file")
    try:
        return parse(text)
    except ScenarioError as error:
        raise ScenarioError(problem.under(str(path)) for problem in error.problems) from None


def plain(value: Any, path: str = "", depth: int = 0) -> Any:
    """The same value made of dict, list, str, int, float, bool and None; NumPy values, tuples, sections converted."""
    if value is None or (isinstance(value, str | bool | int | float) and type(value).__module__ == "builtins"):
        return value
    if depth > MAX_DEPTH:
        raise ScenarioError.of(path, "", "is nested too deeply", "a scenario has few levels")
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return {
            _key(key, path): plain(entry, f"{path}.{key}" if path else key, depth + 1) for key, entry in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [plain(entry, f"{path}.{index}" if path else str(index), depth + 1) for index, entry in enumerate(value)]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return plain(value.tolist(), path, depth + 1)
    raise ScenarioError.of(path, "", f"{type(value).__name__} is not a JSON value", "give a JSON value")


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise ScenarioError.of(path, show(key), "is a key that is not a text", "keys of the document are texts")
    if not key.isprintable():
        raise ScenarioError.of(path, show(key), "is a key with unprintable characters", "see docs/scenario-fields.md")
    return key


def canonical(value: Any) -> str:
    """The one JSON text of a plain value: sorted keys, no spaces, whole numbers without a fraction."""
    return json.dumps(_whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT else value
