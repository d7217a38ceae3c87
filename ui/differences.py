"""What differs between two scenarios, in words. No Streamlit here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.scenario import Scenario, describe
from engine.scenario.paths import changes
from ui.words import digits, percent, plain

_LONGEST = 30


def differences(before: Scenario, after: Scenario) -> list[str]:
    """One line a setting, in the document's order: "replicas 5", "traffic growth set". Markdown."""
    return [f"{_label(path)} {_shown(path, value)}" for path, value in _found(before, after).items()]


def comparison(before: Scenario, after: Scenario) -> list[str]:
    """One line a setting with both values: "replicas 5 instead of 4". Markdown."""
    lines, back = [], _found(after, before)
    for path, value in _found(before, after).items():
        now, then = _shown(path, value), _shown(path, back.get(path))
        lines.append(f"{_label(path)} {now}" + (f" instead of {then}" if now != then else ""))
    return lines


def bullets(lines: Iterable[str]) -> str:
    """Markdown for a list of lines that are Markdown already."""
    return "\n".join(f"- {line}" for line in lines)


def _found(before: Scenario, after: Scenario) -> dict[str, Any]:
    found = changes(before.to_dict(), after.to_dict())
    return {path: value for path, value in found.items() if path != "name"}


def _label(path: str) -> str:
    info = describe(path)
    label = info.label if info.label[1:2].isupper() else info.label[:1].lower() + info.label[1:]
    kinds = len(info.headings) > 1 and path.startswith("slo.") and not path.startswith("slo.0.")
    return f"{label} ({plain(path)})" if kinds or path.startswith("traffic.classes.1") else label


def _shown(path: str, value: Any) -> str:
    """A value in a line. Objects and lists are too long for one."""
    info = describe(path)
    if value is None:
        return info.null or "off"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return percent(value) if path.startswith("slo.") and path.endswith(".target") else digits(float(value), 4)
    if isinstance(value, str):
        return plain(value) if len(value) < _LONGEST else "another"
    return "changed" if isinstance(value, list) else f"{plain(str(value.get('kind', value.get('dist', 'set'))))}"
