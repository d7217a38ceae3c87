"""Numbers in plain words."""

from __future__ import annotations

import pytest

from ui import words


@pytest.mark.parametrize(
    ("value", "many", "expected"),
    [
        (0.0, 3, "0"),
        (0.01234, 3, "0.0123"),
        (4.8, 3, "4.8"),
        (9.996, 3, "10"),
        (12345.0, 3, "12,300"),
        (99999.0, 2, "100,000"),
        (1155.0, 4, "1,155"),
        (float("nan"), 3, "unknown"),
    ],
)
def test_digits(value: float, many: int, expected: str) -> None:
    assert words.digits(value, many) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0 s"),
        (0.0004, "0.4 ms"),
        (0.2149, "210 ms"),
        (0.9996, "1 s"),
        (0.996, "1 s"),
        (0.9949, "990 ms"),
        (4.84, "4.8 s"),
        (75.0, "75 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (320.0, "5 min 20 s"),
        (600.0, "10 min"),
        (900.0, "15 min"),
        (3600.0, "1 h"),
        (7800.0, "2 h 10 min"),
        (604800.0, "168 h"),
    ],
)
def test_seconds(value: float, expected: str) -> None:
    assert words.seconds(value).replace(words.NBSP, " ") == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.913, "91.3 %"),
        (0.95, "95 %"),
        (0.021, "2.1 %"),
        (0.9994, "99.94 %"),
        (0.99999, "99.999 %"),
        (0.0004, "0.04 %"),
        (1.224, "122.4 %"),
        (1.003, "100.3 %"),
    ],
)
def test_percent(share: float, expected: str) -> None:
    assert words.percent(share).replace(words.NBSP, " ") == expected


def test_percent_never_rounds_to_all_or_nothing() -> None:
    for power in range(1, 6):
        assert words.percent(1 - 10.0**-power) != words.percent(1.0)
        assert words.percent(10.0**-power) != words.percent(0.0)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "nobody waits"),
        (0.00077, "1 in 1,300 people waits"),
        (0.011, "1 in 91 people waits"),
        (0.16, "1 in 6 people waits"),
        (0.25, "1 in 4 people waits"),
        (0.34, "1 in 3 people waits"),
        (0.4, "2 in 5 people wait"),
        (0.5, "1 in 2 people waits"),
        (0.667, "2 in 3 people wait"),
        (0.75, "3 in 4 people wait"),
        (0.9, "9 in 10 people wait"),
        (0.997, "nearly everybody waits"),
        (1.0, "everybody waits"),
    ],
)
def test_people(share: float, expected: str) -> None:
    assert words.people(share, "waits", "wait") == expected


@pytest.mark.parametrize(
    ("per_second", "expected"),
    [
        (0.0, "0 a second"),
        (8.06, "8.1 a second"),
        (123.4, "123 a second"),
        (0.05, "3 a minute"),
        (0.001, "3.6 an hour"),
    ],
)
def test_rate(per_second: float, expected: str) -> None:
    assert words.rate(per_second) == expected


def test_requests_takes_a_plural_unless_it_is_one() -> None:
    assert words.requests(8.0) == "8 requests a second"
    assert words.requests(1.0) == "1 request a second"


@pytest.mark.parametrize(
    ("time_s", "expected"), [(40.0, "around second 40"), (430.0, "around minute 7"), (20000.0, "around hour 5.6")]
)
def test_moment(time_s: float, expected: str) -> None:
    assert words.moment(time_s).replace(words.NBSP, " ") == expected


def test_text_from_outside_is_no_markdown() -> None:
    assert words.plain("**<b>[x](javascript:1)`") == r"\*\*\<b\>\[x\]\(javascript\:1\)\`"


def test_lists_and_counts() -> None:
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.count(1, "replica") == f"1{words.NBSP}replica"
    assert words.count(1200, "request") == f"1,200{words.NBSP}requests"
    assert words.money(8.8) == "$8.8"
    assert words.money(1234.0) == "$1,234"
