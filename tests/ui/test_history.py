"""Undo and redo as a line of scenarios."""

from __future__ import annotations

from engine.scenario import Scenario
from ui.history import _MOST, History, Visit

A, B, C = (Scenario.from_dict({"traffic": {"rate_rps": rate}}) for rate in (1.0, 2.0, 3.0))


def through(*visits: Scenario) -> History:
    history = History()
    for scenario in visits:
        history.visit(scenario, None)
    return history


def test_nothing_to_undo_at_the_beginning() -> None:
    for history in (History(), through(A)):
        assert not history.can_undo
        assert not history.can_redo
        assert history.undo() is None
        assert history.redo() is None


def test_back_and_forth() -> None:
    history = through(A, B, C)
    assert history.undo() == Visit(B, None)
    assert history.undo() == Visit(A, None)
    assert history.undo() is None
    assert history.redo() == Visit(B, None)
    assert history.redo() == Visit(C, None)
    assert not history.can_redo


def test_what_is_shown_again_is_no_news() -> None:
    history = through(A, B, B)
    history.undo()
    history.visit(A, None)
    assert history.can_redo
    assert not history.can_undo


def test_something_new_ends_what_was_undone() -> None:
    history = through(A, B)
    history.undo()
    history.visit(C, "monday")
    assert not history.can_redo
    assert history.undo() == Visit(A, None)
    assert history.redo() == Visit(C, "monday")


def test_only_so_many_are_kept() -> None:
    history = through(*(A, B) * _MOST)
    assert len(history.past) == _MOST
