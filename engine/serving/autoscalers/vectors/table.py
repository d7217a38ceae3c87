"""The table of test cases: a CSV file whose cells hold JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any, NoReturn

from engine.scenario import ScenarioError

from .inputs import Inputs, shown

COLUMNS = ("algorithm", "inputs_json")


def read_rows(data: bytes, algorithms: Sequence[str]) -> list[tuple[str, Inputs]]:
    """(algorithm, inputs) of each row. Raises `ScenarioError` for the first thing that can't be read."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError.of("table", "", "is not UTF-8 text", "save it as UTF-8") from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(rows, [])]
        places = [_place(header, name) for name in COLUMNS]
        filled = (row for row in rows if row)
        return [_row(number, row, len(header), places, algorithms) for number, row in enumerate(filled, start=1)]
    except csv.Error as error:
        line = f"line {rows.line_num}"
        raise ScenarioError.of(line, "", f"is not CSV: {error}", "quote each JSON cell and double its quotes") from None


def _place(header: list[str], name: str) -> int:
    if header.count(name) != 1:
        found = shown(",".join(header)) if any(header) else ""
        reason = f"has not exactly one column {name}" if found else "has no header"
        raise ScenarioError.of("header", found, reason, "begin with algorithm,inputs_json")
    return header.index(name)


def _row(number: int, row: list[str], width: int, places: list[int], algorithms: Sequence[str]) -> tuple[str, Inputs]:
    where = f"row {number}"
    if len(row) != width:
        reason = f"has {len(row)} cells, the header {width}"
        raise ScenarioError.of(where, "", reason, "quote each JSON cell and double its quotes")
    algorithm, text = (row[place] for place in places)
    if algorithm not in algorithms:
        reason = "is no algorithm that is known"
        raise ScenarioError.of(f"{where}, algorithm", shown(algorithm), reason, f"give {', '.join(algorithms)}")
    values = _json(text, f"{where}, inputs_json")
    if not isinstance(values, dict):
        raise ScenarioError.of(f"{where}, inputs_json", shown(values), "is not an object", "give {...}")
    return algorithm, Inputs(values, where)


def _json(text: str, field: str) -> Any:
    def refuse(name: str) -> NoReturn:
        raise ScenarioError.of(field, name, "is not JSON", "give a finite number, or null")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        reason = f"is not JSON at character {error.pos + 1}: {error.msg.lower()}"
        raise ScenarioError.of(field, shown(text), reason, "check quotes and commas") from None
    except ScenarioError:
        raise
    except (RecursionError, ValueError):
        reason = "is nested too deeply or has a number with too many digits"
        raise ScenarioError.of(field, "", reason, "give inputs as in the documentation") from None
