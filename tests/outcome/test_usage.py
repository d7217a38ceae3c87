"""What the replicas were busy with, against sums over the reference's steps cut to the window."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from engine.outcome import Meter
from engine.serving import LIMITS, StepLog
from tests.outcome.cases import COUNT, case, result_of
from tests.reference.model import Request, Setup


@pytest.mark.parametrize("number", range(COUNT))
def test_sums_over_reference_steps(number: int) -> None:
    c = case(number)
    busy, batch, limit = np.zeros(3), np.zeros(3), np.zeros((3, len(LIMITS)))
    for seed, step in c.steps():
        seconds = c.overlap(seed, step)
        busy[seed] += seconds
        batch[seed] += seconds * step.R
        limit[seed, LIMITS.index(step.limited_by)] += seconds
    window = np.array([max(0.0, outcome.horizon_s - c.warmup_s) for outcome in c.expected])
    usage = c.result.usage
    np.testing.assert_allclose(usage.busy_s, busy, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(usage.batch_s, batch, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(usage.limit_s, limit, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(usage.window_s, window, rtol=1e-9, atol=1e-12)
    if busy.sum() > 0:
        assert usage.utilization == pytest.approx(busy.sum() / window.sum() / c.setup.places)
        assert usage.mean_batch == pytest.approx(batch.sum() / busy.sum())
        want = {name: limit[:, LIMITS.index(name)].sum() / busy.sum() for name in LIMITS}
        assert usage.limited_by == pytest.approx(want, abs=1e-9)
        assert sum(filter(None, usage.limited_by.values())) == pytest.approx(1.0)


def test_the_pieces_of_the_log_do_not_matter() -> None:
    """One entry at a time or all at once: the same sums."""
    c = case(0)
    whole, bits = (Meter(3, c.setup.places, c.warmup_s, c.setup.horizon_s) for _ in range(2))
    log = c.result.log
    whole(log)
    for i in range(log.lane.size):
        bits(StepLog(*(getattr(log, f.name)[i : i + 1] for f in fields(StepLog))))
    for name in ("busy_s", "batch_s", "limit_s"):
        found = getattr(bits.usage(c.result.run), name)
        np.testing.assert_allclose(found, getattr(whole.usage(c.result.run), name), rtol=1e-12, atol=1e-12)
    assert bits.itl(c.result.run).figures == pytest.approx(whole.itl(c.result.run).figures, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("number", range(60, COUNT))
def test_each_pool_over_its_own_steps(number: int) -> None:
    c = case(number)
    window = sum(max(0.0, outcome.horizon_s - c.warmup_s) for outcome in c.expected)
    assert c.result.pools is not None
    readers = c.setup.replicas
    for pool, part in zip(c.result.pools, (slice(0, readers), slice(readers, None)), strict=True):
        steps = [(i, s) for i, o in enumerate(c.expected) for steps in o.steps[part] for s in steps]
        busy = sum(c.overlap(seed, step) for seed, step in steps)
        batch = sum(c.overlap(seed, step) * step.R for seed, step in steps)
        assert pool.usage.busy_s.sum() == pytest.approx(busy)
        assert pool.usage.batch_s.sum() == pytest.approx(batch)
        limited = sum(c.overlap(seed, step) for seed, step in steps if step.limited_by == "kv")
        assert pool.usage.limit_s.sum(axis=0)[LIMITS.index("kv")] == pytest.approx(limited)
        if window:
            assert pool.usage.utilization == pytest.approx(busy / window / pool.replicas)
    assert sum(pool.usage.busy_s.sum() for pool in c.result.pools) == pytest.approx(c.result.usage.busy_s.sum())
    assert [pool.replicas for pool in c.result.pools] == [readers, c.setup.decode_replicas]


def test_by_hand() -> None:
    """Two seats, steps of 1 s, three requests of two tokens at 0: a pair in [0, 2), the third in [2, 4) of 5 s."""
    setup = Setup(base=lambda tokens: 1.0, max_num_seqs=2, horizon_s=5.0)
    usage = result_of(setup, [[Request(0.0, 1, 2)] * 3]).usage
    assert (usage.utilization, usage.mean_batch) == (0.8, 1.5)
    assert usage.limited_by == {"max_num_seqs": 0.5, "kv": 0.0, "token_budget": 0.0, "none": 0.5}
    later = result_of(setup, [[Request(0.0, 1, 2)] * 3], warmup_s=1.5).usage
    assert (later.busy_s[0], later.batch_s[0], later.window_s[0]) == (2.5, 3.0, 3.5)


def test_nothing_to_do() -> None:
    usage = result_of(Setup(base=lambda tokens: 1.0, horizon_s=5.0), [[], []]).usage
    assert (usage.utilization, usage.mean_batch) == (0.0, None)
    assert set(usage.limited_by.values()) == {None}
    never = result_of(Setup(base=lambda tokens: 1.0), [[]]).usage
    assert (never.utilization, never.mean_batch) == (None, None)


def test_pipelines_by_hand() -> None:
    """Two stages, passes of 1 s. One request of four tokens is in one stage at a time; two are in both, but for the
    first half second and the last."""
    setup = Setup(base=lambda tokens: 1.0, max_num_seqs=2, stages=2)
    alone = result_of(setup, [[Request(0.0, 1, 4)]])
    assert (alone.usage.utilization, alone.usage.mean_batch) == (0.5, 1.0)
    both = result_of(setup, [[Request(0.0, 1, 4)] * 2])
    assert (both.usage.utilization, both.usage.mean_batch) == (8 / 9, 1.0)
    assert both.usage.limited_by == {"max_num_seqs": 0.125, "kv": 0.0, "token_budget": 0.0, "none": 0.875}
    assert both.latency["itl"].figures["max"] == 1.0
    assert list(both.max_itl_s) == [1.0, 1.0]


def test_requests_of_a_pipeline_run_or_wait() -> None:
    """A prompt of 8 s holds the second stage until 8; the other's first token comes at 8.5, and it runs from 4 on."""
    setup = Setup(base=float, max_num_seqs=2, max_num_batched_tokens=8, kv_capacity_tokens=100, stages=2)
    result = result_of(setup, [[Request(0.0, 8, 1), Request(0.0, 1, 2)]])
    t = result.timeline
    seconds = t["width_s"]
    assert (t["running"] * seconds).sum() == pytest.approx(8.0 + 5.5)
    assert (t["queue"] * seconds).sum() == pytest.approx(4.0)
    assert result.usage.busy_s[0] == 10.0
