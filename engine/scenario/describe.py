"""What every setting is called, means and accepts: for widgets, documentation and the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from engine.scenario import anatomy
from engine.scenario.errors import ScenarioError, sentence
from engine.scenario.fields import Section, Table
from engine.scenario.jsontext import plain
from engine.scenario.schema.document import Document

Form = Literal["integer", "number", "text", "switch", "choice", "choices", "list", "row", "table", "section"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a setting that has a fixed list of them, and what it means in a few words."""

    value: str
    word: str


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """Everything that is known about one setting.

    path: as asked for. form: what it holds ("choices": a list of distinct choices, "row": one of fixed length).
    label, help, why: what it is called, what it means, why this default. unit: of a number. low, high: bounds of a
    number, both accepted. step: of a widget (None: steps by ratio). usual: the range a slider spans. log: whether a
    slider steps by ratio. flag: the engine's name. null: what null stands for (None: null is refused). default: plain
    JSON value. shortest, longest: characters of a text, items of a list. headings: labels of the sections around it,
    outermost first. kind: the tag of the object that has this key ("" when every object has it).
    """

    path: str
    form: Form
    label: str
    help: str
    why: str
    unit: str
    low: float | None
    high: float | None
    step: float | None
    usual: tuple[float, float] | None
    log: bool
    flag: str | None
    null: str | None
    default: Any
    choices: tuple[Choice, ...]
    shortest: int | None
    longest: int | None
    headings: tuple[str, ...]
    kind: str

    @property
    def accepted(self) -> str:
        """What may be given, in words: "a whole number from 1 to 4,096"."""
        text = _accepted(self)
        return f"{text}, or null ({self.null})" if self.null else text


@lru_cache(maxsize=4096)
def describe(path: str, kind: str = "") -> ParamInfo:
    """The description of the setting or section at a dotted path.

    List items are given by number ("slo.0.target") or by N. Where an object has several kinds and more than one has
    the key, `kind` chooses; without it the first is meant. Raises `ScenarioError` for an unknown path, naming the
    nearest.
    """
    generic = _generic(path)
    column = f"{generic.rpartition('.')[0]}.{path.rpartition('.')[2]}"  # of a row, where numbers differ in meaning
    found = _index().get(column) or _index().get(generic) or _entry(generic)
    if not found:
        raise unknown(path)
    return replace(next((info for info in found if info.kind == kind), found[0]), path=path)


def kinds_with(path: str) -> tuple[str, ...]:
    """The kinds of object that have the key at a path; empty when every object there has it, or none."""
    return tuple(info.kind for info in _index().get(_generic(path), ()) if info.kind)


def parameters() -> tuple[ParamInfo, ...]:
    """Every leaf of the document in its order, with N for list numbers; a key that several kinds have, once a kind."""
    return tuple(info for infos in _index().values() for info in infos if info.form not in ("section", "row"))


def nearest(path: str) -> str | None:
    """The known path that somebody who wrote `path` most likely meant."""
    parts, generic = path.split("."), _generic(path)
    known = list(_index())
    home = [candidate for candidate in known if candidate.rpartition(".")[2] == parts[-1]]
    found = home if len(home) == 1 else difflib.get_close_matches(generic, known, 1, 0.7) or home
    numbers = iter([part for part in parts if part.isdigit()])
    return ".".join(next(numbers, "0") if part == "N" else part for part in found[0].split(".")) if found else None


def unknown(path: str) -> ScenarioError:
    """The error for a path that the document doesn't have."""
    guess = nearest(path)
    remedy = f"did you mean {guess}?" if guess else "see docs/scenario-fields.md"
    return ScenarioError.of(path, "", "unknown key", remedy)


@cache
def _index() -> dict[str, tuple[ParamInfo, ...]]:
    found: dict[str, tuple[ParamInfo, ...]] = {}
    for info in _section(Document, "", (), ""):
        found[info.path] = (*found.get(info.path, ()), info)
    return found


def _generic(path: str) -> str:
    return ".".join("N" if part.isdigit() else part for part in path.split("."))


def _entry(generic: str) -> tuple[ParamInfo, ...]:
    """A name inside a free table, such as performance.overrides.eta_c."""
    infos = _index().get(generic.rpartition(".")[0], ())
    return infos if infos and infos[0].form == "table" else ()


def _section(section: type[Section], path: str, headings: tuple[str, ...], kind: str) -> Iterator[ParamInfo]:
    for key, info in anatomy.keys(section).items():
        if not anatomy.notes(info).get("tag"):
            yield from _field(info, f"{path}.{key}" if path else key, headings, kind)


