"""Traffic that gets wordier: lengths on a straight line in the moment of arrival, before rounding and clipping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.traffic import DISTRIBUTIONS, Requests, generate, streams
from tests.traffic.build import constant, request_class, run, trace_of, traffic

LOGNORMAL = {"dist": "lognormal", "mean": 800.0, "cv": 1.0}


def grown(prompt: float = 1.0, output: float = 1.0, horizon_s: float = 1000.0, **settings: Any) -> Requests:
    growth = {"prompt_factor": prompt, "output_factor": output}
    return generate(traffic(**{"rate_rps": 10.0, "growth": growth, **settings}), run(horizon_s), 3)


def test_lengths_by_hand() -> None:
    """One request a second for 8 s; prompts of 100 end at 3 times, answers of 10 at a quarter; half is rounded up."""
    r = grown(3.0, 0.25, 8.0, process="deterministic", rate_rps=1.0, classes=[request_class(prompt=100, output=10)])
    assert r.arrival_s.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert r.prompt_tokens.tolist() == [125, 150, 175, 200, 225, 250, 275]
    assert r.output_tokens.tolist() == [9, 8, 7, 6, 5, 4, 3]  # 9.06, 8.1, 7.2, 6.25, 5.3, 4.4, 3.4


def test_growth_comes_before_rounding_and_clipping() -> None:
    tiny = {"dist": "lognormal", "mean": 1.2, "cv": 0.0}
    clipped = {**constant(100), "min": 90, "max": 150}
    classes = [{"prompt_tokens": clipped, "output_tokens": tiny}]
    r = grown(3.0, 5.0, 8.0, process="deterministic", rate_rps=1.0, classes=classes)
    assert r.prompt_tokens.tolist() == [125, 150, 150, 150, 150, 150, 150]
    assert r.output_tokens.tolist() == [2, 2, 3, 4, 4, 5, 5]  # 1.8, 2.4, 3, 3.6, 4.2, 4.8, 5.4: not 1 times a factor
    r = grown(0.5, 0.01, 8.0, process="deterministic", rate_rps=1.0, classes=classes)
    assert r.prompt_tokens.tolist() == [94, 90, 90, 90, 90, 90, 90]
    assert r.output_tokens.tolist() == [1, 1, 1, 1, 1, 1, 1]


def test_the_mean_grows_on_a_straight_line() -> None:
    """Arrivals being spread evenly, the mean over the run is that of both ends; in each quarter that of its middle."""
    classes = [{"prompt_tokens": LOGNORMAL, "output_tokens": {"dist": "geometric", "mean": 200.0}}]
    r = grown(4.0, 2.0, 4000.0, classes=classes)
    for lengths, mean, factor in ((r.prompt_tokens, 800.0, 4.0), (r.output_tokens, 200.0, 2.0)):
        for quarter in range(4):
            part = lengths[(r.arrival_s // 1000) == quarter]
            expected = mean * (1 + (factor - 1) * (quarter + 0.5) / 4)
            assert part.mean() == pytest.approx(expected, abs=4 * part.std() / np.sqrt(part.size))


@pytest.mark.parametrize("dist", DISTRIBUTIONS)
def test_a_request_stays_the_same_person(dist: str) -> None:
    """Growth scales what would have come anyway: arrivals, classes and the order of lengths stay."""
    classes = [{"name": name, "prompt_tokens": {"dist": dist, "max": None}} for name in ("a", "b")]
    plain, wordy = grown(classes=classes), grown(3.0, classes=classes)
    assert np.array_equal(plain.arrival_s, wordy.arrival_s)
    assert np.array_equal(plain.class_id, wordy.class_id)
    assert np.array_equal(plain.output_tokens, wordy.output_tokens)
    exact = plain.prompt_tokens * (1 + 2 * plain.arrival_s / 1000.0)
    assert (np.abs(wordy.prompt_tokens - exact) <= 2.0).all()  # half a token before, tripled, and half after


def test_a_factor_of_one_is_no_growth() -> None:
    classes = [{"prompt_tokens": LOGNORMAL}, request_class("batch")]
    none = generate(traffic(rate_rps=10.0, classes=classes), run(1000.0), 3)
    for name in ("prompt_tokens", "output_tokens"):
        assert np.array_equal(getattr(grown(classes=classes), name), getattr(none, name))


def test_growth_of_lengths_that_are_all_alike_draws_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrivals of another growth are the same ones: nothing is drawn from their stream."""
    used: list[str] = []
    original = streams.stream
    monkeypatch.setattr(streams, "stream", lambda seed, name: used.append(name) or original(seed, name))
    grown(3.0, classes=[request_class()])
    assert sorted(used) == ["arrivals", "prompt"]


def test_a_cached_prefix_does_not_grow_and_is_cut_to_what_shrinks() -> None:
    classes = [request_class(prompt=100, cached_prefix_tokens=60)]
    assert set(grown(5.0, classes=classes).cached_prefix_tokens) == {60}
    shrunk = grown(0.1, classes=classes)
    assert shrunk.cached_prefix_tokens.tolist() == np.minimum(60, shrunk.prompt_tokens - 1).tolist()
    assert shrunk.cached_prefix_tokens.min() < 20


def test_a_trace_grows_too() -> None:
    columns = "arrival_s,prompt_tokens,output_tokens,cached_prefix_tokens"
    trace = trace_of("0,100,7,50", "4,100,7,50", "6,101,1,50", columns=columns)
    settings = {"process": "trace", "growth": {"prompt_factor": 0.2, "output_factor": 3.0}}
    r = generate(traffic(**settings), run(8.0), 1, trace)
    assert r.prompt_tokens.tolist() == [100, 60, 40]  # 101 * 0.4 is 40.4
    assert r.output_tokens.tolist() == [7, 14, 3]  # 2.5 is rounded up
    assert r.cached_prefix_tokens.tolist() == [50, 50, 39]
    assert r.notes == ()
    assert generate(traffic(process="trace"), run(8.0), 1, trace).prompt_tokens.tolist() == [100, 100, 101]
