"""The rooms of engine/ know only the rooms before them in the flow, and nothing of the screen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "scenario": set(),
    "catalog": set(),
    "traffic": {"scenario"},
    "machine": {"scenario", "catalog"},
    "serving": {"scenario", "traffic", "machine"},
    "outcome": {"scenario", "traffic", "machine", "serving"},
    "study": {"scenario", "catalog", "traffic", "machine", "serving", "outcome", "theory"},
    "theory": set(),
    "placement": {"scenario", "catalog", "machine"},
    "export": {"scenario", "catalog", "machine", "outcome", "study"},
}
"""What each room of the engine may import, besides itself."""
SCREEN = {"streamlit", "plotly", "ui", "pages", "app"}


def imports(path: Path) -> Iterator[str]:
    """Every absolute module name that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= len(path.relative_to(ROOT).parents), f"{path}: leaves the project"
            if node.level == 0 and node.module:
                yield node.module
            elif node.level:
                yield ".".join([*path.relative_to(ROOT).parts[: -node.level], node.module or ""])


def files(*folders: str) -> list[Path]:
    """Python files below the folders, by path from the root."""
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", files("engine"), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_the_rooms_before_it(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    names = list(imports(path))
    assert not {n.split(".")[0] for n in names} & SCREEN, "the engine knows no screen"
    assert not {n.split(".")[0] for n in names} & {"tests"}
    if len(parts) == 2:  # the public API and the command line may use every room
        return
    room = parts[1]
    used = {n.split(".")[1] for n in names if n.startswith("engine.")} - {room}
    assert used <= MAY_IMPORT[room], f"{room} may not import {sorted(used - MAY_IMPORT[room])}"


def test_every_room_is_listed() -> None:
    rooms = {p.parent.name for p in (ROOT / "engine").glob("*/__init__.py")}
    assert rooms <= set(MAY_IMPORT)


@pytest.mark.parametrize("path", files("engine"), ids=lambda p: str(p.relative_to(ROOT)))
def test_other_rooms_are_entered_by_their_door(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    room = parts[1] if len(parts) > 2 else None
    deep = [n for n in imports(path) if n.startswith("engine.") and n.count(".") > 1 and n.split(".")[1] != room]
    assert not deep, "use what the other room's __init__ offers"


@pytest.mark.parametrize("path", files("tests/reference"), ids=lambda p: p.name)
def test_the_reference_shares_no_code_with_the_engine(path: Path) -> None:
    assert not [n for n in imports(path) if n.split(".")[0] == "engine"]
