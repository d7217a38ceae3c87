"""A trace under a scenario: what the trace says wins, what it doesn't comes from the first class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.scenario import Run
from engine.traffic import Requests, Trace, TraceError, generate, replay
from tests.traffic.build import request_class, run, trace_of, traffic

FULL = "arrival_s,prompt_tokens,output_tokens,cached_prefix_tokens,priority,class"
CLASSES = [
    request_class("chat", priority=2, cached_prefix_tokens=64),
    request_class("batch", priority=9, cached_prefix_tokens=0),
]


def replayed(trace: Trace, horizon_s: float | None = None, seed: int = 1, **settings: Any) -> Requests:
    return generate(traffic(process="trace", classes=CLASSES, trace=settings), run(horizon_s), seed, trace)


def test_absent_columns_take_the_first_classs_values() -> None:
    r = replayed(trace_of("0.5,100,7", "0.5,40,1", "3,65,2"))
    assert r.arrival_s.tolist() == [0.5, 0.5, 3.0]
    assert r.prompt_tokens.tolist() == [100, 40, 65]
    assert r.output_tokens.tolist() == [7, 1, 2]
    assert r.cached_prefix_tokens.tolist() == [64, 39, 64]
    assert r.priority.tolist() == [2, 2, 2]
    assert r.class_id.tolist() == [0, 0, 0]
    assert r.class_names == ("chat", "batch")
    assert r.notes == ()
    assert [getattr(r, name).dtype.name for name in ("class_id", "priority", "cached_prefix_tokens")] == [
        "int16",
        "int32",
        "int32",
    ]


def test_the_traces_own_columns_win() -> None:
    rows = ("0,100,7,5,-3,batch", "1,100,7,0,4,agent", "2,100,7,9,0,chat", "3,10,7,1,0,agent")
    r = replayed(trace_of(*rows, columns=FULL))
    assert r.class_names == ("chat", "batch", "agent")
    assert r.class_id.tolist() == [1, 2, 0, 2]
    assert r.priority.tolist() == [-3, 4, 0, 0]
    assert r.cached_prefix_tokens.tolist() == [5, 0, 9, 1]


def test_a_class_column_without_priorities_takes_the_first_classs_priority() -> None:
    columns = "arrival_s,prompt_tokens,output_tokens,class"
    r = replayed(trace_of("0,100,7,batch", "1,100,7,new", columns=columns))
    assert r.class_id.tolist() == [1, 2]
    assert r.priority.tolist() == [2, 2]
    assert r.cached_prefix_tokens.tolist() == [64, 64]


def test_a_prefix_as_long_as_its_prompt_is_cut_and_said() -> None:
    r = replayed(trace_of("0,100,7,99,0,a", "1,100,7,100,0,a", "2,1,7,500,0,a", columns=FULL))
    assert r.cached_prefix_tokens.tolist() == [99, 99, 0]
    assert r.notes == (
        "In 2 of 3 rows of the trace the cached prefix is as long as the prompt or longer; "
        "it was cut to one token less than the prompt.",
    )


def test_times_are_divided_by_speed() -> None:
    trace = trace_of("1,5,5", "4,5,5", "9,5,5")
    assert replayed(trace, speed=2.0).arrival_s.tolist() == [0.5, 2.0, 4.5]
    assert replayed(trace, speed=0.5).arrival_s.tolist() == [2.0, 8.0, 18.0]
    assert trace.arrival_s.tolist() == [1, 4, 9]


def test_a_horizon_shorter_than_the_trace_is_said() -> None:
    trace = trace_of("1,5,5", "4,5,6", "9,5,7")
    r = replayed(trace, 4.0)
    assert r.output_tokens.tolist() == [5]
    assert r.notes == (
        "The trace's last request arrives at 9.0 s, the horizon is 4.0 s: the last 2 of 3 requests are not simulated.",
    )
    assert replayed(trace, 4.0, speed=2.0).output_tokens.tolist() == [5, 6]
    assert replayed(trace, 9.5).notes == ()
    nothing = replayed(trace, 1.0)
    assert len(nothing) == 0
    assert "the last 3 of 3 requests" in nothing.notes[0]


def test_without_a_horizon_all_rows_are_there() -> None:
    assert len(replayed(trace_of("0,5,5", "600000,5,6"))) == 2


def test_without_a_horizon_a_trace_lasts_seven_days_at_most() -> None:
    trace = trace_of("0,5,5", "1209600,5,5")
    assert len(replayed(trace, speed=2.0)) == 2
    assert len(replayed(trace, 60.0)) == 1
    with pytest.raises(TraceError) as error:
        replayed(trace)
    assert str(error.value) == (
        "run.horizon_s: null runs to the trace's end, and its last request arrives at 1,209,600 s: that is above "
        "604,800 s (7 days); give a horizon up to that, or a higher traffic.trace.speed"
    )


def test_without_a_horizon_the_warm_up_ends_before_the_last_arrival() -> None:
    trace = trace_of("0,5,5", "50,5,5")
    t = traffic(process="trace", trace={"speed": 2.0})
    open_end = Run.model_validate({"horizon_s": None, "warmup_s": 25.0})
    with pytest.raises(TraceError) as error:
        generate(t, open_end, 1, trace)
    assert str(error.value) == (
        "run.warmup_s: 25 is not before the trace's last request at 25.0 s: nothing would be counted; "
        "give a shorter warm-up"
    )
    assert len(generate(t, open_end.model_copy(update={"warmup_s": 24.9}), 1, trace)) == 2
    assert len(replayed(trace_of("0,5,5"))) == 1


def test_more_requests_than_a_run_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_REQUESTS", 5)
    trace, t = trace_of("0,5,5", "1,5,5"), traffic(process="trace")
    many = run(10.0).model_copy(update={"seeds": 3})
    with pytest.raises(TraceError) as error:
        generate(t, many, 1, trace)
    assert str(error.value) == (
        "run.seeds: 3 runs of 2 requests of the trace are 6, more than 5; one seed is enough, for all are alike "
        "without traffic.trace.resample"
    )
    assert len(generate(t, many.model_copy(update={"horizon_s": 1.0}), 1, trace)) == 1


def test_rows_left_out_are_said() -> None:
    r = replayed(trace_of("0,5,0", "1,5,5"))
    assert r.notes == ("Rows of the trace with 0 output tokens, left out: 1 of 2.",)


def test_every_seed_sees_the_same_requests() -> None:
    trace = trace_of("0,5,5", "1,6,6")
    first, second = replayed(trace, seed=1), replayed(trace, seed=2)
    assert np.array_equal(first.arrival_s, second.arrival_s)
    assert np.array_equal(first.prompt_tokens, second.prompt_tokens)
