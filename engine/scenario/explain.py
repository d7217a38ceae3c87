"""Pydantic's findings in the words of the document."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from engine.scenario import anatomy
from engine.scenario.describe import ParamInfo, describe, figure, kinds_with, nearest
from engine.scenario.errors import Problem, sentence, show
from engine.scenario.fields import Section
from engine.scenario.schema.document import SCHEMA, Document

_KINDS = {"int_type": "a whole number", "float_type": "a number", "bool_type": "true or false", "string_type": "a text"}


def explain(error: ValidationError) -> tuple[Problem, ...]:
    """One problem a fault, in the document's order."""
    return tuple(problem for detail in error.errors() for problem in _problems(detail))


def _problems(detail: ErrorDetails) -> Iterator[Problem]:
    path, holder = _locate(detail["loc"])
    if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
        return  # its items are faulty, and have been reported
    if detail["type"] == "rules":
        for problem in detail["ctx"]["problems"]:
            yield problem.under(path)
    elif detail["type"] == "extra_forbidden":
        yield _unknown(path, holder)
    elif path == "schema":
        yield _schema(detail["input"])
    else:
        yield _value(path, holder, detail)


def _locate(location: tuple[int | str, ...]) -> tuple[str, type[Section]]:
    """Pydantic's location as a dotted path (union tags removed), and the class of the object that holds its end."""
    parts: list[str] = []
    holder: type[Section] = Document
    node = anatomy.node(Document)
    for part in location:
        if node.kind == "union" and part in node.sections:
            holder = node.sections[str(part)]
            node = anatomy.node(holder)
            continue
        parts.append(str(part))
        if node.kind == "section":
            (holder,) = node.sections.values()
            info = anatomy.keys(holder).get(str(part))
            node = anatomy.node(info.annotation if info else str)
        elif node.kind in ("list", "row"):
            node = anatomy.node(node.parts[int(part) if node.kind == "row" else 0])
    return ".".join(parts), holder


def _schema(value: Any) -> Problem:
    newer = isinstance(value, int) and value > SCHEMA
    reason = "is newer than this version can read" if newer else "is not a known version"
    return Problem("schema", repr(value) if isinstance(value, float) else show(value), reason, f"use schema {SCHEMA}")


def _unknown(path: str, holder: type[Section]) -> Problem:
    before, _, key = path.rpartition(".")
    siblings = [name for name in anatomy.keys(holder) if name != key]
    close = difflib.get_close_matches(key, siblings, 1, 0.6)
    tag, others = anatomy.tag_key(holder), kinds_with(path)
    if tag and (others or not close):
        kind = anatomy.tag_of(holder)
        remedy = f"it belongs to {tag} {sentence(others)}" if others else f"{kind} has {sentence(siblings, 'and')}"
        return Problem(path, "", f"unknown key for {tag} {kind}", remedy)
    guess = ".".join(part for part in (before, close[0]) if part) if close else nearest(path)
    remedy = f"did you mean {guess}?" if guess else f"known here: {sentence(siblings, 'and')}"
    return Problem(path, "", "unknown key", remedy)


def _value(path: str, holder: type[Section], detail: ErrorDetails) -> Problem:
    value, context = detail["input"], detail.get("ctx", {})
    info = describe(path, anatomy.tag_of(holder))
    give = f"give {info.accepted}"
    match detail["type"]:
        case "greater_than_equal":
            return Problem(path, show(value), f"is below {figure(info.low)}", give, (context["ge"],))
        case "less_than_equal":
            return Problem(path, show(value), f"is above {figure(info.high)}", give, (context["le"],))
        case "missing":
            return Problem(path, "", "is missing", give)
        case "finite_number":
            return Problem(path, show(value), "is not a finite number", give)
        case "literal_error" | "union_tag_invalid" | "union_tag_not_found":
            return _choice(path, holder, value, info)
        case "too_short" | "string_too_short":
            return Problem(path, show(value), f"is shorter than {info.shortest}", give)
        case "too_long" | "string_too_long":
            return Problem(path, show(value), f"is longer than {figure(info.longest)}", give)
        case "unprintable":
            return Problem(path, show(value), "contains control characters", "give one line of printable text")
        case "string_unicode":
            return Problem(path, "", "is not Unicode text", "give one line of printable text")
        case "int_type" if isinstance(value, float) and value.is_integer():
            return Problem(path, repr(value), "is written as a fraction", give, (int(value),))
        case kind:
            return Problem(path, show(value), f"is not {_KINDS.get(kind, _shape(info))}", give)


def _shape(info: ParamInfo) -> str:
    return "a list" if info.form in ("list", "row", "choices") else "an object"


def _choice(path: str, holder: type[Section], value: Any, info: ParamInfo) -> Problem:
    if info.form == "section":  # the tag stands one level down
        if not isinstance(value, dict):
            return Problem(path, show(value), "is not an object", "give an object")
        first, *_ = anatomy.node(anatomy.keys(holder)[path.rpartition(".")[2]].annotation).sections.values()
        key = anatomy.tag_key(first)
        path, value = f"{path}.{key}", value[key]
        info = describe(path)
    values = [choice.value for choice in info.choices]
    close = difflib.get_close_matches(value, values, 1, 0.6) if isinstance(value, str) else []
    guess = f"did you mean {close[0]}? " if close else ""
    return Problem(path, show(value), "is not one of the choices", f"{guess}give {info.accepted}")
