"""What is wrong with a scenario, in the words of the document."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any, Self

_SHOWN = 60


def show(value: object) -> str:
    """The value as JSON writes it, whole numbers without a fraction, cut to a readable length."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError):
        text = repr(value)
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return text.encode(errors="backslashreplace").decode()  # half of a pair of surrogates can't be printed


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, with what, why, and what would be accepted.

    `field` is a dotted path ("slo.0.target"; empty for the whole document), `value` the offending value as JSON text
    (empty where showing it would not help). `nearest` holds accepted values, one at most: the bound that a number
    overshot. It is empty when there is no obvious one.
    """

    field: str
    value: str
    reason: str
    remedy: str
    nearest: tuple[int | float, ...] = dataclasses.field(default=(), compare=False)

    def under(self, prefix: str) -> Self:
        """The same problem seen from a document in which the section sits at `prefix`."""
        return dataclasses.replace(self, field=".".join(part for part in (prefix, self.field) if part))

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        said = f"{self.value} {self.reason}" if self.value else self.reason
        return f"{where}{said}; {self.remedy}" if self.remedy else f"{where}{said}"


class ScenarioError(ValueError):
    """A scenario that can't be accepted; `problems` says why, one entry a fault, and str() one line each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self.problems)

    @classmethod
    def of(cls, field: str, value: str, reason: str, remedy: str) -> Self:
        """An error with a single problem."""
        return cls((Problem(field, value, reason, remedy),))

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def sentence(values: Iterable[Any], last: str = "or") -> str:
    """'a', 'a or b', 'a, b or c'."""
    words = [str(value) for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""
