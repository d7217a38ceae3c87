"""What a document says that another doesn't, and putting the two together again.

Objects are carried key by key. A list is carried whole, each of its objects as what it says beyond the defaults of
its kind. An object of another kind than before, and a free table, are carried whole.
"""

from __future__ import annotations

from typing import Any

from engine.scenario.paths import TAGS
from engine.scenario.schema.promises import Objective
from engine.scenario.schema.traffic import TrafficClass

_ITEMS: dict[str, dict[str, Any]] = {
    "traffic.classes": TrafficClass().model_dump(mode="json"),
    "slo": Objective().model_dump(mode="json"),
}
_MISSING = object()


def difference(base: dict[str, Any], document: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The smallest object that `merge` turns back into `document`. Both are complete, of plain JSON types."""
    return {
        key: _carried(base.get(key, _MISSING), value, f"{path}.{key}" if path else key)
        for key, value in document.items()
        if base.get(key, _MISSING) != value
    }


def merge(base: dict[str, Any], changes: dict[str, Any], path: str = "") -> dict[str, Any]:
    """`base` with what `changes` says. `changes` may be anything that JSON can say: nothing here is validated."""
    merged = dict(base)
    for key, value in changes.items():
        merged[key] = _put_together(base.get(key), value, f"{path}.{key}" if path else key)
    return merged


def _carried(base: Any, value: Any, path: str) -> Any:
    if path in _ITEMS:
        return [difference(_ITEMS[path], item, f"{path}.N") for item in value]
    if isinstance(value, dict) and isinstance(base, dict) and _same_kind(base, value) and not _is_table(path):
        return difference(base, value, path)
    return value


def _put_together(base: Any, value: Any, path: str) -> Any:
    if path in _ITEMS and isinstance(value, list):
        default = _ITEMS[path]
        return [merge(default, item, f"{path}.N") if isinstance(item, dict) else item for item in value]
    if isinstance(value, dict) and isinstance(base, dict) and not _other_kind(base, value) and not _is_table(path):
        return merge(base, value, path)
    return value


def _same_kind(base: dict[str, Any], value: dict[str, Any]) -> bool:
    return base.keys() == value.keys() and not _other_kind(base, value)


def _other_kind(base: dict[str, Any], value: dict[str, Any]) -> bool:
    return any(tag in base and value.get(tag, base[tag]) != base[tag] for tag in TAGS)


def _is_table(path: str) -> bool:
    return path in ("model.custom", "hardware.custom", "performance.overrides")