def _field(info: FieldInfo, path: str, headings: tuple[str, ...], kind: str) -> Iterator[ParamInfo]:
    node = anatomy.node(info.annotation)
    own = _info(path, info, node, headings, kind)
    yield own
    inside = (*headings, own.label)
    if node.kind == "list":
        path, part = f"{path}.N", node.parts[0]
        node = anatomy.node(part)
        yield from _items(own, path, part, inside)
    if node.kind == "union":
        yield _tag(own, path, node, inside)
    for name, section in node.sections.items():
        yield from _section(section, path, inside, name or kind)


def _items(own: ParamInfo, path: str, part: Any, headings: tuple[str, ...]) -> Iterator[ParamInfo]:
    """What stands under a number of a list: a plain value, or a row of them."""
    node, field = anatomy.node(part), anatomy.item_field(part)
    if node.kind == "row":
        size = len(node.parts)
        yield replace(own, path=path, form="row", default=None, headings=headings, shortest=size, longest=size)
        for index, column in enumerate(node.parts):
            yield from _items(own, f"{path}.{index}", column, (*headings, own.label))
    elif node.kind == "leaf" and field is not None:
        yield _info(path, field, node, headings, own.kind, why=own.why)
    else:
        form = _form(node)
        yield replace(own, path=path, form=form, default=None, headings=headings, shortest=None, longest=None)


def _first(node: anatomy.Node) -> type[Section]:
    """The kind of object that is meant when none is named."""
    return next(iter(node.sections.values()))


def _tag(own: ParamInfo, path: str, node: anatomy.Node, headings: tuple[str, ...]) -> ParamInfo:
    key = anatomy.tag_key(_first(node)) or ""
    default = own.default[key]
    words = {name: anatomy.keys(section)[key].title or "" for name, section in node.sections.items()}
    where = f"{path}.{key}"
    choices = tuple(Choice(name, word) for name, word in words.items())
    return replace(own, path=where, form="choice", default=default, choices=choices, headings=headings, null=None)


def _info(
    path: str, info: FieldInfo, node: anatomy.Node, headings: tuple[str, ...], kind: str, why: str = ""
) -> ParamInfo:
    notes = anatomy.notes(info)
    limits = {type(limit): limit for limit in info.metadata}
    default = None if info.default is PydanticUndefined else plain(info.default)
    words = notes.get("choices") or {}
    usual = notes.get("usual")
    return ParamInfo(
        path=path,
        form=_form(node),
        label=info.title or "",
        help=info.description or "",
        why=notes.get("why", why),
        unit=notes.get("unit", ""),
        low=limits[Ge].ge if Ge in limits else None,
        high=limits[Le].le if Le in limits else None,
        step=notes.get("step"),
        usual=(usual[0], usual[1]) if usual else None,
        log=notes.get("log", False),
        flag=notes.get("flag"),
        null=notes.get("null"),
        default=default,
        choices=tuple(Choice(value, word) for value, word in words.items()),
        shortest=limits[MinLen].min_length if MinLen in limits else None,
        longest=limits[MaxLen].max_length if MaxLen in limits else None,
        headings=headings,
        kind=kind,
    )


def _form(node: anatomy.Node) -> Form:
    if node.kind in ("section", "union"):
        return "section"
    if node.kind == "list":
        return "choices" if get_origin(anatomy.strip(node.parts[0])) is Literal else "list"
    if get_origin(node.type) is Literal:
        return "integer" if all(isinstance(value, int) for value in get_args(node.type)) else "choice"
    forms: dict[Any, Form] = {int: "integer", float: "number", str: "text", bool: "switch", Table: "table"}
    return forms[node.type]


def _accepted(info: ParamInfo) -> str:
    choices = [choice.value for choice in info.choices]
    match info.form:
        case "integer" | "number":
            what = "a whole number" if info.form == "integer" else "a number"
            return f"{what} from {figure(info.low)} to {figure(info.high)}"
        case "choice":
            return sentence(choices)
        case "choices":
            return f"a list of {sentence(choices)}"
        case "switch":
            return "true or false"
        case "text":
            return f"a text of {info.shortest or 0} to {figure(info.longest)} characters"
        case "row":
            return f"a list of {info.shortest} numbers"
        case "list":
            return f"a list of {info.shortest or 0} to {figure(info.longest)} items"
        case "table" | "section":
            return "an object"


def figure(number: float | None) -> str:
    """A bound as people write it: 1,024, 0.01, 0.000001."""
    if number is None:
        return "any"
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{number:,.0f}"
    return f"{number:.9f}".rstrip("0") if 1e-9 <= abs(number) < 1e-3 else f"{number:g}"
