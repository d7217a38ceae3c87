"""Answers to scenarios, kept for all sessions: a first one at once, the whole one from another process."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine.outcome.story import Story
from engine.scenario import Scenario, ScenarioError
from engine.study import Suggestion
from engine.traffic import Trace
from ui import work
from ui.jobs import Job, Jobs

MOST_REQUESTS = int(os.environ.get("HEADROOM_MAX_REQUESTS", "3000000"))
"""Above, a scenario is refused here: a server has other visitors."""
_INLINE = 100_000
"""Requests above which not even a first answer is computed in the server's own process."""
_ROUNDS_INLINE = 400
"""The same of rounds in which all replicas wait for each other: each takes half a millisecond."""
_KEPT = 200
_KEPT_ASIDES = 2000
"""Small ones, and a page may ask for twenty."""
_SIDE_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known about a scenario; `final` unless it is the first answer from the beginning of each run."""

    story: Story
    final: bool


@dataclass(frozen=True, slots=True)
class Aside:
    """What a piece of side work gave; `None` when it failed."""

    result: Any


class Runs:
    """A bounded store of answers. The same question from two sessions at once is computed once."""

    def __init__(self) -> None:
        self.jobs = Jobs()
        # On their own, so that nobody's answer waits for somebody else's suggestions.
        self._side_jobs = Jobs(workers=1, patience_s=_SIDE_PATIENCE_S)
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._asides: OrderedDict[str, Aside] = OrderedDict()
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()

    def known(self, scenario: Scenario) -> Answer | None:
        """The best answer so far, without computing anything."""
        with self._lock:
            answer = self._answers.get(scenario.token)
            if answer is not None:
                self._answers.move_to_end(scenario.token)
            return answer

    def first(self, scenario: Scenario, trace: Trace | None = None) -> Answer | None:
        """An answer within a fraction of a second: the best known, else from the beginning of each run.

        None when even that would take long. Raises `ScenarioError` (doesn't fit, too large for this server).
        """
        refuse_too_large(scenario, trace)
        answer = self.known(scenario)
        if answer is not None:
            return answer
        total = work.expected_requests(scenario, trace)
        beginning = scenario.run.seeds * scenario.replicas * work.REQUESTS_PER_LANE
        small = total <= beginning
        if min(total, beginning) > _INLINE or work.rounds(scenario) > _ROUNDS_INLINE:
            work.refuse_unfit(scenario)
            return None
        # One computation at a time: several at once take each other's turns at the interpreter and all get slow.
        with self._one_at_a_time:
            answer = self.known(scenario)
            if answer is None:
                found = (work.whole if small else work.beginning)(scenario, trace)
                answer = self.keep(scenario, Answer(found, final=small))
        return answer

    def whole(self, scenario: Scenario, trace: Trace | None = None) -> Answer | Job:
        """The whole answer, or the job that computes it: then ask again, or it is stopped."""
        known = self.known(scenario)
        if known is not None and known.final:
            return known
        job = self.jobs.ask(scenario.token, work.whole, scenario, trace)
        return self.keep(scenario, Answer(job.result, final=True)) if job.state == "done" else job

    def suggestions(self, scenario: Scenario, trace: Trace | None = None) -> tuple[Suggestion, ...] | None:
        """What would help; None while that is being worked out: then ask again, or it is stopped.

        Nothing when it can't be worked out: the answer itself says why.
        """
        found = self.aside(f"suggest {scenario.token}", work.suggestions, scenario, trace)
        return found if found is None else found.result or ()

    def known_suggestions(self, scenario: Scenario) -> tuple[Suggestion, ...] | None:
        """What would help, if it was worked out already."""
        found = self.known_aside(f"suggest {scenario.token}")
        return found if found is None else found.result or ()

    def aside(self, key: str, function: Callable[..., Any], *arguments: Any) -> Aside | None:
        """What a page shows beside its answer, from another process; None while that runs: ask again, or it stops."""
        known = self.known_aside(key)
        if known is not None:
            return known
        job = self._side_jobs.ask(key, function, *arguments)
        if job.state not in ("done", "failed"):
            return None
        found = Aside(job.result)
        with self._lock:
            self._asides[key] = found
            while len(self._asides) > _KEPT_ASIDES:
                self._asides.popitem(last=False)
        return found

    def known_aside(self, key: str) -> Aside | None:
        """The same, if it was worked out already."""
        with self._lock:
            return self._asides.get(key)

    def keep(self, scenario: Scenario, answer: Answer) -> Answer:
        """Remember an answer, a final one for good."""
        with self._lock:
            known = self._answers.get(scenario.token)
            if known is None or not known.final:
                self._answers[scenario.token] = answer
            self._answers.move_to_end(scenario.token)
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
            return self._answers[scenario.token]


def refuse_too_large(scenario: Scenario, trace: Trace | None = None) -> None:
    """Raise `ScenarioError` for a run that is larger than this server takes."""
    total = work.expected_requests(scenario, trace)
    if total > MOST_REQUESTS:
        raise ScenarioError.of(
            "run",
            f"{total:,.0f}",
            f"requests are expected, and this server simulates at most {MOST_REQUESTS:,} a run",
            "lower the requests per second, the simulated time or the repetitions, or use the command line",
        )


@st.cache_resource(show_spinner=False)
def shared() -> Runs:
    """The one store of the server."""
    return Runs()
