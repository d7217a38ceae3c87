"""What is kept of a document that is broken or cut short."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scenario import Scenario
from engine.scenario.difference import difference, merge
from engine.scenario.jsontext import canonical
from engine.scenario.salvage import complete_json, nearest_valid
from tests.scenario.strategies import scenarios


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a":1,"b":2', {"a": 1}),
        ('{"a":1,"b":2}', {"a": 1, "b": 2}),
        ('{"a":{"b":1,"c":"}","d":2', {"a": {"b": 1, "c": "}"}}),
        ('{"a":"x\\",\\"y","b":', {"a": 'x","y'}),
        ('{"a":[1,2],"b":[3,', {"a": [1, 2]}),
        ('{"a":[{"b":1},{"c":', {}),
        ('{"a":{"b":{"c":1},', {"a": {"b": {"c": 1}}}),
        ('{"a', {}),
        ("", {}),
        ("[1,2]", {}),
        ("}}", {}),
        ('{"a":}, {', {}),
    ],
)
def test_complete_json(text: str, said: dict[str, Any]) -> None:
    assert complete_json(text) == said


@settings(max_examples=60, deadline=None)
@given(scenarios(), st.floats(0, 1))
def test_what_is_cut_short_says_nothing_new(scenario: Scenario, share: float) -> None:
    whole = difference(Scenario().to_dict(), scenario.to_dict())
    text = canonical(whole)
    assert is_part(complete_json(text[: int(share * len(text))]), whole)


def is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    return bool(part == whole)


@settings(max_examples=100, deadline=None)
@given(scenarios(), scenarios())
def test_difference_and_merge(base: Scenario, scenario: Scenario) -> None:
    carried = difference(base.to_dict(), scenario.to_dict())
    assert merge(base.to_dict(), carried) == scenario.to_dict()
    assert (carried == {}) == (base == scenario)


def test_what_is_accepted_stays() -> None:
    document = Scenario().to_dict()
    document["traffic"]["cv"] = 500
    document["traffic"]["shape"] = {"kind": "spike", "at_s": 10, "factor": -1, "colour": "red"}
    document["slo"] = [{"name": "a", "target": 2}, {"name": "a"}]
    document["extra"] = 1
    found = nearest_valid(document, Scenario())
    assert found.scenario.traffic.cv == 20
    assert found.scenario.traffic.shape.model_dump()["at_s"] == 10
    assert found.scenario.traffic.shape.model_dump()["factor"] == 0
    assert found.scenario.slo == Scenario().slo, "two promises of one name: as they usually are"
    assert "traffic.cv: 500 is above 20; 20 instead" in found.dropped
    assert "extra: unknown key; known here: " in " ".join(found.dropped)


def test_a_valid_document_is_kept_whole() -> None:
    scenario = Scenario().replace({"fleet.replicas": 3})
    found = nearest_valid(scenario.to_dict(), Scenario())
    assert (found.scenario, found.kept, found.dropped) == (scenario, ("fleet.replicas: 3",), ())
