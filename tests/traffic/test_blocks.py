"""Resampling a trace: blocks of its own time, drawn with replacement, laid end to end."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from engine.traffic import Requests, Trace, TraceError, generate, read_trace, stream
from engine.traffic import blocks as blocks_module
from tests.traffic.build import run, trace_of, traffic


def numbered(arrivals: list[float]) -> Trace:
    """A trace whose prompts number its rows, from 1."""
    return trace_of(*(f"{t!r},{i},{i % 5 + 1}" for i, t in enumerate(arrivals, start=1)))


def resampled(trace: Trace, horizon_s: float | None, seed: int = 1, seeds: int = 1, **settings: Any) -> Requests:
    t = traffic(process="trace", trace={"resample": "blocks", **settings})
    r = run(horizon_s).model_copy(update={"seeds": seeds})
    return generate(t, r, seed, trace)


def uneven(count: int = 4000, span_s: float = 640.0) -> Trace:
    """A trace with a busy middle, in times that floats add up without rounding, its last arrival at the span."""
    rng = np.random.default_rng(3)
    times = np.concatenate((rng.uniform(0, span_s, count // 2), rng.normal(span_s / 2, span_s / 12, count // 2)))
    times = np.sort(np.round(np.clip(times, 0, span_s) * 1024) / 1024)
    times[-1] = span_s
    return numbered(times.tolist())


def test_blocks_are_whole_pieces_of_the_trace_in_its_order() -> None:
    """Each block's time holds one block of the trace: its rows, all of them, at the same distances.

    But for the trace's last row, which stands at the end of the last block, where the next begins.
    """
    trace = uneven()
    r = resampled(trace, 1600.0, block_s=32.0)
    sources = set()
    for block in range(50):
        inside = (r.arrival_s // 32 == block) & (r.prompt_tokens < len(trace))
        rows = r.prompt_tokens[inside] - 1
        source = int(trace.arrival_s[rows[0]] // 32)
        expected = np.flatnonzero(trace.arrival_s // 32 == source)
        assert np.array_equal(rows, expected)
        assert np.array_equal(r.arrival_s[inside] - 32 * block, trace.arrival_s[expected] - 32 * source)
        assert np.array_equal(r.output_tokens[inside], trace.output_tokens[expected])
        sources.add(source)
    assert len(sources) > 10
    assert (np.diff(r.arrival_s) >= 0).all()
    assert r.arrival_s[-1] < 1600


def test_the_blocks_are_those_of_the_stream() -> None:
    """One uniform a block."""
    trace = numbered([8.0 * i + 1 for i in range(10)] + [80.0])
    r = resampled(trace, 400.0, seed=7, block_s=8.0)
    drawn = (stream(7, "blocks").random(50) * 10).astype(int)
    arrivals = [(8.0 * k + 1, block + 1) for k, block in enumerate(drawn)]
    last = [(8.0 * (k + 1), 11) for k, block in enumerate(drawn) if block == 9 and k < 49]
    expected = sorted(arrivals + last)
    assert list(zip(r.arrival_s.tolist(), r.prompt_tokens.tolist(), strict=True)) == expected


def test_the_last_block_is_as_short_as_it_is() -> None:
    """Blocks of 10 s from a trace of 25 s: [0, 10), [10, 20) and [20, 25], each drawn as often as the others."""
    trace = numbered([0.0, 10.0, 20.0, 25.0])
    r = resampled(trace, 30_000.0, block_s=10.0)
    starts = r.prompt_tokens != 4
    length_s = np.diff(r.arrival_s[starts])
    block = r.prompt_tokens[starts][:-1]
    assert set(length_s[block < 3]) == {10.0}
    assert set(length_s[block == 3]) == {5.0}
    shares = np.bincount(block, minlength=4)[1:] / block.size
    assert shares == pytest.approx(np.full(3, 1 / 3), abs=4 * np.sqrt(2 / 9 / block.size))
    ends = r.arrival_s[r.prompt_tokens == 4]
    assert np.isin(ends - 5.0, r.arrival_s[r.prompt_tokens == 3]).all()


@pytest.mark.parametrize("block_s", [10.0, 47.0, 500.0])
def test_every_row_is_as_likely_as_any_other(block_s: float) -> None:
    """So the mean rate and the mean lengths are the trace's, also where its span isn't a whole number of blocks."""
    trace = uneven()
    runs = [resampled(trace, 6400.0, seed=seed, block_s=block_s) for seed in range(40)]
    sizes = np.array([len(r) for r in runs])
    assert sizes.mean() == pytest.approx(40_000, abs=4 * sizes.std() / np.sqrt(sizes.size) + 100)
    for name in ("prompt_tokens", "output_tokens"):
        means = np.array([getattr(r, name).mean() for r in runs])
        exact = getattr(trace, name).mean()
        assert means.mean() == pytest.approx(exact, abs=4 * means.std() / np.sqrt(means.size))


def test_the_same_seed_gives_the_same_requests_and_another_one_others() -> None:
    trace = uneven()
    first, again, other = (resampled(trace, 640.0, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.arrival_s, again.arrival_s)
    assert np.array_equal(first.prompt_tokens, again.prompt_tokens)
    assert not np.array_equal(first.prompt_tokens[:100], other.prompt_tokens[:100])


@pytest.mark.parametrize("block_s", [2.0, 60.0, 1000.0])
def test_a_longer_run_begins_like_a_shorter_one(block_s: float) -> None:
    trace = uneven()
    short, long = (resampled(trace, horizon, block_s=block_s) for horizon in (130.0, 5000.0))
    assert 0 < len(short) < len(long)
    assert np.array_equal(long.arrival_s[: len(short)], short.arrival_s)
    assert np.array_equal(long.prompt_tokens[: len(short)], short.prompt_tokens)
    assert long.arrival_s[len(short)] >= 130


def test_without_a_horizon_it_lasts_as_long_as_the_trace() -> None:
    trace = uneven()
    r = resampled(trace, None, seed=4, block_s=32.0)
    assert 600 < r.arrival_s[-1] <= 640
    assert np.array_equal(resampled(trace, 640.0, seed=4, block_s=32.0).arrival_s, r.arrival_s[r.arrival_s < 640])
    half = resampled(trace, None, seed=4, block_s=32.0, speed=2.0)
    assert np.array_equal(half.arrival_s * 2, r.arrival_s)


def test_the_speed_squeezes_the_same_blocks() -> None:
    trace = uneven()
    slow, fast = (resampled(trace, 1280.0 / speed, block_s=20.0, speed=speed) for speed in (1.0, 4.0))
    assert np.array_equal(slow.arrival_s, fast.arrival_s * 4)
    assert np.array_equal(slow.prompt_tokens, fast.prompt_tokens)


def test_classes_priorities_and_prefixes_go_with_their_rows() -> None:
    columns = "arrival_s,prompt_tokens,output_tokens,cached_prefix_tokens,priority,class"
    rows = [f"{i},{i + 1},1,{i // 2},{-i},{'ab'[i % 2]}" for i in range(50)]
    r = resampled(trace_of(*rows, columns=columns), 300.0, block_s=7.0)
    i = r.prompt_tokens - 1
    assert np.array_equal(r.cached_prefix_tokens, i // 2)
    assert np.array_equal(r.priority, -i)
    assert [r.class_names[c] for c in r.class_id] == ["ab"[k % 2] for k in i]


def test_notes_are_those_of_the_trace_and_the_same_for_every_seed() -> None:
    columns = "arrival_s,prompt_tokens,output_tokens,cached_prefix_tokens"
    trace = trace_of(*(f"{i},5,{i % 2},{i % 10}" for i in range(100)), columns=columns)
    notes = {resampled(trace, 50.0, seed=seed, block_s=10.0).notes for seed in range(5)}
    assert len(notes) == 1
    assert [note.split(",")[0] for note in notes.pop()] == [
        "Rows of the trace with 0 output tokens",
        "In 30 of 50 rows of the trace the cached prefix is as long as the prompt or longer; it was cut to one token "
        "less than the prompt.",
    ]


def test_one_block_is_no_choice_and_said() -> None:
    trace = numbered([0.0, 1.0, 4.0])
    r = resampled(trace, 10.0, block_s=60.0)
    assert r.arrival_s.tolist() == [0, 1, 4, 4, 5, 8, 8, 9]
    assert r.notes == (
        "The trace lasts 4.0 s, its blocks 60 s: there is only one block to draw, and all seeds are alike.",
    )


def test_a_trace_that_takes_no_time_is_refused() -> None:
    with pytest.raises(TraceError) as error:
        resampled(numbered([0.0, 0.0]), 10.0)
    assert str(error.value) == (
        "traffic.trace.resample: 'blocks' needs a trace that takes some time, and all requests of this one arrive at "
        "0 s; use none"
    )


@pytest.mark.parametrize(
    ("arrivals", "horizon_s", "settings", "message"),
    [
        (
            [0.0, 1e-4],
            900.0,
            {"seeds": 2},
            "run.horizon_s: blocks of the trace bring about 36,000,000 requests in 2 seeds, more than 20,000,000; "
            "lower run.horizon_s, run.seeds or traffic.trace.speed",
        ),
        (
            [0.0, 7.2e5],
            7.2e4,
            {"speed": 1000.0, "block_s": 1.0},
            "traffic.trace.block_s: 1 takes about 72,000,000 blocks to fill the run, more than 20,000,000; "
            "give a longer block, or a lower run.horizon_s or traffic.trace.speed",
        ),
        (
            [0.0, 1e9],
            900.0,
            {"block_s": 1.0},
            "traffic.trace.block_s: 1 cuts the trace's 1,000,000,000 s into more than 20,000,000 blocks; "
            "give a longer block",
        ),
    ],
)
def test_more_than_a_run_may_have_is_refused(
    arrivals: list[float], horizon_s: float, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(TraceError, match=re.escape(message)):
        resampled(numbered(arrivals), horizon_s, **settings)


def test_a_seed_with_too_many_busy_blocks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "MOST_REQUESTS", 120)
    trace = numbered([0.5] * 100 + [100.0])
    busy = [int((stream(s, "blocks").random(100) < 0.01).sum()) for s in range(99)]
    assert len(resampled(trace, 100.0, seed=busy.index(1), block_s=1.0)) >= 100
    seed = busy.index(2)
    with pytest.raises(TraceError, match=rf"about \d+ requests with seed {seed}, more than 120"):
        resampled(trace, 100.0, seed=seed, block_s=1.0)


@pytest.mark.parametrize("span_s", [0.3, 0.7, 4.2, 86_400.1, 6e5 / 7])
@pytest.mark.parametrize("pieces", [1, 3, 7, 10, 49])
def test_rounding_makes_no_empty_block(span_s: float, pieces: int) -> None:
    """A span that is a block's multiple but for the last digit."""
    block_s = span_s / pieces
    for end in (span_s, np.nextafter(span_s, 0), np.nextafter(span_s, 1e9)):
        trace = numbered([0.0, float(end)])
        b = blocks_module.Blocks(trace, block_s)
        times, rows = b.draw(20 * span_s, 1)
        assert (np.diff(times) >= 0).all()
        assert set(rows.tolist()) <= {0, 1}
        assert 10 < rows.size < 80  # two in a span


@pytest.mark.data
def test_a_real_trace_keeps_its_means_and_its_bursts(data_dir: Any) -> None:
    """Dispersion in windows shorter than a block survives, being within blocks; the drift over the hour doesn't."""
    trace = read_trace(data_dir / "traces" / "AzureLLMInferenceTrace_code.csv")
    runs = [resampled(trace, 3000.0, seed=seed) for seed in range(40)]
    rate = np.array([len(r) for r in runs]) / 3000
    assert rate.mean() == pytest.approx(2.56669, abs=4 * rate.std() / np.sqrt(rate.size))
    windows = np.concatenate([np.histogram(r.arrival_s, 300, (0, 3000))[0] for r in runs])
    assert windows.var() / windows.mean() == pytest.approx(71.85, rel=0.15)  # stats.csv, IDC_10s; Poisson has 1
