"""Columns of a table: which type each has, which are needed, and how a row becomes values or faults."""

from __future__ import annotations

import csv
import difflib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from engine.catalog.errors import CatalogError, Fault

Kind = Literal["whole", "number", "flag", "text"]
_FLAGS = {"yes": True, "no": False, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its kind, whether a custom row must have it, and the smallest value that makes sense."""

    kind: Kind
    needed: bool = False
    low: float | None = None
    choices: tuple[str, ...] = ()


Columns = Mapping[str, Column]


def read_table(file: str) -> list[dict[str, str]]:
    """Rows of one of this package's CSV files, as text; empty cells are left out of a row."""
    text = resources.files("engine.catalog").joinpath(file).read_text(encoding="utf-8")
    return [{key: cell for key, cell in row.items() if cell} for row in csv.DictReader(text.splitlines())]


def from_text(row: Mapping[str, str], columns: Columns) -> dict[str, Any]:
    """A row's cells, converted to the types of their columns (for our own tables)."""
    return {key: _convert(cell, columns[key].kind) for key, cell in row.items()}


def _convert(cell: str, kind: Kind) -> Any:
    if kind == "whole":
        return int(cell)
    if kind == "number":
        return float(cell)
    return _FLAGS[cell] if kind == "flag" else cell


def check(row: Mapping[str, Any], columns: Columns, ignored: Iterable[str] = ()) -> dict[str, Any]:
    """The row without empty and ignored entries, its numbers as int or float by column.

    Raises CatalogError with one fault for each unknown, missing, mistyped or too small entry.
    """
    skipped = set(ignored)
    given = {key: value for key, value in row.items() if value is not None and key not in skipped}
    faults = [_unknown(key, given[key], columns) for key in given if key not in columns]
    values: dict[str, Any] = {}
    for key, column in columns.items():
        if key in given:
            value, fault = _accept(key, given[key], column)
            values[key] = value
            faults += [fault] if fault else []
        elif column.needed:
            faults.append(Fault(key, "", "is missing", f"give {_wanted(column)}"))
    if faults:
        raise CatalogError(faults)
    return values


def _accept(key: str, value: Any, column: Column) -> tuple[Any, Fault | None]:
    """The value in its column's type, and what is wrong with it, if anything."""
    wanted = f"give {_wanted(column)}"
    if column.kind == "flag":
        if isinstance(value, str):
            value = _FLAGS.get(value.lower(), value)
        return value, None if isinstance(value, bool) else Fault(key, _show(value), "is not true or false", wanted)
    if column.kind == "text":
        fits = isinstance(value, str) and (not column.choices or value in column.choices)
        return value, None if fits else Fault(key, _show(value), "is not accepted", wanted)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return value, Fault(key, _show(value), "is not a number", wanted)
    if column.kind == "whole" and value != int(value):
        return value, Fault(key, _show(value), "is not a whole number", wanted)
    if column.low is not None and value < column.low:
        return value, Fault(key, _show(value), f"is below {column.low:g}", wanted)
    return (int(value) if column.kind == "whole" else float(value)), None


def _wanted(column: Column) -> str:
    if column.choices:
        return f"one of {', '.join(column.choices)}"
    words = {"whole": "a whole number", "number": "a number", "flag": "true or false", "text": "a text"}[column.kind]
    return words if column.low is None else f"{words} of at least {column.low:g}"


def _unknown(key: str, value: Any, columns: Columns) -> Fault:
    near = difflib.get_close_matches(key, columns, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"known columns: {', '.join(columns)}"
    return Fault(key, _show(value), "is for a column that isn't known", remedy)


def _show(value: Any) -> str:
    return json.dumps(value, default=repr, ensure_ascii=False)


def nearest(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The known names that a misspelt or shortened one most likely meant, best first (may be empty)."""
    wanted = _plain(name)
    score = {entry: _likeness(wanted, _plain(entry)) for entry in names}
    close = [entry for entry in score if score[entry] >= 0.6]
    return sorted(close, key=lambda entry: -score[entry])[:most]


def _likeness(wanted: str, known: str) -> float:
    """0 to 1.3: how alike two names are; one inside the other counts for much ("H100")."""
    if not wanted:
        return 0.0
    inside = 0.3 if wanted in known or known in wanted else 0.0
    return difflib.SequenceMatcher(None, wanted, known).ratio() + inside


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def unknown_name(kind: str, name: str, names: Iterable[str]) -> CatalogError:
    """The error for a name that isn't in a table: the nearest names, or how many there are."""
    known = list(names)
    near = nearest(name, known)
    remedy = f"nearest: {', '.join(near)}" if near else f"known: {', '.join(known[:6])} and {len(known) - 6} more"
    fault = Fault("", _show(name), f"is no {kind} of the catalogue", f"{remedy}; or describe it in custom")
    return CatalogError([fault])
