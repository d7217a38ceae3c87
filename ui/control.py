"""One control as a value: what it shows of a scenario, and what it changes in one. No Streamlit here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.scenario import ParamInfo, Scenario, describe

Value = float | int | str | None
Kind = Literal["slider", "box", "choice"]

_MANTISSAS = (1, 1.1, 1.2, 1.35, 1.5, 1.7, 2, 2.2, 2.5, 2.7, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 9)


@dataclass(frozen=True, slots=True)
class Control:
    """One control: how it looks, and what it means for the scenario that it was made for.

    `stops` are a slider's positions, `choices` the values of a list with their words. `changes` maps a value to the
    settings that it sets. `null`: what an empty box stands for; "" where it must not be empty.
    """

    key: str
    kind: Kind
    label: str
    help: str
    value: Value
    changes: Callable[[Any], dict[str, Any]]
    low: float | None = None
    high: float | None = None
    step: float = 1.0
    stops: tuple[float, ...] = ()
    choices: Mapping[Any, str] | None = None
    null: str = ""
    whole: bool = False
    """Whether it takes whole numbers only."""

    def nearest_stop(self, value: float) -> float:
        """The slider's position for a value."""
        return min(self.stops, key=lambda stop: abs(stop - value))


def help_of(info: ParamInfo, more: str = "") -> str:
    """What a setting means, accepts, and is called in the engine."""
    parts = [info.help, more]
    if info.low is not None:
        parts.append(f"Accepts {info.accepted}.")
    if info.flag:
        parts.append(f"In the engine: `{info.flag}`.")
    return " ".join(part for part in parts if part)


def number(path: str, base: Scenario, label: str = "") -> Control:
    """A slider with a box for a number that must be there."""
    info = describe(path)
    value = get(base, path)
    whole = info.form == "integer"
    return Control(
        key=path,
        kind="slider",
        label=label or info.label,
        help=help_of(info),
        value=int(value) if whole else float(value),
        changes=lambda new: {path: new},
        low=info.low,
        high=info.high,
        step=info.step or (10.0 if info.unit == "tokens" else 1.0 if whole else 0.1),
        stops=with_value(stops(info), value),
        whole=whole,
    )


def stops(info: ParamInfo) -> tuple[float, ...]:
    """A slider's positions over a setting's usual range: by ratio or by step, both ends included."""
    low, high = info.usual or (info.low or 0.0, info.high or 1.0)
    if info.log:
        inside = [_round(m * 10**e) for e in range(-6, 9) for m in _MANTISSAS]
    else:
        step = info.step or 1.0
        inside = [_round(low + i * step) for i in range(round((high - low) / step) + 1)]
    numbers = {low, high, *(n for n in inside if low <= n <= high)}
    if info.form == "integer":
        return tuple(sorted({round(n) for n in numbers}))
    return tuple(sorted({float(round(n)) if info.unit == "tokens" else float(n) for n in numbers}))


def position(value: float) -> str:
    """What stands at a slider's position. Streamlit tells positions apart by this text: no two may be alike."""
    return f"{value:,.6g}"


def with_value(positions: tuple[float, ...], value: float) -> tuple[float, ...]:
    """A slider's positions, and the value that it starts from where that lies visibly between them."""
    inside = positions[0] < value < positions[-1] and position(value) not in map(position, positions)
    return tuple(sorted({*positions, value})) if inside else positions


def _round(number: float) -> float:
    return float(f"{number:.6g}")


def get(base: Scenario, path: str) -> Any:
    """The value at a dotted path of a scenario."""
    found: Any = base
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    return found
