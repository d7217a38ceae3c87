"""Uploaded traces: kept by digest, turned into a scenario, missed in words."""

from __future__ import annotations

import pytest

from engine.scenario import Scenario
from engine.traffic import TraceError
from ui import traces
from ui.traces import Traces

HEAD = "arrival_s,prompt_tokens,output_tokens\n"
DATA = (HEAD + "".join(f"{10 * i},100,10\n" for i in range(100))).encode()


def test_a_trace_is_found_by_its_digest() -> None:
    store = Traces()
    kept = store.put(DATA, "mine.csv")
    assert store.get(f"sha256:{kept.trace.sha256}") is kept
    assert store.get(f"sha256:{'0' * 64}") is None
    assert store.get(None) is None


def test_the_longest_unused_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_MOST_ROWS", 150)
    store = Traces()
    first = store.put(DATA, "a")
    second = store.put(DATA + b"1000,1,1\n", "b")
    assert store.get(first.trace.sha256) is None
    assert store.get(second.trace.sha256) is second


def test_a_damaged_upload_names_the_line_and_isn_t_kept() -> None:
    store = Traces()
    with pytest.raises(TraceError, match="line 3"):
        store.put((HEAD + "1,2,3\n2,x,3\n").encode(), "bad.csv")
    assert store.get("") is None


def test_replaying_resets_what_a_trace_brings_itself() -> None:
    trace = Traces().put(DATA, "mine.csv").trace
    busy = Scenario.from_dict({"traffic": {"rate_rps": 9.0, "process": "gamma", "shape": {"kind": "spike"}}})
    found = traces.replaying(busy, trace)
    assert found.traffic.process == "trace"
    assert found.traffic.trace.source == f"sha256:{trace.sha256}"
    assert found.traffic.rate_rps == Scenario().traffic.rate_rps
    assert found.traffic.shape.kind == "steady"
    assert found.run.horizon_s is None
    assert (found.run.seeds, found.run.warmup_s) == (1, 60.0)
    assert Scenario.from_link(found.to_link()) == found


def test_a_short_trace_has_no_warm_up() -> None:
    trace = Traces().put((HEAD + "0,5,5\n30,5,5\n").encode(), "short.csv").trace
    assert traces.replaying(Scenario(), trace).run.warmup_s == 0.0


def test_a_trace_that_isn_t_here_is_said_and_can_be_left_out() -> None:
    source = f"sha256:{'0' * 64}"
    replay = Scenario.from_dict(
        {"traffic": {"process": "trace", "trace": {"source": source}}, "run": {"horizon_s": None, "warmup_s": 500.0}}
    )
    problem = traces.missing(replay)
    assert problem is not None
    assert "doesn't have" in problem.reason
    nearest = traces.without(replay)
    assert nearest.traffic.process == "poisson"
    assert nearest.traffic.trace.source is None
    assert nearest.run.horizon_s == 900.0
    assert traces.missing(nearest) is None


def test_a_path_from_elsewhere_is_never_opened() -> None:
    replay = Scenario.from_dict(
        {"traffic": {"process": "trace", "trace": {"source": "/etc/passwd"}}, "run": {"horizon_s": None}}
    )
    problem = traces.missing(replay)
    assert problem is not None
    assert "can't be opened from here" in problem.reason
