"""What an accelerator costs by the hour: dated list prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import median
from types import MappingProxyType

from engine.catalog.columns import read_table


@dataclass(frozen=True, slots=True)
class Quote:
    """One price seen. `kind`: on-demand, spot, a long rental, or an owner's cost estimate."""

    accelerator: str
    usd_per_gpu_hour: float
    provider: str
    product: str
    kind: str
    date: str
    source: str


@dataclass(frozen=True, slots=True)
class PriceRange:
    """On-demand prices of one accelerator, USD per device and hour; dates as ISO text, oldest and newest."""

    low: float
    median: float
    high: float
    quotes: int
    oldest: str
    newest: str


@cache
def quotes() -> Mapping[str, tuple[Quote, ...]]:
    """All dated prices by accelerator, every kind."""
    found: dict[str, list[Quote]] = {}
    for row in read_table("prices.csv"):
        price = float(row["usd_per_gpu_hour"])
        texts = {key: row.get(key, "") for key in ("accelerator", "provider", "product", "kind", "date", "source")}
        found.setdefault(row["accelerator"], []).append(Quote(usd_per_gpu_hour=price, **texts))
    return MappingProxyType({name: tuple(rows) for name, rows in found.items()})


@cache
def price(accelerator: str) -> PriceRange | None:
    """The on-demand prices of an accelerator; None when the table has none.

    Spot prices, rentals over years and owners' cost estimates are left out: a reader expects what a bill would say.
    """
    rows = [row for row in quotes().get(accelerator, ()) if row.kind == "on-demand"]
    if not rows:
        return None
    amounts = [row.usd_per_gpu_hour for row in rows]
    dates = sorted(row.date for row in rows)
    return PriceRange(min(amounts), median(amounts), max(amounts), len(rows), dates[0], dates[-1])
