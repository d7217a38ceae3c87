"""Every field is described and bounded; the defaults are those that the document's specification shows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from engine.scenario import ParamInfo, Scenario, ScenarioError, describe, parameters
from engine.scenario.paths import with_changes
from engine.scenario.reference import reference_markdown

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = [info for info in parameters() if info.form in ("integer", "number")]


def named(info: ParamInfo) -> str:
    return f"{info.path} {info.kind}".strip()


def with_value(info: ParamInfo, value: Any) -> dict[str, Any]:
    """A complete document in which the field has this value; objects of the right kind are made around it."""
    path = info.path.replace("N", "0")
    made: dict[str, Any] = {}
    if info.kind:
        parents = [path[:at] for at, char in enumerate(path) if char == "."]
        made[next(parent for parent in reversed(parents) if is_union(parent))] = {
            "dist" if "_tokens." in path else "kind": info.kind
        }
    if path.startswith(("traffic.shape.points", "autoscaler.schedule.steps")) and path[-1] in "01":
        holder, column = path[: path.index(".0")], int(path[-1])
        return with_changes(Scenario().to_dict(), made | {holder: [[0, value] if column else [value, 0]]})
    return with_changes(Scenario().to_dict(), made | {path: value})


def is_union(path: str) -> bool:
    for key in ("kind", "dist"):
        try:
            describe(f"{path}.{key}")
        except ScenarioError:
            continue
        return True
    return False


def said_of(info: ParamInfo, value: Any) -> list[str]:
    """What is said about the field itself when it has this value."""
    try:
        Scenario.from_dict(with_value(info, value))
    except ScenarioError as error:
        return [problem.reason for problem in error.problems if problem.field == info.path.replace("N", "0")]
    return []


def test_the_defaults_are_those_of_the_specification() -> None:
    shown = json.loads((ROOT / "tests/truth/scenario_defaults.json").read_text())
    assert Scenario.from_dict({}).to_dict() == shown
    assert list(Scenario().to_dict()) == list(shown), "in the same order"


@pytest.mark.parametrize("info", parameters(), ids=named)
def test_every_field_is_described(info: ParamInfo) -> None:
    assert info.label[0].isupper()
    assert not info.label.endswith(".")
    assert info.help.endswith((".", "!"))
    assert info.help[0].isupper()
    assert info.why
    assert not info.why.endswith(".")
    if info.form in ("integer", "number"):
        assert info.unit
        assert info.low is not None
        assert info.high is not None
        assert info.low <= info.high
        assert math.isfinite(info.high)
    if info.form in ("choice", "choices"):
        assert len(info.choices) > 1
        assert all(choice.word for choice in info.choices)
    if info.form == "text":
        assert info.longest
    if info.usual:
        assert info.low <= info.usual[0] < info.usual[1] <= info.high


@pytest.mark.parametrize("info", [n for n in NUMBERS if not n.path.endswith((".N", ".N.0", ".N.1"))], ids=named)
def test_every_number_has_a_way_to_step(info: ParamInfo) -> None:
    if info.path != "schema":
        assert info.log or info.step
    if info.log:
        assert (info.usual or (info.low,))[0] > 0 or info.path.startswith("performance"), "a log scale has no zero"


@pytest.mark.parametrize("info", [n for n in NUMBERS if n.path != "schema"], ids=named)
def test_bounds_hold_and_are_told(info: ParamInfo) -> None:
    step_down = 1 if info.form == "integer" else max(1.0, abs(info.low))
    step_up = 1 if info.form == "integer" else max(1.0, info.high * 0.01)
    below, above = f"is below {short(info.low)}", f"is above {short(info.high)}"
    assert not {below, above} & {*said_of(info, info.low), *said_of(info, info.high)}
    assert said_of(info, info.low - step_down) == [below]
    assert said_of(info, info.high + step_up) == [above]


def short(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:.9f}".rstrip("0").rstrip(".")


@pytest.mark.parametrize("info", [n for n in NUMBERS if n.path != "schema"], ids=named)
def test_numbers_take_only_numbers(info: ParamInfo) -> None:
    kind, finite = ("a whole number",) * 2 if info.form == "integer" else ("a number", "a finite number")
    for value in (True, "1", [1], {}):
        assert said_of(info, value) == [f"is not {kind}"]
    for value in (float("nan"), float("inf")):
        assert said_of(info, value) == [f"is not {finite}"]


@pytest.mark.parametrize("info", [i for i in parameters() if i.form == "choice"], ids=named)
def test_choices_take_only_their_values(info: ParamInfo) -> None:
    path = info.path.replace("N", "0")
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_dict(with_value(info, "qqq"))
    mine = [str(problem) for problem in raised.value.problems if problem.field == path]
    assert mine == [f'{path}: "qqq" is not one of the choices; give {info.accepted}']


def test_descriptions_by_path() -> None:
    seats = describe("batching.max_num_seqs")
    assert (seats.flag, seats.low, seats.high, seats.default) == ("--max-num-seqs", 1, 65_536, 256)
    assert seats.headings == ("Batching",)
    mean = describe("traffic.classes.3.prompt_tokens.mean")
    assert mean.path == "traffic.classes.3.prompt_tokens.mean"
    assert mean.default == 1155
    assert describe("traffic.classes.0.output_tokens.mean", "geometric").default == 211
    assert describe("traffic.classes.0.output_tokens.mean", "geometric").kind == "geometric"
    assert [c.value for c in describe("traffic.shape.kind").choices] == ["steady", "ramp", "steps", "spike", "diurnal"]
    assert describe("traffic.shape.points.4.1").unit == "times the rate"
    assert describe("performance.overrides.eta_c").form == "table"
    assert describe("traffic").label == "Traffic"
    with pytest.raises(ScenarioError, match=r"^traffic.ratee_rps: unknown key; did you mean traffic.rate_rps\?$"):
        describe("traffic.ratee_rps")


def test_the_reference_page_is_up_to_date() -> None:
    page = (ROOT / "docs/scenario-fields.md").read_text()
    assert page == reference_markdown(), "run: python -m engine.scenario.reference > docs/scenario-fields.md"
    for info in parameters():
        assert f"`{info.path}`" in page
