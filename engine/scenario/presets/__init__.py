"""Presets: scenarios with a story, one JSON file each, written as what they say beyond the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.scenario import jsontext
from engine.scenario.errors import ScenarioError, sentence, show
from engine.scenario.scenario import Scenario

FIRST = "monday"  # what opens without a link
_STORIES = (
    "average-lies",
    "one-read",
    "wordy",
    "long-prompt",
    "fan-out",
    "say-no",
    "nine-minutes",
    "promise",
    "packing",
    "split-or-copy",
    "retry-storm",
)
_ORDER = (FIRST, *_STORIES)  # of the gallery; others follow by name


@dataclass(frozen=True, slots=True)
class Preset:
    """A scenario to begin with: `name` is its slug, `title` a few words, `story` what it shows."""

    name: str
    title: str
    story: str
    scenario: Scenario


@cache
def presets() -> tuple[Preset, ...]:
    """All presets, in the order of the gallery."""
    found = [_load(path) for path in sorted(Path(__file__).parent.glob("*.json"))]
    return tuple(sorted(found, key=lambda p: _ORDER.index(p.name) if p.name in _ORDER else len(_ORDER)))


def preset(name: str) -> Preset:
    """The preset of this name. Raises `ScenarioError` naming those that there are."""
    for entry in presets():
        if entry.name == name:
            return entry
    names = sentence([entry.name for entry in presets()], "and")
    raise ScenarioError.of("preset", show(name), "is not a preset", f"there are {names}")


def _load(path: Path) -> Preset:
    content = jsontext.read(path)
    return Preset(content["name"], content["title"], content["story"], Scenario.from_dict(content["scenario"]))
