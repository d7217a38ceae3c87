"""A few published rows, and ways to make a table of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.machine.calibration.table import NUMBERS, TEXTS, Row, read_measurements

COLUMNS = (*TEXTS, "source", "date", *NUMBERS)
# Llama-3.1-70B on two H100: InferenceMAX (database dump through aiconfigurator's silicon_sample.csv), as published.
USUAL = {
    "source_group": "InferenceMAX/InferenceX",
    "model": "Llama-3.1-70B",
    "gpu": "H100-SXM-80GB",
    "n_gpus": 2,
    "tp": 2.0,
    "pp": 1.0,
    "ep": 1.0,
    "dtype_weights": "fp8",
    "dtype_kv": "not stated",
    "engine": "vLLM",
    "date": "2025-10-29",
    "input_len": 1024.0,
    "output_len": 1024.0,
    "load_kind": "closed_loop",
    "concurrency": 16.0,
    "metric": "tpot_ms_unspec",
    "value": 16.0,
}

RowOf = Callable[..., Row]
TableOf = Callable[..., Path]


def text_of(*changes: dict[str, Any], columns: tuple[str, ...] = COLUMNS) -> str:
    """A table with the usual row once for each set of changes."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(USUAL | change for change in changes)
    return out.getvalue()


@pytest.fixture
def table_of(tmp_path: Path) -> TableOf:
    """table_of({...}, {...}): a file with the usual row, changed."""

    def build(*changes: dict[str, Any], columns: tuple[str, ...] = COLUMNS) -> Path:
        path = tmp_path / "table.csv"
        path.write_text(text_of(*changes, columns=columns), encoding="utf-8")
        return path

    return build


@pytest.fixture
def row_of(table_of: TableOf) -> RowOf:
    """row_of(metric=..., ...): the usual row with some columns changed."""

    def build(**changes: Any) -> Row:
        return read_measurements(table_of(changes))[0]

    return build
