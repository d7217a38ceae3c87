"""How a field of the scenario is declared: validation and description in one call.

Every key of the document is declared once, with `param`, `section`, `item` or `tag`. Pydantic reads the bounds from
the `Field` that these return; `engine.scenario.describe` reads the words, for widgets, documentation and command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from engine.scenario.errors import Problem

MINUTE = 60.0
HOUR = 3600.0
DAY = 86_400.0
WEEK = 7 * DAY
MAX_TOKENS = 16_777_216  # above the longest context of the catalogue (10,485,760), and within int32
TINY_S = 1e-6  # shortest deadline, period or threshold that isn't zero

NOTES = "headroom"  # key in a field's json_schema_extra under which the words are kept

Number = int | float


def param(
    default: Any,
    *,
    label: str,
    help: str,
    why: str,
    unit: str | None = None,
    low: Number | None = None,
    high: Number | None = None,
    step: Number | None = None,
    usual: tuple[Number, Number] | None = None,
    log: bool = False,
    flag: str | None = None,
    choices: Mapping[str, str] | None = None,
    null: str | None = None,
    longest: int | None = None,
    shortest: int | None = None,
    alias: str | None = None,
) -> Any:
    """A setting: its default, bounds and words.

    label: plain words, sentence case. help: what it means. why: why this default. unit: of a number. low, high: bounds,
    both accepted. step: of a widget. usual: the range that a slider spans, inside the bounds. log: whether a slider
    steps by ratio. flag: the engine's name for it. choices: value -> a few words. null: what null stands for.
    longest, shortest: number of characters of a text, of items of a list.
    """
    notes: dict[str, Any] = {
        "why": why,
        "unit": unit,
        "step": step,
        "usual": list(usual) if usual else None,
        "log": log,
        "flag": flag,
        "choices": dict(choices) if choices else None,
        "null": null,
    }
    validation: dict[str, Any] = {"ge": low, "le": high, "min_length": shortest, "max_length": longest, "alias": alias}
    if isinstance(default, tuple):
        validation["strict"] = False  # a list is as good as a tuple
    words: dict[str, Any] = {key: value for key, value in notes.items() if value}
    return Field(default, title=label, description=help, json_schema_extra={NOTES: words}, **validation)


def section(
    default: Any,
    *,
    label: str,
    help: str,
    why: str,
    null: str | None = None,
    shortest: int | None = None,
    longest: int | None = None,
) -> Any:
    """A part of the document: an object, one of several kinds of object, or a list of objects."""
    return param(default, label=label, help=help, why=why, null=null, shortest=shortest, longest=longest)


def item(*, label: str, help: str, unit: str, low: Number, high: Number) -> Any:
    """What one number in a list means (for `Annotated`; it has no default of its own)."""
    return Field(title=label, description=help, ge=low, le=high, json_schema_extra={NOTES: {"unit": unit}})


def tag(value: str, word: str) -> Any:
    """The key that says which kind of object this is; `word` tells the kinds apart."""
    return Field(value, title=word, json_schema_extra={NOTES: {"tag": True}})


def kind_of(key: str, otherwise: str) -> Callable[[Any], str | None]:
    """A discriminator for unions: the tag under `key`, `otherwise` where it is absent."""

    def read(value: Any) -> str | None:
        found = value.get(key, otherwise) if isinstance(value, Mapping) else getattr(value, key, None)
        return found if isinstance(found, str) else None

    return read


def broken(problems: tuple[Problem, ...]) -> PydanticCustomError:
    """What a validator raises: the problems travel inside, fields relative to what is validated."""
    return PydanticCustomError("rules", "{said}", {"problems": problems, "said": " / ".join(map(str, problems))})


class Section(BaseModel):
    """Base of every object in the document: immutable, no unknown keys, no conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    def rules(self) -> Iterator[Problem]:
        """Problems that concern several keys at once, fields relative to this section."""
        yield from ()

    @model_validator(mode="after")
    def _obey_rules(self) -> Self:
        problems = tuple(self.rules())
        if problems:
            raise broken(problems)
        return self


Scalar = str | int | float | bool | None


class Table(Mapping[str, Scalar]):
    """A small immutable mapping of names to plain values: columns of a catalogue row, constants by name.

    Hashable and picklable, so that a scenario is both.
    """

    __slots__ = ("_hash", "_items")

    most = 64  # entries
    longest = 200  # characters of a key or a text

    def __init__(self, items: Mapping[str, Scalar]) -> None:
        self._items = dict(sorted(items.items()))
        self._hash = hash(tuple(self._items.items()))

    def __getitem__(self, key: str) -> Scalar:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return f"Table({self._items!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Table, (dict(self._items),))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._accept, serialization=core_schema.plain_serializer_function_ser_schema(dict)
        )

    @classmethod
    def _accept(cls, value: Any) -> Table:
        if isinstance(value, Table):
            return value
        if not isinstance(value, Mapping):
            raise PydanticCustomError("dict_type", "not an object")
        problems = tuple(cls._faults(value))
        if problems:
            raise broken(problems)
        return Table(value)

    @classmethod
    def _faults(cls, value: Mapping[Any, Any]) -> Iterator[Problem]:
        if len(value) > cls.most:
            yield Problem("", f"{len(value)} names", f"are more than {cls.most}", "leave out what isn't needed")
        for key, entry in value.items():
            if not isinstance(key, str) or not 0 < len(key) <= cls.longest:
                yield Problem("", "", "a name is empty, too long or not a text", "use the names of the columns")
            elif isinstance(entry, float) and not math.isfinite(entry):
                yield Problem(key, str(entry), "is not a number", "give a finite number")
            elif isinstance(entry, str) and len(entry) > cls.longest:
                yield Problem(key, "", f"is longer than {cls.longest} characters", "shorten it")
            elif not isinstance(entry, Scalar):
                yield Problem(key, "", "is not a number, text, true, false or null", "give a plain value")


def only_numbers(table: Table) -> Table:
    """For `AfterValidator`: every value of the table must be a number."""
    problems = tuple(
        Problem(key, "", "is not a number", "give the constant's value")
        for key, value in table.items()
        if isinstance(value, bool) or not isinstance(value, int | float)
    )
    if problems:
        raise broken(problems)
    return table
