"""Dated prices and their median."""

import pytest

from engine.catalog import accelerators, price, quotes


def test_the_median_is_over_on_demand_prices() -> None:
    h100 = price("H100-SXM-80GB")
    assert h100 is not None
    assert (h100.low, h100.median, h100.high, h100.quotes) == (2.69, 3.99, 12.29, 9)
    assert (h100.oldest, h100.newest) == ("2024-11", "2026-11-09")


@pytest.mark.parametrize(("name", "median"), [("L40S", 1.09), ("A100-SXM4-40GB", 2.7447), ("B200-SXM-180GB", 6.79)])
def test_other_medians(name: str, median: float) -> None:
    found = price(name)
    assert found is not None
    assert found.median == median


def test_an_owners_cost_estimate_is_not_a_price() -> None:
    assert quotes()["MI300X"]
    assert price("MI300X") is None
    assert price("no such chip") is None


def test_every_quote_is_dated_sourced_and_of_a_known_accelerator() -> None:
    for name, rows in quotes().items():
        assert name in accelerators()
        assert all(row.date and row.source and row.usd_per_gpu_hour > 0 for row in rows)
