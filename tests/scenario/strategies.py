"""Random scenarios, drawn from the schema itself: what becomes available is drawn without a change here."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine.scenario import ParamInfo, Scenario, describe
from engine.scenario.anatomy import keys, node, tag_key
from engine.scenario.fields import Section
from engine.scenario.salvage import nearest_valid
from engine.scenario.schema.document import Document

_WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=12)
_TABLE = st.dictionaries(
    st.sampled_from(["layers", "hidden", "memory_gb", "eta_c"]), st.integers(1, 9) | st.floats(0.5, 9), max_size=3
)


def scenarios() -> st.SearchStrategy[Scenario]:
    """Valid scenarios of what is available, anything between the bounds; clashing settings fall back to defaults."""
    return documents().map(lambda document: nearest_valid(document, Scenario()).scenario)


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """Documents whose every leaf is within its bounds; settings may clash with each other."""
    return _section(Document, "", "")


@st.composite
def _section(draw: st.DrawFn, section: type[Section], path: str, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, field in keys(section).items():
        inner = f"{path}.{key}" if path else key
        if key == tag_key(section):
            found[key] = kind
        elif draw(st.integers(0, 2)) == 0:
            found[key] = draw(_value(field.annotation, inner, kind))
    return found


def _value(annotation: Any, path: str, kind: str) -> st.SearchStrategy[Any]:
    info, inner = describe(path, kind), node(annotation)
    if inner.kind == "list" and info.form == "list":
        return _items(inner.parts[0], path, info)
    if inner.kind in ("section", "union"):
        value = _object(inner.sections, path)
    elif inner.kind == "row":
        value = st.tuples(*(_value(part, f"{path}.{i}", kind) for i, part in enumerate(inner.parts))).map(list)
    else:
        value = _leaf(info)
    return st.none() | value if info.null else value


def _object(sections: Any, path: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(sorted(sections)).flatmap(lambda name: _section(sections[name], path, name))


def _items(part: Any, path: str, info: ParamInfo) -> st.SearchStrategy[list[Any]]:
    """A short list; objects with a name get different ones."""
    item = _object(node(part).sections, f"{path}.N") if node(part).sections else _value(part, f"{path}.N", info.kind)

    def named(items: list[Any]) -> list[Any]:
        return [{**entry, "name": f"{i} {entry.get('name', '')}"} for i, entry in enumerate(items)]

    several = st.lists(item, min_size=info.shortest or 0, max_size=3)
    return several.map(named) if path in ("slo", "traffic.classes") else several


def _leaf(info: ParamInfo) -> st.SearchStrategy[Any]:
    choices = [choice.value for choice in info.choices]
    match info.form:
        case "integer":
            return st.integers(info.low, info.high) | st.sampled_from([info.low, info.high])
        case "number":
            return st.floats(info.low, info.high) | st.sampled_from([info.low, info.high])
        case "choice":
            return st.sampled_from(choices)
        case "choices":
            return st.lists(st.sampled_from(choices), unique=True)
        case "switch":
            return st.booleans()
        case "text":
            return _WORDS
        case "table":
            return _TABLE
        case form:
            raise AssertionError(f"no values for {form} at {info.path}")
