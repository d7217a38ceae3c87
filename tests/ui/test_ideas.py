"""Suggestions in words."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from engine.study import Suggestion
from engine.study.candidates import Kind
from ui import ideas
from ui.words import NBSP


def suggestion(**changes: Any) -> Suggestion:
    told = {
        "kind": "replicas", "changes": {"fleet.replicas": 5}, "before": 4, "after": 5, "attainment_before": 0.91,
        "attainment_after": 0.982, "cost_before": 8.0, "cost_after": 10.0, "runs": 16, "horizon_s": 900.0,
    }  # fmt: skip
    return Suggestion(**(told | changes))


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_has_a_button_that_is_a_verb(kind: Any) -> None:
    text = ideas.button(suggestion(kind=kind, after="fp8" if kind == "weights" else 0.75 if kind == "answers" else 3))
    assert text.split()[0] in {"Add", "Remove", "Shorten", "Refuse", "Drop", "Limit", "Store", "Send", "Let", "Promise"}


def test_the_effect_is_promise_and_bill() -> None:
    def said(**changes: Any) -> str:
        return ideas.effect(suggestion(**changes)).replace(NBSP, " ")

    assert said() == "Kept for **98.2 %** instead of 91 %, for \\$2 an hour more."
    assert said(cost_after=6.0).endswith("for \\$2 an hour less.")
    assert said(cost_after=8.0).endswith("at the same cost.")
    assert said(cost_before=None, cost_after=None) == "Kept for **98.2 %** instead of 91 %."
    assert said(attainment_after=0.91, cost_after=8.0) == "Kept for **91 %**, as now, at the same cost."


def test_where_it_comes_from() -> None:
    assert "16\u00a0runs of 15\u00a0min" in ideas.source([suggestion()])
    assert "No single change" in ideas.source([])
