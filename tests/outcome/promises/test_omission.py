"""Coordinated omission: a stall as everybody has it, and as a tester that waits for its answers."""

from __future__ import annotations

import numpy as np
import pytest

from engine.outcome.promises import omission as omissions
from engine.outcome.promises.omission import Omission, asked_by_tester, omission
from tests.outcome.promises.build import run_of
from tests.outcome.promises.oracles import Row, of


def stalled(p: dict[str, float]) -> Omission:
    """A service that is good for a time, then answers nobody until the end; requests come evenly, in mid-gap."""
    total = p["good_s"] + p["stall_s"]
    arrival = (np.arange(int(p["rate"] * total)) + 0.5) / p["rate"]
    took = np.where(arrival < p["good_s"], p["good_ms"] / 1e3, total - arrival)
    found = omission(arrival, took, took, connections=1)
    assert found is not None
    return found


@pytest.mark.parametrize("row", of("Coordinated_omission"), ids=lambda row: row.name)
def test_oracles(row: Row) -> None:
    found = stalled(row.parameters)
    value = {
        "naive_closed_loop_p99_ms": found.tester.p99_s * 1e3,
        "naive_mean_ms": found.tester.mean_s * 1e3,
        "open_loop_p50_ms": found.everybody.p50_s * 1e3,
        "open_loop_p75_s": found.everybody.p75_s,
        "open_loop_p99_s": found.everybody.p99_s,
        "open_loop_mean_s": found.everybody.mean_s,
    }[row.quantity]
    assert value == pytest.approx(row.value, rel=2e-4), "requests come in gaps of a hundredth of a second"


def test_half_of_them_are_never_asked() -> None:
    found = stalled({"good_ms": 1, "good_s": 100, "rate": 100, "stall_s": 100})
    assert (found.everybody.requests, found.tester.requests) == (20_000, 10_001)
    assert found.omitted == pytest.approx(0.49995)


def test_connections_by_hand() -> None:
    arrival, busy = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([2.5, 5.0, 1.0, 1.0, 9.0])
    assert asked_by_tester(arrival, busy, 1).tolist() == [True, False, False, True, True]
    assert asked_by_tester(arrival, busy, 2).tolist() == [True, True, False, True, True]
    assert asked_by_tester(arrival, busy, 5).all()


def test_who_got_nothing_keeps_a_connection_busy_all_the_same() -> None:
    found = omission(np.array([0.0, 1.0, 5.0]), np.array([4.0, 1.0, 1.0]), np.array([np.nan, 1.0, 2.0]), 1)
    assert found is not None
    assert (found.tester.requests, found.everybody.requests) == (1, 2)
    assert omission(np.array([0.0]), np.array([1.0]), np.array([np.nan]), 1) is None


def test_a_run() -> None:
    """One request a second and a half, one second each; at 150 s forty at once, whom one tester meets once."""
    result = run_of([1.5 * i for i in range(190)] + [150.0] * 40)
    found = omissions.tested(result, result.ttft_s)
    assert found is not None
    busy = result.run.attempts.finish_s - result.run.attempts.arrival_s
    assert found.connections == np.ceil(230 / (1.5 * 189) * np.median(busy)) == 3
    assert (found.everybody.requests, found.tester.requests) == (230, 135)
    assert (found.everybody.p75_s, found.tester.p75_s) == (22.0, 1.0)
    assert found.omitted == pytest.approx(95 / 230)
    assert omissions.tested(run_of([3.0]), result.ttft_s[:1]) is None
