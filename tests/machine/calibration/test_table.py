"""Tables that can't be read are refused in one line, with file, row, column and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.machine.calibration.table import read_measurements
from engine.scenario import ScenarioError
from tests.machine.calibration.conftest import COLUMNS, TableOf


def refused(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        read_measurements(path)
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(str(path))


def test_blank_cells_are_nothing_and_other_columns_are_ignored(table_of: TableOf) -> None:
    path = table_of({"ep": "", "pp": "nan", "batch": " ", "rate": 3}, columns=(*COLUMNS, "rate"))
    row = read_measurements(path)[0]
    assert (row.ep, row.pp, row.batch, row.tp, row.value) == (None, None, None, 2.0, 16.0)
    assert (row.line, row.date) == (1, "2025-10-29")


def test_what_is_not_a_number_is_named(table_of: TableOf) -> None:
    assert refused(table_of({}, {"value": "fast"})) == ": row 2, value: 'fast' is not a number; give one, or nothing"
    assert refused(table_of({"tp": "two"})) == ": row 1, tp: 'two' is not a number; give one, or nothing"
    assert refused(table_of({"value": "inf"})).startswith(": row 1, value: 'inf' is not a number")


def test_missing_columns_are_named(table_of: TableOf) -> None:
    without = tuple(column for column in COLUMNS if column not in ("gpu", "value"))
    said = ": has no column gpu, value; give the columns of measurements_train.csv"
    assert refused(table_of({}, columns=without)) == said


def test_files_that_are_no_tables(tmp_path: Path, table_of: TableOf) -> None:
    assert refused(tmp_path / "none.csv") == (
        ": can't be read: no such file or directory; give a CSV file of measurements"
    )
    assert refused(tmp_path) == ": can't be read: is a directory; give a CSV file of measurements"
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    assert refused(binary) == ": is not UTF-8 text; give a CSV file of measurements"
    assert refused(table_of()) == ": has a header and no rows; give at least one measurement"
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert refused(empty).startswith(": has no column source_group, model, gpu")
