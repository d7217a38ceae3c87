"""The parts of the first promise as controls, in plain words. No Streamlit here."""

from __future__ import annotations

from itertools import combinations

from engine.scenario import Scenario, describe
from ui.control import Control, help_of
from ui.words import METRICS, listed

METRIC = "slo.0.metric"
THRESHOLD = "slo.0.threshold_s"
TARGET = "target_percent"
PLACE = "slo.0.measured_at"
FAILURES = "slo.0.failures"
WINDOW = "slo.0.window_s"
KIND = "slo.0.window"
NETWORK = "traffic.client.network_rtt_s"

PLACES = {"server": "at the server", "gateway": "at the gateway", "client": "at the client"}
KINDS = {"rolling": "rolling", "calendar": "calendar"}
STATES = {"rejected": "refused", "timed_out": "gave up", "unfinished": "unfinished"}
"""Ends that can count as broken, in the scenario's order."""


def terms(base: Scenario) -> dict[str, Control]:
    """The controls by key; none without a promise."""
    if not base.slo:
        return {}
    o = base.slo[0]
    found = [
        _choice(METRIC, o.metric, {key: f"{word} ({term})" for key, (word, term) in METRICS.items()}),
        _choice(PLACE, o.measured_at, PLACES),
        _failures(base),
        _box(WINDOW, o.window_s, 60.0),
        _choice(KIND, o.window, KINDS),
        _box(NETWORK, base.traffic.client.network_rtt_s, 0.05),
    ]
    return {control.key: control for control in found}


def _choice(path: str, value: str, words: dict[str, str]) -> Control:
    info = describe(path)
    choices = {c.value: words[c.value] for c in info.choices}
    return Control(path, "choice", info.label, info.help, value, lambda new: {path: new}, choices=choices)


def _box(path: str, value: float, step: float) -> Control:
    info = describe(path)
    return Control(
        path, "box", info.label, help_of(info), float(value), lambda new: {path: new},
        low=info.low, high=info.high, step=step,
    )  # fmt: skip


def _failures(base: Scenario) -> Control:
    """Every set of ends as one entry of a list, so that undo, links and twins treat it like any other."""
    info = describe(FAILURES)
    sets = [chosen for size in range(len(STATES), -1, -1) for chosen in combinations(STATES, size)]
    value = tuple(state for state in STATES if state in base.slo[0].failures)
    return Control(
        FAILURES, "choice", info.label, info.help, "+".join(value),
        lambda new: {FAILURES: [state for state in new.split("+") if state]},
        choices={"+".join(chosen): failures_word(chosen) for chosen in sets},
    )  # fmt: skip


def failures_word(chosen: tuple[str, ...]) -> str:
    """What a set of ends is called."""
    if set(chosen) == set(STATES):
        return "whoever gets no answer"
    return listed([STATES[state] for state in STATES if state in chosen], "or") or "nobody: answers only"
