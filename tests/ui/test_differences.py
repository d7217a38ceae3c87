"""What was changed, for settings with and without a control."""

from __future__ import annotations

from typing import Any

import pytest

from engine.scenario import preset
from ui.differences import comparison, differences

MONDAY = preset("monday").scenario


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"fleet.replicas": 5}, "replicas 5"),
        ({"slo.0.target": 0.999}, "for this share 99.9\u00a0%"),
        ({"model.weight_dtype": "fp8"}, "weights fp8"),
        ({"admission.max_outstanding": 30}, "most requests per replica 30"),
        ({"traffic.client.on_timeout": "ignore"}, "when a caller gives up ignore"),
        ({"traffic.growth": {"prompt_factor": 4}}, "growth of lengths set"),
        ({"traffic.shape": {"kind": "steady"}}, "shape over time steady"),
        ({"run.seed": 7}, "first seed 7"),
    ],
)
def test_every_change_has_a_line(changes: dict[str, Any], line: str) -> None:
    found = differences(MONDAY, MONDAY.replace(changes))
    assert len(found) == 1
    assert found[0].split()[-1] == line.split()[-1]
    assert found[0][:1].islower() or found[0][:2].isupper()


def test_a_setting_switched_off_says_what_that_means() -> None:
    limited = MONDAY.replace({"admission.max_outstanding": 30, "traffic.growth": {"prompt_factor": 4}})
    lines = differences(limited, MONDAY)
    assert any("no limit" in line for line in lines)
    assert len(lines) == 2


def test_a_name_is_no_change() -> None:
    assert differences(MONDAY, MONDAY.replace({"name": "mine"})) == []


def test_a_comparison_has_both_values() -> None:
    after = MONDAY.replace({"fleet.replicas": 5, "admission.queue_timeout_s": 2.5})
    assert comparison(MONDAY, after)[0] == "replicas 5 instead of 4"
    assert comparison(MONDAY, after)[1].endswith("2.5 instead of no limit")
    assert comparison(MONDAY, MONDAY) == []
