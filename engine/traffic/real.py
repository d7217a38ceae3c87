"""How clumped the traffic of real services was: a small table to compare with, a source for every row."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("real.csv")


@dataclass(frozen=True, slots=True)
class RealTraffic:
    """Figures of one recorded trace, by the conventions of `clumps`; None where its clock is too coarse."""

    name: str
    title: str
    requests: int
    rate_rps: float
    worst: float
    """Arrivals of its worst minute over those of its average one."""
    dispersion: dict[float, float | None]
    """By window in seconds."""
    gap_cv: float | None
    source: str
    note: str


@cache
def real_traffic() -> tuple[RealTraffic, ...]:
    """Every row of the table, in its order."""
    with TABLE.open(newline="") as file:
        return tuple(_row(row) for row in csv.DictReader(file))


def _row(row: dict[str, str]) -> RealTraffic:
    return RealTraffic(
        name=row["name"],
        title=row["title"],
        requests=int(row["requests"]),
        rate_rps=float(row["mean_rate_rps"]),
        worst=float(row["peak_minute"]),
        dispersion={float(w): _number(row[f"dispersion_{w}s"]) for w in (1, 10, 60)},
        gap_cv=_number(row["gap_cv"]),
        source=row["source"],
        note=row["note"],
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
