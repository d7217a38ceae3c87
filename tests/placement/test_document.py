"""Problems as JSON: defaults, remarks, and what is refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.placement import Chip, Item, Problem, place, read_problem
from engine.scenario import ScenarioError

ITEM = {"model": "7B", "gb_per_replica": 10}
CHIP = {"type": "24GB", "cap": 21.6, "cost": 1}


def read(**changes: Any) -> Problem:
    return read_problem(json.dumps({"items": [ITEM], "chips": [CHIP]} | changes).encode())


def test_defaults_and_remarks() -> None:
    assert read(id="P99", note="anything", min_cost=3) == Problem((Item("7B", 10.0),), (Chip("24GB", 21.6, 1.0),))
    chips = [CHIP | {"max": 3, "per_host": 2}]
    assert read(chips=chips, headroom=0.1, spread=True) == Problem(
        (Item("7B", 10.0),), (Chip("24GB", 21.6, 1.0, 3, 2),), 0.1, True
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"items": None}, "items: is missing; give a list of objects"),
        ({"items": {}}, "items: {} is not a list"),
        ({"items": [3]}, "items.0: 3 is not an object"),
        ({"items": [{"gb_per_replica": 1}]}, "items.0.model: is missing; give a name"),
        ({"items": [ITEM | {"gb_per_replica": 0}]}, "items.0.gb_per_replica: 0 is below 0.001; give a number from"),
        ({"items": [ITEM | {"gb_per_replica": 10**400}]}, "items.0.gb_per_replica: 1000000"),
        ({"items": [ITEM | {"gb_per_replica": "ten"}]}, 'items.0.gb_per_replica: "ten" is not a number'),
        ({"items": [ITEM | {"replicas": 1.5}]}, "items.0.replicas: 1.5 is not a whole number"),
        ({"items": [ITEM | {"replicas": -1}]}, "items.0.replicas: -1 is below 0"),
        ({"items": [ITEM | {"replicas": 200}] * 2}, "items: 400 replicas are too many; give at most 300 together"),
        ({"items": [ITEM | {"allowed_tp": []}]}, "items.0.allowed_tp: [] is no list of numbers of chips"),
        ({"items": [ITEM | {"allowed_tp": [0]}]}, "items.0.allowed_tp: [0] is no list"),
        ({"items": [ITEM | {"replica": 2}]}, "items.0.replica: is not a key; replicas may be meant"),
        ({"chips": [CHIP | {"cap": None}]}, "chips.0.cap: is missing; give a number from 0.001"),
        ({"chips": [CHIP | {"cost": -1}]}, "chips.0.cost: -1 is below 0"),
        ({"chips": [CHIP | {"max": True}]}, "chips.0.max: true is not a number"),
        ({"chips": [CHIP] * 51}, "chips: 51 entries are too many; give at most 50"),
        ({"headrom": 0.1}, "headrom: is not a key; headroom may be meant"),
        ({"headroom": 1.0}, "headroom: 1.0 is above 0.95"),
        ({"spread": 1}, "spread: 1 is neither true nor false"),
        ({"spread": True}, "chips.0.per_host: is missing; give the chips of one host, which spread needs"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read(**changes)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[]", "[] is not an object; give {...} with items, chips, headroom, spread"),
        (b'{"items": [', "not JSON at line 1, column 12"),
        (b'{"items": NaN}', "NaN is not JSON; give a finite number"),
        (b"\xff", "the problem is not UTF-8 text"),
        (b'{"items": ' + b"9" * 5000 + b"}", "a number has too many digits; give numbers up to 1e9"),
    ],
)
def test_what_is_not_json(data: bytes, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read_problem(data)
    assert str(error.value).startswith(said)


def test_the_answer_has_the_chips_and_what_is_on_them() -> None:
    items = [{"model": "b", "gb_per_replica": 20.0, "allowed_tp": [2]}, {"model": "a", "gb_per_replica": 10.0}]
    chips = [CHIP | {"max": 2}]
    problem = {"items": items, "chips": chips}
    assert (
        place(problem)
        == place(json.dumps(problem).encode())
        == {
            "feasible": True,
            "min_cost": 2.0,
            "lower_bound": 2.0,
            "proven_optimal": True,
            "chips_used": {"24GB": 2},
            "placement": [{"chip": "24GB", "items": ["a/tp1", "b/tp2"]}, {"chip": "24GB", "items": ["b/tp2"]}],
        }
    )
