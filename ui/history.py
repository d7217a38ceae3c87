"""Undo and redo: the scenarios that a session has been through. No Streamlit here."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.scenario import Scenario

_MOST = 100


@dataclass(frozen=True, slots=True)
class Visit:
    """A scenario, and the preset that it counts as a change of."""

    scenario: Scenario
    preset: str | None


@dataclass
class History:
    """A line of visits with a present one. Something new after some undoing takes the place of what was undone."""

    past: list[Visit] = field(default_factory=list)
    present: Visit | None = None
    future: list[Visit] = field(default_factory=list)

    @property
    def can_undo(self) -> bool:
        """Whether there is anything before."""
        return bool(self.past)

    @property
    def can_redo(self) -> bool:
        """Whether something was undone."""
        return bool(self.future)

    def visit(self, scenario: Scenario, preset: str | None) -> None:
        """This is what is shown now; the same scenario again is no news."""
        if self.present is not None:
            if self.present.scenario.token == scenario.token:
                return
            self.past = [*self.past, self.present][-_MOST:]
        self.present, self.future = Visit(scenario, preset), []

    def undo(self) -> Visit | None:
        """Step back; None at the beginning."""
        return self._step(self.past, self.future)

    def redo(self) -> Visit | None:
        """Take an undo back; None when there is none."""
        return self._step(self.future, self.past)

    def _step(self, source: list[Visit], target: list[Visit]) -> Visit | None:
        if not source or self.present is None:
            return None
        target.append(self.present)
        self.present = source.pop()
        return self.present
