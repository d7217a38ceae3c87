"""Ways into and out of a scenario: objects, JSON, changes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from engine.scenario import (
    Batching,
    Fleet,
    Lognormal,
    Problem,
    Scenario,
    ScenarioError,
    Spike,
    Steady,
    changes,
    parse_set,
)
from tests.scenario.strategies import documents, scenarios


def refused(document: Any) -> str:
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_json(document)
    return str(raised.value)


@settings(max_examples=100, deadline=None)
@given(scenarios())
def test_round_trips(scenario: Scenario) -> None:
    again = Scenario.from_dict(scenario.to_dict())
    assert again == scenario
    assert again.token == scenario.token
    assert hash(again) == hash(scenario)
    assert Scenario.from_json(json.dumps(scenario.to_dict())) == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario


@settings(max_examples=100, deadline=None)
@given(scenarios(), scenarios())
def test_the_changes_between_two_scenarios_make_the_second_of_the_first(a: Scenario, b: Scenario) -> None:
    assert a.replace(changes(a.to_dict(), b.to_dict())) == b
    assert (a.token == b.token) == (a == b)


@settings(max_examples=100, deadline=None)
@given(documents())
def test_whatever_is_within_bounds_is_accepted_or_refused_in_words(document: dict[str, Any]) -> None:
    try:
        Scenario.from_dict(document)
        problems: tuple[Problem, ...] = ()
    except ScenarioError as error:
        problems = error.problems
    assert all(problem.field and problem.reason and problem.remedy for problem in problems)


def test_scenarios_cannot_be_changed() -> None:
    scenario = Scenario()
    with pytest.raises(ValidationError):
        scenario.fleet.replicas = 3  # type: ignore[misc]
    table = Scenario.from_dict({"model": {"custom": {"layers": 80}}}).model.custom
    with pytest.raises(TypeError):
        table["layers"] = 81  # type: ignore[index]


def test_parts_can_be_made_by_themselves_and_keep_their_rules() -> None:
    assert Scenario.from_dict({"traffic": {"shape": Spike(factor=7)}, "fleet": Fleet(replicas=3)}).fleet.replicas == 3
    with pytest.raises(ValidationError, match="max_num_batched_tokens: 8 is below max_num_seqs"):
        Batching(max_num_batched_tokens=8)


def test_attributes_are_named_like_the_keys() -> None:
    scenario = Scenario.from_dict({"traffic": {"shape": {"kind": "spike", "factor": 5}}, "slo": [{"target": 0.9}]})
    assert isinstance(scenario.traffic.shape, Spike)
    assert scenario.traffic.shape.factor == 5.0
    assert isinstance(Scenario().traffic.shape, Steady)
    assert isinstance(scenario.traffic.classes[0].output_tokens, Lognormal)
    assert scenario.slo[0].target == 0.9
    assert scenario.slo[0].threshold_s == 2.0
    assert scenario.performance.kind == "analytic"


def test_items_of_lists_take_defaults_key_by_key() -> None:
    document = {"traffic": {"classes": [{"name": "a", "prompt_tokens": {"mean": 9}}, {"name": "b", "weight": 2}]}}
    first, second = Scenario.from_dict(document).to_dict()["traffic"]["classes"]
    assert first["prompt_tokens"] == {"dist": "lognormal", "mean": 9.0, "cv": 1.0, "min": 1, "max": None}
    assert first["output_tokens"]["max"] == 8192, "the default class's own figures"
    assert second["prompt_tokens"]["max"] == 32_768


def test_other_distributions_have_the_mean_of_the_default_class() -> None:
    for dist, key in (("geometric", "mean"), ("constant", "value"), ("lognormal", "mean")):
        document = {"traffic": {"classes": [{"prompt_tokens": {"dist": dist}, "output_tokens": {"dist": dist}}]}}
        (only,) = Scenario.from_dict(document).traffic.classes
        assert (getattr(only.prompt_tokens, key), getattr(only.output_tokens, key)) == (1155, 211)


def test_numpy_values_are_numbers() -> None:
    document = {"fleet": {"replicas": np.int64(3)}, "traffic": {"rate_rps": np.float32(0.5), "cv": np.float64(2)}}
    scenario = Scenario.from_dict(document)
    assert (scenario.fleet.replicas, scenario.traffic.rate_rps, scenario.traffic.cv) == (3, 0.5, 2.0)
    lengths = {"dist": "empirical", "values": np.array([1, 2]), "weights": np.array([0.5, 0.5])}
    assert scenario.replace({"traffic.classes.0.prompt_tokens": lengths}).traffic.classes[0].prompt_tokens.values == (
        1,
        2,
    )
    assert refused_dict({"run": {"seeds": np.bool_(True)}}) == (
        "run.seeds: true is not a whole number; give a whole number from 1 to 1,024"
    )


def refused_dict(document: Any) -> str:
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_dict(document)
    return str(raised.value)


def test_the_token_tells_scenarios_apart_and_nothing_else() -> None:
    assert Scenario().token == Scenario.from_dict({"traffic": {"rate_rps": 4}}).token
    assert Scenario().token == Scenario.from_dict({"batching": {"watermark": -0.0}}).token
    assert Scenario().token != Scenario.from_dict({"traffic": {"rate_rps": 4.000001}}).token


# JSON


def test_json_text_and_file(tmp_path: Path) -> None:
    text = '  {"fleet": {"replicas": 3}}'
    file = tmp_path / "a.json"
    file.write_text("\ufeff" + text, encoding="utf-8")
    assert Scenario.from_json(text) == Scenario.from_json(file) == Scenario.from_json(str(file))
    assert Scenario.from_json(text).fleet.replicas == 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"fleet":\n {"replicas": }}', "not JSON at line 2, column 15: expecting value; check quotes and commas"),
        ('{"run": {}, "run": {}}', '"run" is given twice in one object; keep one of the two'),
        ('{"fleet": {"replicas": 1, "replicas": 2}}', '"replicas" is given twice in one object; keep one of the two'),
        ('{"traffic": {"cv": NaN}}', "NaN is not JSON; give a finite number, or null"),
        ('{"traffic": {"cv": -Infinity}}', "-Infinity is not JSON; give a finite number, or null"),
        ('{"traffic": {"cv": 1e999}}', "traffic.cv: Infinity is not a finite number; give a number from 0.01 to 20"),
        ('{"name": ' + "9" * 5000 + "}", "a number has too many digits; give fewer digits"),
        ('{"name": ' + "[" * 100_000, "nested too deeply; a scenario has few levels"),
        ('{"name": "\\ud800"}', "name: is not Unicode text; give one line of printable text"),
        ("{" + " " * 4_000_000 + "}", "4,000,002 characters are more than 4,000,000; shorten the scenario"),
    ],
    ids=["comma", "twice", "twice inside", "nan", "infinity", "overflow", "digits", "depth", "surrogate", "size"],
)
def test_json_that_cannot_be_read(text: str, line: str) -> None:
    assert refused(text) == line


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing, binary, huge, wrong = (tmp_path / name for name in ("missing", "binary", "huge", "wrong"))
    binary.write_bytes(b"\xff\xfe{}")
    huge.write_bytes(b" " * 4_000_001)
    wrong.write_text("[1]")
    assert refused(missing) == f"{missing} can't be read: no such file or directory; give a scenario file"
    assert refused(binary) == f"{binary} is not UTF-8 text; save the scenario as UTF-8"
    assert refused(huge) == f"{huge} is larger than 4,000,000 bytes; a scenario is a short file"
    assert refused(tmp_path).startswith(f"{tmp_path} can't be read: is a directory; ")
    assert refused(wrong) == "[1] is not an object; give a scenario: {...}"
    wrong.write_text('{"run": }')
    assert refused(wrong).startswith(f"{wrong}: not JSON at line 1, column 9: expecting value; ")
    assert refused("no\0name").startswith("no\0name can't be read: ")


# changes by path


def test_replace() -> None:
    scenario = Scenario().replace({"traffic.rate_rps": 8, "slo.0.target": 0.99, "performance.overrides.eta_c": 0.5})
    assert scenario.traffic.rate_rps == 8.0
    assert scenario.slo[0].target == 0.99
    assert scenario.to_dict()["performance"]["overrides"] == {"eta_c": 0.5}
    assert Scenario().traffic.rate_rps == 4.0


def test_replace_changes_kinds_and_keeps_what_the_new_kind_has() -> None:
    path = "traffic.classes.0.prompt_tokens"
    length = Scenario().replace({f"{path}.dist": "constant", f"{path}.value": 77}).traffic.classes[0].prompt_tokens
    assert length.model_dump() == {"dist": "constant", "value": 77, "min": 1, "max": 32_768}
    spike = Scenario().replace({"traffic.shape.factor": 5, "traffic.shape.kind": "spike"}).traffic.shape
    assert isinstance(spike, Spike)
    assert spike.factor == 5
    assert Scenario().replace({"traffic.shape": Spike(factor=7)}).traffic.shape == Spike(factor=7)
    assert Scenario().replace({"traffic.shape": {"kind": "spike"}, "traffic.shape.factor": 7}).traffic.shape == Spike(
        factor=7
    )


def test_replace_adds_one_item_to_a_list() -> None:
    scenario = Scenario().replace({"slo.1.name": "whole answer", "slo.1.metric": "e2e"})
    assert [objective.name for objective in scenario.slo] == ["first word", "whole answer"]
    with pytest.raises(ScenarioError) as raised:
        Scenario().replace({"slo.2.name": "c"})
    assert str(raised.value) == "slo.2.name: 2 is not a number in the list: the list has 1 items; give 0 to 1"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("trafic.rate_rps", "trafic.rate_rps: unknown key; did you mean traffic.rate_rps?"),
        ("rate_rps", "rate_rps: unknown key; did you mean traffic.rate_rps?"),
        ("slo.0.treshold_s", "slo.0.treshold_s: unknown key; did you mean slo.0.threshold_s?"),
        ("traffic.rate_rps.x", "traffic.rate_rps.x: unknown key; did you mean traffic.rate_rps?"),
        ("", ": unknown key; see docs/scenario-fields.md"),
    ],
)
def test_paths_that_the_document_does_not_have(path: str, line: str) -> None:
    for change in (lambda: Scenario().replace({path: 1}), lambda: parse_set(f"{path}=1")):
        with pytest.raises(ScenarioError) as raised:
            change()
        assert str(raised.value).removeprefix(": ") == line.removeprefix(": ")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("traffic.rate_rps=8", "traffic.rate_rps", 8),
        (" run.horizon_s = 1e3", "run.horizon_s", 1000.0),
        ("traffic.process=gamma", "traffic.process", "gamma"),
        ('name="8"', "name", "8"),
        ("name=a=b", "name", "a=b"),
        ("name=", "name", ""),
        ("traffic.growth=null", "traffic.growth", None),
        ("fleet.routing.count_own_sends=false", "fleet.routing.count_own_sends", False),
        ("slo.0.failures=[]", "slo.0.failures", []),
        ('traffic.shape={"kind": "spike"}', "traffic.shape", {"kind": "spike"}),
        ("traffic.cv=NaN", "traffic.cv", "NaN"),
    ],
)
def test_parse_set(text: str, path: str, value: Any) -> None:
    assert parse_set(text) == (path, value)


def test_parse_set_without_a_value() -> None:
    with pytest.raises(ScenarioError, match=r"^traffic.rate_rps has no =; write it as traffic.rate_rps=8$"):
        parse_set("traffic.rate_rps")
