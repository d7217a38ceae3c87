"""Presets are valid, named by their files, and say only what differs from the defaults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import engine.scenario
from engine.scenario import Preset, Scenario, ScenarioError, preset, presets
from engine.scenario.difference import difference

FILES = sorted((Path(engine.scenario.__file__).parent / "presets").glob("*.json"))


def test_the_gallery_begins_with_monday() -> None:
    names = [entry.name for entry in presets()]
    assert names[:2] == ["monday", "average-lies"]
    assert sorted(names) == [file.stem for file in FILES]


@pytest.mark.parametrize("entry", presets(), ids=lambda entry: entry.name)
def test_every_preset_has_a_story(entry: Preset) -> None:
    assert preset(entry.name) is entry
    assert 0 < len(entry.title) <= 60
    assert entry.story.endswith(".")
    assert entry.scenario.name == entry.title


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_says_what_is_particular(file: Path) -> None:
    content = json.loads(file.read_text())
    assert set(content) == {"name", "title", "story", "scenario"}
    assert content["name"] == file.stem
    own = Scenario.from_dict(content["scenario"]).to_dict()
    assert content["scenario"].keys() == difference(Scenario().to_dict(), own).keys(), (
        "nothing that is the default anyway"
    )


def test_unknown_names() -> None:
    with pytest.raises(ScenarioError) as raised:
        preset("tuesday")
    names = (
        "monday, average-lies, one-read, wordy, long-prompt, fan-out, say-no, nine-minutes, promise, packing, "
        "split-or-copy and retry-storm"
    )
    assert str(raised.value) == f'preset: "tuesday" is not a preset; there are {names}'
