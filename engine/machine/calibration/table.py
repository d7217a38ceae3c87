"""Reading a table of published measurements: columns, types, and what is wrong with it in words."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from engine.scenario import ScenarioError

TEXTS = (
    "source_group",
    "model",
    "gpu",
    "dtype_weights",
    "dtype_kv",
    "engine",
    "engine_version",
    "load_kind",
    "metric",
    "notes",
)
NUMBERS = ("n_gpus", "tp", "pp", "ep", "dp_attention", "input_len", "output_len", "batch", "concurrency", "value")
OPTIONAL_TEXTS = ("date", "source")
_BLANK = frozenset({"", "nan", "na", "n/a", "none", "null"})


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement as published. `line` counts from 1 for the first row below the header; numbers None if blank."""

    line: int
    source_group: str
    source: str
    date: str
    model: str
    gpu: str
    dtype_weights: str
    dtype_kv: str
    engine: str
    engine_version: str
    load_kind: str
    metric: str
    notes: str
    n_gpus: float | None
    tp: float | None
    pp: float | None
    ep: float | None
    dp_attention: float | None
    input_len: float | None
    output_len: float | None
    batch: float | None
    concurrency: float | None
    value: float | None


def read_measurements(path: str | Path) -> list[Row]:
    """The rows of a CSV with the columns of the measurement table, in order; other columns are ignored.

    Raises ScenarioError naming file, row and column: no such file, not text, missing columns, no rows, not a number.
    """
    name = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError.of(name, "", "is not UTF-8 text", "give a CSV file of measurements") from None
    except OSError as error:
        reason = f"can't be read: {(error.strerror or 'no such file').lower()}"
        raise ScenarioError.of(name, "", reason, "give a CSV file of measurements") from None
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        header = [one.strip() for one in reader.fieldnames or ()]
        reader.fieldnames = header
        missing = [column for column in (*TEXTS, *NUMBERS) if column not in header]
        if missing:
            said = "has no column " + ", ".join(missing)
            raise ScenarioError.of(name, "", said, "give the columns of measurements_train.csv")
        rows = [_row(name, line, cells) for line, cells in enumerate(reader, start=1)]
    except csv.Error as error:
        raise ScenarioError.of(name, "", f"is not a CSV file: {error}", "give a CSV file of measurements") from None
    if not rows:
        raise ScenarioError.of(name, "", "has a header and no rows", "give at least one measurement")
    return rows


def _row(name: str, line: int, cells: dict[str, str]) -> Row:
    texts = {column: (cells.get(column) or "").strip() for column in (*TEXTS, *OPTIONAL_TEXTS)}
    numbers = {column: _number(name, line, column, cells.get(column)) for column in NUMBERS}
    return Row(line=line, **texts, **numbers)  # type: ignore[arg-type]  # the columns are Row's fields


def _number(name: str, line: int, column: str, cell: str | None) -> float | None:
    """The number of a cell, None when it is blank."""
    text = (cell or "").strip()
    if text.lower() in _BLANK:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise ScenarioError.of(f"{name}: row {line}, {column}", repr(text), "is not a number", "give one, or nothing")
    return value
