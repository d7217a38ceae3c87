"""Uploaded traces, kept on the server by the digest of their bytes: a link carries the digest, not the trace."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import streamlit as st

from engine.scenario import Problem, Scenario, ScenarioError
from engine.scenario.schema.traffic import DEFAULT_RATE_RPS
from engine.traffic import Trace, read_trace

_PREFIX = "sha256:"
_MOST_ROWS = 5_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A trace, and what its file was called."""

    trace: Trace
    name: str


class Traces:
    """The traces that were uploaded lately; the longest unused go first when there are too many rows."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, data: bytes, name: str) -> Kept:
        """Read an uploaded file and keep it. Raises `TraceError` naming the line at fault."""
        kept = Kept(read_trace(data), name)
        with self._lock:
            self._kept[kept.trace.sha256] = kept
            while len(self._kept) > 1 and sum(len(other.trace) for other in self._kept.values()) > _MOST_ROWS:
                self._kept.popitem(last=False)
        return kept

    def get(self, source: str | None) -> Kept | None:
        """The trace of a scenario's `traffic.trace.source`, if it is here."""
        with self._lock:
            digest = (source or "").removeprefix(_PREFIX)
            if digest in self._kept:
                self._kept.move_to_end(digest)
            return self._kept.get(digest)


@st.cache_resource(show_spinner=False)
def shared() -> Traces:
    """The one store of the server."""
    return Traces()


def replaying(scenario: Scenario, trace: Trace) -> Scenario:
    """The scenario with its traffic replaced by an uploaded trace, once, from its first row to its last answer."""
    last_s = float(trace.arrival_s[-1])
    return scenario.replace(
        {
            "traffic.process": "trace",
            "traffic.trace.source": f"{_PREFIX}{trace.sha256}",
            "traffic.trace.format": "auto",
            "traffic.rate_rps": DEFAULT_RATE_RPS,
            "traffic.shape": {"kind": "steady"},
            "traffic.growth": None,
            "traffic.client.fan_out": 1,
            "run.horizon_s": None,
            "run.warmup_s": scenario.run.warmup_s if scenario.run.warmup_s <= last_s / 4 else 0.0,
            "run.seeds": 1,
        }
    )


def missing(scenario: Scenario) -> Problem | None:
    """What to say when a scenario's trace isn't here; None when it is, or needs none."""
    source = scenario.traffic.trace.source
    if scenario.traffic.process != "trace" or shared().get(source) is not None:
        return None
    if source is None:
        return Problem("traffic.trace.source", "null", "names no trace to replay", "upload one")
    if source.startswith(_PREFIX):
        shown = f'"{source[:15]}…"'
        reason = "is an uploaded trace that this server doesn't have, or no longer has"
        return Problem("traffic.trace.source", shown, reason, "upload the file again, and the link works as before")
    reason = "is a file on the machine where the link was made, and can't be opened from here"
    return Problem("traffic.trace.source", f'"{source}"', reason, "upload the file")


def without(scenario: Scenario) -> Scenario:
    """The nearest scenario that needs no trace: independent arrivals at the default rate."""
    changes = {"traffic.process": "poisson", "traffic.trace.source": None}
    if scenario.run.horizon_s is None:
        horizon = Scenario().run.horizon_s or 0.0
        changes |= {"run.horizon_s": horizon, "run.warmup_s": min(scenario.run.warmup_s, horizon / 4)}
    try:
        return scenario.replace(changes)
    except ScenarioError:
        return Scenario()
