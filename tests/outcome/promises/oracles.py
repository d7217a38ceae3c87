"""The rows of `tests/truth/promise_oracles.csv`, by family and quantity."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TRUTH = Path(__file__).resolve().parents[2] / "truth"


@dataclass(frozen=True)
class Row:
    """One known value, and what it depends on."""

    family: str
    parameters: dict[str, Any]
    quantity: str
    value: float

    @property
    def name(self) -> str:
        """For a test's id."""
        return " ".join([self.family, *(f"{k}={v}" for k, v in self.parameters.items()), self.quantity])


@cache
def rows() -> tuple[Row, ...]:
    """Every row of the table, in its order."""
    with (TRUTH / "promise_oracles.csv").open(newline="") as file:
        return tuple(
            Row(row["name"], json.loads(row["params_json"]), row["quantity"], float(row["value"]))
            for row in csv.DictReader(file)
        )


def of(family: str) -> tuple[Row, ...]:
    """Those of one family."""
    return tuple(row for row in rows() if row.family == family)
