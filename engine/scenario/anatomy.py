"""The document's structure as the classes tell it: what lies under a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from engine.scenario.fields import NOTES, Section

Kind = Literal["section", "union", "list", "row", "leaf"]


@dataclass(frozen=True)
class Node:
    """What an annotation means for the document.

    kind: "section" (an object), "union" (one of several objects, told apart by a tag), "list", "row" (a list of fixed
    length) or "leaf". sections: tag -> class ("" for a plain section). parts: the annotation of a list's items, or of
    each item of a row. type: a leaf's type. nullable: whether null is accepted.
    """

    kind: Kind
    sections: Mapping[str, type[Section]]
    parts: tuple[Any, ...]
    type: Any
    nullable: bool


def node(annotation: Any) -> Node:
    """Reads an annotation of a field or of a list's items."""
    bare = strip(annotation)
    options = [strip(option) for option in get_args(bare)] if get_origin(bare) in (Union, UnionType) else [bare]
    nullable = NoneType in options
    options = [option for option in options if option is not NoneType]
    flat = [inner for option in options for inner in _flatten(option)]
    if all(isinstance(option, type) and issubclass(option, Section) for option in flat):
        sections = {tag_of(option): option for option in flat} if len(flat) > 1 else {"": flat[0]}
        return Node("union" if len(flat) > 1 else "section", sections, (), None, nullable)
    only = flat[0]
    if get_origin(only) is tuple:
        arguments = get_args(only)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return Node("list", {}, arguments[:1], None, nullable)
        return Node("row", {}, arguments, None, nullable)
    return Node("leaf", {}, (), only, nullable)


def _flatten(option: Any) -> list[Any]:
    nested = get_origin(option) in (Union, UnionType)
    return [strip(inner) for inner in get_args(option)] if nested else [option]


def strip(annotation: Any) -> Any:
    """The annotation without `Annotated`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def item_field(annotation: Any) -> FieldInfo | None:
    """The description of a list's or row's number, where it has one."""
    while get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
        for extra in extras:
            if isinstance(extra, FieldInfo):
                return extra
    return None


@cache
def keys(section: type[Section]) -> Mapping[str, FieldInfo]:
    """The section's keys, as the document writes them, in order."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def notes(info: FieldInfo) -> Mapping[str, Any]:
    """The words kept beside a field's validation."""
    extra = info.json_schema_extra
    found = extra.get(NOTES) if isinstance(extra, dict) else None
    return found if isinstance(found, dict) else {}


def tag_key(section: type[Section]) -> str | None:
    """The key that tells this kind of object from its siblings."""
    return next((key for key, info in keys(section).items() if notes(info).get("tag")), None)


def tag_of(section: type[Section]) -> str:
    """The value of that key."""
    key = tag_key(section)
    return str(keys(section)[key].default) if key else ""
