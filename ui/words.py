"""Numbers and facts in plain words. Nothing here computes a figure: those come from the engine."""

from __future__ import annotations

import math

_MANY = ((0.365, "1 in 3"), (0.45, "2 in 5"), (0.55, "1 in 2"), (0.71, "2 in 3"), (0.85, "3 in 4"), (1.0, "9 in 10"))
NBSP = "\u00a0"
"""Between a number and its unit, so that no line breaks there."""

REASONS = {
    "too_long": "too long for a replica",
    "queue_full": "queue full",
    "rate_limited": "over the rate limit",
    "no_replica": "no replica ready",
    "shed": "refused early",
    "codel": "waited too long",
    "throttled": "held back by the caller",
    "timeout": "caller gave up",
    "ttft_timeout": "caller gave up before the first word",
    "queue_timeout": "too long in the queue",
}
METRICS = {
    "ttft": ("first word", "TTFT"),
    "e2e": ("last word", "E2E"),
    "tpot": ("average gap between words", "TPOT"),
    "max_itl": ("longest gap between words", "ITL"),
    "queue": ("wait in the queue", "queue time"),
}
"""Plain words for a metric, and the term that engineers use."""
SHORT = {key: word for key, (word, _) in METRICS.items()} | {"tpot": "gap between words", "max_itl": "longest gap"}
"""The same where there is little room."""


def digits(value: float, many: int = 3) -> str:
    """A number with so many significant digits, thousands separated, no powers of ten: 0.0123, 4.8, 12,300."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "unknown"
    places = many - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    places = many - 1 - math.floor(math.log10(abs(rounded)))  # 9.99 may have become 10.0
    text = f"{rounded:,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float, many: int = 2) -> str:
    """A duration: 210 ms, 4.8 s, 75 s, 5 min 20 s, 2 h 10 min."""
    if value < 1 - 0.5 * 10.0**-many:
        return f"{digits(value * 1e3, many)}{NBSP}ms" if value else f"0{NBSP}s"
    if value < 119.5:
        return f"{digits(value, many if value < 99.5 else 3)}{NBSP}s"
    whole = round(value)
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes}{NBSP}min" + (f" {rest}{NBSP}s" if rest and minutes < 10 else "")
    hours, rest = divmod(round(whole / 60), 60)
    return f"{hours}{NBSP}h" + (f" {rest}{NBSP}min" if rest and hours < 10 else "")


def percent(share: float, many: int = 3) -> str:
    """A share in percent: 2.1 %, 91.3 %; close to 0 or 100 with as many digits as tell it from those. A load may be
    above: 122 %."""
    if share in (0.0, 1.0):
        return f"{share * 100:.0f}{NBSP}%"
    near = min(abs(share), abs(1.0 - share)) * 100
    places = max(0, min(6, -math.floor(math.log10(near)))) if near < 1 else 1 if many > 2 else 0
    text = f"{share * 100:.{places}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}{NBSP}%"


def rate(per_second: float) -> str:
    """A rate: "8.1 a second", "3 a minute" below one in two seconds, "2.4 an hour" below one in two minutes."""
    if per_second >= 0.5 or per_second == 0:
        return f"{digits(per_second, 2 if per_second < 100 else 3)} a second"
    if per_second >= 0.5 / 60:
        return f"{digits(per_second * 60, 2)} a minute"
    return f"{digits(per_second * 3600, 2)} an hour"


def requests(per_second: float) -> str:
    """A rate with its noun: "8.1 requests a second"."""
    number, _, per = rate(per_second).partition(" ")
    return f"{number} request{'' if number == '1' else 's'} {per}"


def fraction(share: float) -> str:
    """A share as people say it: "1 in 6", "2 in 3", "nobody", "nearly everybody"."""
    if share <= 0:
        return "nobody"
    if share >= 0.965:
        return "everybody" if share >= 1 else "nearly everybody"
    if share < 0.29:
        return f"1 in {digits(round(1 / share), 2)}"
    return next(text for top, text in _MANY if share < top)


def people(share: float, one: str, many: str) -> str:
    """What a share of the people does: "1 in 6 people waits", "2 in 3 people wait", "nobody waits"."""
    who = fraction(share)
    if who.endswith("body"):
        return f"{who} {one}"
    return f"{who} people {one if who.startswith('1 ') else many}"


def moment(time_s: float, about: str = "around ") -> str:
    """When in a run: "around minute 7", "around second 40", "around hour 3"."""
    if time_s < 120:
        return f"{about}second{NBSP}{time_s:.0f}"
    if time_s < 3 * 3600:
        return f"{about}minute{NBSP}{time_s / 60:.0f}"
    return f"{about}hour{NBSP}{digits(time_s / 3600, 2)}"


def count(number: int, one: str, many: str | None = None) -> str:
    """A count with its noun: "1 replica", "1,200 requests"."""
    return f"{number:,}{NBSP}{one if number == 1 else many or one + 's'}"


def money(dollars: float) -> str:
    """An amount in US dollars: $0.84, $32, $1,200."""
    return f"${digits(dollars, 2)}" if dollars < 1000 else f"${dollars:,.0f}"


def listed(items: list[str], last: str = "and") -> str:
    """'a', 'a and b', 'a, b and c'."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def sentence(text: str) -> str:
    """With a capital at the start and a full stop at the end."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def plain(text: str) -> str:
    """Text from outside for Markdown: nothing in it is a command."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+-!|$~:" else c for c in text)
