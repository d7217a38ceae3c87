"""Typed access to the inputs of a test case, with an error that names the row and the key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from engine.scenario import ScenarioError

Number = int | float
T = TypeVar("T")

MOST: Final = 1e15
"""Largest magnitude: beyond, a float has no room for units."""
MOST_REPLICAS: Final = 1_000_000
_LEAST = 1e-9
"""Least distance from a bound that a number must stay above, so that quotients stay finite."""
_SHOWN = 60
_REQUIRED: Final = object()
"""The default of a key that has none."""


def shown(value: object) -> str:
    """The value as JSON, cut to a readable length."""
    text = json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return text.encode(errors="backslashreplace").decode()


class Inputs:
    """The keys of one JSON object; `where` leads every error. A key that is absent has its default or is an error."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where

    def number(self, key: str, default: Any = _REQUIRED, above: float | None = None) -> Any:
        """A finite number, above `above`; ``None`` only if that is the default."""
        return self._get(key, default, lambda value, name: self._number(value, name, above))

    def whole(self, key: str, default: Any = _REQUIRED) -> Any:
        """A number of replicas, 0 or more."""
        return self._get(key, default, self._whole)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return bool(self._get(key, default, self._flag))

    def choice(self, key: str, choices: Sequence[str], default: Any = _REQUIRED) -> str:
        """One of the words."""
        return str(self._get(key, default, lambda value, name: self._choice(value, name, choices)))

    def numbers(self, key: str, default: Any = _REQUIRED) -> list[Number]:
        """A list of finite numbers."""
        return self._list(key, default, lambda value, name: self._number(value, name, None))

    def wholes(self, key: str, default: Any = _REQUIRED) -> list[int]:
        """A list of numbers of replicas."""
        return self._list(key, default, self._whole)

    def flags(self, key: str) -> list[bool]:
        """A list of true and false; absent: empty."""
        return self._list(key, [], self._flag)

    def choices(self, key: str, choices: Sequence[str]) -> list[str]:
        """A list of words; absent: empty."""
        return self._list(key, [], lambda value, name: self._choice(value, name, choices))

    def section(self, key: str) -> Inputs:
        """An object; absent: an empty one."""
        return self._get(key, Inputs({}, f"{self.where}, {key}"), self._object)  # type: ignore[no-any-return]

    def sections(self, key: str, default: Any = _REQUIRED) -> list[Inputs]:
        """A list of objects."""
        return self._list(key, default, self._object)

    def tuples(self, key: str, names: Sequence[str], default: Any = _REQUIRED, optional: int = 0) -> list[Inputs]:
        """A list of lists, each as an object of these names; the last `optional` may be missing."""

        def named(value: Any, name: str) -> Inputs:
            if not isinstance(value, list) or not len(names) - optional <= len(value) <= len(names):
                raise self.error(name, value, "has the wrong shape", f"give [{', '.join(names)}]")
            return Inputs(dict(zip(names, value, strict=False)), f"{self.where}, {name}")

        return self._list(key, default, named)

    def error(self, key: str, value: object, reason: str, remedy: str) -> ScenarioError:
        """What is wrong with a key."""
        return ScenarioError.of(f"{self.where}, {key}", shown(value), reason, remedy)

    def _get(self, key: str, default: Any, read: Callable[[Any, str], Any]) -> Any:
        value = self.values.get(key)
        if value is not None:
            return read(value, key)
        if default is _REQUIRED:
            reason = "is null" if key in self.values else "is missing"
            remedy = f"give it beside {', '.join(self.values)}" if self.values else "give it; the object is empty"
            raise ScenarioError.of(f"{self.where}, {key}", "", reason, remedy)
        return default

    def _list(self, key: str, default: Any, read: Callable[[Any, str], T]) -> list[T]:
        def items(value: Any, name: str) -> list[T]:
            if not isinstance(value, list):
                raise self.error(name, value, "is not a list", "give a list: [...]")
            return [read(entry, f"{name}[{index}]") for index, entry in enumerate(value)]

        return list(self._get(key, default, items))

    def _number(self, value: Any, name: str, above: float | None) -> Number:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, value, "is not a number", "give a number")
        if abs(value) > MOST:
            raise self.error(name, value, "is too large", f"give a number up to {MOST:g}")
        if above is not None and value <= above:
            raise self.error(name, value, f"is not above {above:g}", f"give a number above {above:g}")
        if above is not None and value < above + _LEAST:
            raise self.error(name, value, "is too small", f"give at least {above + _LEAST:g}")
        return value

    def _whole(self, value: Any, name: str) -> int:
        number = self._number(value, name, None)
        if number != int(number) or not 0 <= number <= MOST_REPLICAS:
            remedy = f"give a whole number from 0 to {MOST_REPLICAS:,}"
            raise self.error(name, value, "is no number of replicas", remedy)
        return int(number)

    def _flag(self, value: Any, name: str) -> bool:
        if not isinstance(value, bool):
            raise self.error(name, value, "is neither true nor false", "give true or false")
        return value

    def _choice(self, value: Any, name: str, choices: Sequence[str]) -> str:
        if value not in choices:
            raise self.error(name, value, "is not one of the choices", f"give {', '.join(choices)}")
        return str(value)

    def _object(self, value: Any, name: str) -> Inputs:
        if not isinstance(value, dict):
            raise self.error(name, value, "is not an object", "give {...}")
        return Inputs(value, f"{self.where}, {name}")
