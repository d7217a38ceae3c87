"""From traffic and a seed to requests: classes, prefixes, and what stays the same when one setting changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine.scenario import Traffic
from engine.traffic import DISTRIBUTIONS, PROCESSES, SHAPES, Requests, TraceError, generate, streams
from tests.traffic.build import constant, request_class, run, trace_of, traffic

LOGNORMAL = {"dist": "lognormal", "mean": 800.0, "cv": 1.0}
MIXED = [
    {"name": "chat", "weight": 3.0, "prompt_tokens": LOGNORMAL, "output_tokens": {"dist": "geometric", "mean": 150.0}},
    request_class("batch", prompt=4000, output=500, weight=1.0, priority=5, cached_prefix_tokens=1024),
    {"name": "code", "weight": 0.5, "prompt_tokens": {"dist": "uniform", "low": 1, "high": 64}, "priority": -1},
]
ARRAYS = ("arrival_s", "prompt_tokens", "output_tokens", "cached_prefix_tokens", "class_id", "priority")


def mixed(**settings: Any) -> Traffic:
    return traffic(**{"rate_rps": 10.0, "classes": MIXED, **settings})


def same(a: Requests, b: Requests, count: int | None = None) -> bool:
    return all(np.array_equal(getattr(a, name)[:count], getattr(b, name)[:count]) for name in ARRAYS)


def test_requests_are_what_they_say() -> None:
    r = generate(mixed(), run(600.0), 3)
    assert [getattr(r, name).dtype.name for name in ARRAYS] == ["float64", "int32", "int32", "int32", "int16", "int32"]
    assert {getattr(r, name).shape for name in ARRAYS} == {(len(r),)}
    assert r.class_names == ("chat", "batch", "code")
    assert r.prompt_tokens.min() >= 1
    assert r.output_tokens.min() >= 1
    assert (r.cached_prefix_tokens < r.prompt_tokens).all()
    assert r.priority.tolist() == [(0, 5, -1)[i] for i in r.class_id]
    batch = r.class_id == 1
    assert set(r.prompt_tokens[batch]) == {4000}
    assert set(r.output_tokens[batch]) == {500}
    assert set(r.cached_prefix_tokens[batch]) == {1024}
    assert r.prompt_tokens[r.class_id == 2].max() <= 64


def test_requests_cannot_be_changed_by_accident() -> None:
    r = generate(mixed(), run(10.0), 3)
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(r, name)[0] = 0


@pytest.mark.parametrize("settings", [{}, {"process": "gamma", "cv": 3.0}, {"shape": {"kind": "spike", "at_s": 20.0}}])
def test_the_same_seed_gives_the_same_requests_and_another_one_others(settings: dict[str, Any]) -> None:
    first = generate(mixed(**settings), run(60.0), 3)
    assert same(generate(mixed(**settings), run(60.0), 3), first)
    other = generate(mixed(**settings), run(60.0), 4)
    assert not np.array_equal(other.arrival_s[:50], first.arrival_s[:50])
    assert not np.array_equal(other.prompt_tokens[:50], first.prompt_tokens[:50])


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    short, long = generate(mixed(), run(60.0), 3), generate(mixed(), run(600.0), 3)
    assert same(short, long, len(short))


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("dist", DISTRIBUTIONS)
def test_every_combination_runs(process: str, kind: str, dist: str) -> None:
    """Whatever the process and the shape, the i-th request is the same request."""
    classes = [{"prompt_tokens": {"dist": dist}, "output_tokens": {"dist": dist}}]
    r = generate(mixed(process=process, shape={"kind": kind}, classes=classes), run(400.0), 1)
    plain = generate(mixed(classes=classes), run(400.0), 1)
    n = min(len(r), len(plain))
    assert n > 1000
    assert np.array_equal(r.prompt_tokens[:n], plain.prompt_tokens[:n])
    assert np.array_equal(r.output_tokens[:n], plain.output_tokens[:n])


def test_another_rate_brings_the_same_people_sooner() -> None:
    slow, fast = generate(mixed(rate_rps=4.0), run(64.0), 3), generate(mixed(rate_rps=8.0), run(32.0), 3)
    assert np.array_equal(slow.arrival_s, fast.arrival_s * 2)
    assert np.array_equal(slow.prompt_tokens, fast.prompt_tokens)
    assert np.array_equal(slow.class_id, fast.class_id)


def test_calls_of_an_action_come_together_and_change_nothing_else() -> None:
    """20 calls an action at 40 requests a second: the actions are the requests of 2 a second, at the same moments."""
    alone, many = generate(mixed(rate_rps=2.0), run(500.0), 3), mixed(rate_rps=40.0, client={"fan_out": 20})
    together = generate(many, run(500.0), 3)
    assert len(together) == 20 * len(alone)
    assert np.array_equal(together.arrival_s.reshape(-1, 20), np.repeat(alone.arrival_s[:, None], 20, axis=1))
    plain = generate(mixed(rate_rps=40.0), run(500.0), 3)
    n = min(len(plain), len(together))
    assert abs(len(plain) / len(together) - 1) < 0.1, "as many requests"
    for name in ("prompt_tokens", "output_tokens", "class_id", "cached_prefix_tokens"):
        assert np.array_equal(getattr(plain, name)[:n], getattr(together, name)[:n]), "each draws its own lengths"


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("kind", SHAPES)
def test_every_process_and_shape_brings_whole_actions(process: str, kind: str) -> None:
    settings = {"process": process, "shape": {"kind": kind}, "rate_rps": 10.0}
    r = generate(mixed(**settings, client={"fan_out": 7}), run(400.0), 1)
    assert len(r) > 1000
    assert (np.ptp(r.arrival_s.reshape(-1, 7), axis=1) == 0).all()
    assert (np.diff(r.arrival_s) >= 0).all()


def test_prompt_and_answer_lengths_are_independent() -> None:
    classes = [{"prompt_tokens": LOGNORMAL, "output_tokens": LOGNORMAL}]
    r = generate(mixed(classes=classes), run(2000.0), 3)
    assert abs(stats.spearmanr(r.prompt_tokens, r.output_tokens).statistic) < 4 / np.sqrt(len(r))
    gaps = np.diff(r.arrival_s)
    assert abs(stats.spearmanr(gaps, r.prompt_tokens[1:]).statistic) < 4 / np.sqrt(len(r))


def test_one_class_changing_leaves_the_others_alone() -> None:
    before = generate(mixed(), run(100.0), 3)
    after = generate(mixed(classes=[MIXED[0], request_class("batch", prompt=1, output=1), MIXED[2]]), run(100.0), 3)
    # Equal weights but for `batch`, which keeps its default 1.
    others = before.class_id != 1
    assert np.array_equal(before.class_id, after.class_id)
    assert np.array_equal(before.prompt_tokens[others], after.prompt_tokens[others])
    assert np.array_equal(before.output_tokens[others], after.output_tokens[others])


def test_classes_come_by_weight() -> None:
    counts = np.bincount(generate(mixed(), run(1000.0), 3).class_id, minlength=3)
    expected = counts.sum() * np.array([3.0, 1.0, 0.5]) / 4.5
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 2) > 0.01


def test_a_changed_weight_moves_only_as_many_as_it_must() -> None:
    base, shifted = (
        generate(mixed(classes=[{**MIXED[0], "weight": weight}, *MIXED[1:]]), run(1000.0), 3) for weight in (3.0, 3.1)
    )
    moved = (base.class_id != shifted.class_id).mean()
    # The two boundaries move from 3/4.5 and 4/4.5 to 3.1/4.6 and 4.1/4.6.
    share = (3.1 / 4.6 - 3 / 4.5) + (4.1 / 4.6 - 4 / 4.5)
    assert moved == pytest.approx(share, abs=4 * np.sqrt(share / len(base)))
    assert (shifted.class_id <= base.class_id).all()


def test_a_class_that_hardly_ever_comes_is_no_trouble() -> None:
    classes = [request_class("a", weight=1e-9), request_class("b", weight=1e9), request_class("c", weight=1e-9)]
    r = generate(mixed(classes=classes), run(100.0), 3)
    assert set(r.class_id) == {1}
    assert r.class_names == ("a", "b", "c")


@pytest.mark.parametrize(("cached", "prompt", "usable"), [(0, 1, 0), (1, 1, 0), (5, 6, 5), (6, 6, 5), (10**7, 3, 2)])
def test_a_cached_prefix_leaves_a_token_to_work_on(cached: int, prompt: int, usable: int) -> None:
    r = generate(mixed(classes=[request_class(prompt=prompt, cached_prefix_tokens=cached)]), run(10.0), 3)
    assert set(r.cached_prefix_tokens) == {usable}


def test_nothing_is_drawn_that_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """One class and lengths that are all alike need no random numbers but the arrivals."""
    used: list[str] = []
    original = streams.stream

    def recorded(seed: int, name: str) -> np.random.Generator:
        used.append(name)
        return original(seed, name)

    monkeypatch.setattr(streams, "stream", recorded)
    generate(mixed(classes=[request_class()]), run(10.0), 3)
    assert used == ["arrivals"]
    used.clear()
    alike = {"dist": "lognormal", "mean": 70.0, "cv": 0.0}
    generate(mixed(classes=[{"prompt_tokens": alike, "output_tokens": LOGNORMAL}]), run(10.0), 3)
    assert used == ["arrivals", "output"]
    used.clear()
    generate(mixed(), run(10.0), 3)
    assert sorted(used) == ["arrivals", "class", "output", "prompt"]


def test_a_constant_and_a_drawn_length_meet_the_same_arrivals() -> None:
    constants, drawn = (
        generate(mixed(classes=[{"prompt_tokens": length}]), run(50.0), 3) for length in (constant(9), LOGNORMAL)
    )
    assert np.array_equal(constants.arrival_s, drawn.arrival_s)
    assert np.array_equal(constants.output_tokens, drawn.output_tokens)


def test_process_trace_needs_a_trace() -> None:
    with pytest.raises(TraceError) as error:
        generate(traffic(process="trace", trace={"source": "day.csv"}), run(10.0), 3)
    assert str(error.value) == (
        "traffic.trace.source: 'day.csv' was not read: process trace needs a trace; "
        "give one, or choose another traffic.process"
    )
    with pytest.raises(TraceError, match=r"traffic\.trace\.source: null was not read"):
        generate(traffic(process="trace"), run(10.0), 3)


def test_another_process_does_not_look_at_a_trace() -> None:
    assert same(generate(mixed(), run(10.0), 3, trace_of("0,1,1")), generate(mixed(), run(10.0), 3))


def test_a_run_without_an_end_needs_a_trace() -> None:
    with pytest.raises(ValueError, match=r"run\.horizon_s: null has no end without a trace"):
        generate(mixed(), run(None), 3)
