"""The oracle rows in `tests/truth/oracles.csv`, gathered into cases: one parameter set of one queue, one simulation."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent.parent / "truth" / "oracles.csv"


@dataclass(frozen=True)
class Row:
    """One known value: seconds, requests per second, a count, or a share, as the quantity says."""

    quantity: str
    value: float
    source: str

    @property
    def compared(self) -> bool:
        """Whether it may decide a test; the 99.9th percentile is only reported."""
        return not self.quantity.endswith("_p99.9")


@dataclass(frozen=True)
class Case:
    """All rows about one queue with one set of parameters."""

    family: str
    parameters: dict[str, Any]
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """For example `MMc c=4 lam=3.6 mu=1.0`."""
        return " ".join([self.family, *(f"{key}={value}" for key, value in self.parameters.items())])

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows that may decide a test."""
        return tuple(row for row in self.rows if row.compared)

    @property
    def wait_share(self) -> float | None:
        """Probability that an arrival waits, if the table gives it: for G/M/1 it is the root sigma."""
        known = (self.known(quantity) for quantity in ("P_wait", "sigma"))
        return next((value for value in known if value is not None), None)

    def known(self, quantity: str) -> float | None:
        """The oracle's value of a quantity, if it has a row."""
        return next((row.value for row in self.rows if row.quantity == quantity), None)


@cache
def cases() -> tuple[Case, ...]:
    """Every case of the table, in its order."""
    with TABLE.open(newline="") as file:
        table = list(csv.DictReader(file))
    found: dict[tuple[str, str], list[Row]] = {}
    for entry in table:
        row = Row(entry["quantity"], float(entry["value"]), entry["source"])
        found.setdefault((entry["name"], entry["params_json"]), []).append(row)
    return tuple(Case(family, json.loads(text), tuple(rows)) for (family, text), rows in found.items())
