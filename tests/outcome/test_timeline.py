"""The timeline, bin by bin, against the reference's rows and steps laid over the bins one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from engine.outcome import bin_width
from engine.serving import LIMITS, REJECT_REASONS
from tests.outcome.cases import COUNT, FIRST_SEED, Case, case, result_of
from tests.reference.model import Request, Setup

COLUMNS = [
    "seed", "t_s", "width_s", "offered", "completed", *(f"rejected_{reason}" for reason in REJECT_REASONS), "timed_out",
    "queue", "running", "kv_usage", *(f"limited_{name}" for name in LIMITS), "replicas_wanted", "replicas_ready",
    "replicas_starting", "capacity_rps", "ttft_p50", "ttft_p95", "ttft_p99",
]  # fmt: skip
INTEGRALS = ("present", "travelling", "running", "held", "busy", *LIMITS)


class Bins:
    """The rows of one seed, by where they begin and end."""

    def __init__(self, table: pd.DataFrame, seed: int, horizon_s: float) -> None:
        self.table = table[table["seed"] == FIRST_SEED + seed].reset_index(drop=True)
        self.start = self.table["t_s"].to_numpy()
        self.end = np.append(self.start[1:], horizon_s)
        self.sums = {name: np.zeros(self.start.size) for name in INTEGRALS}

    def at(self, time: float) -> int:
        """The bin of an instant; the very end belongs to the last."""
        return int(np.searchsorted(self.start, time, side="right")) - 1

    def over(self, start: float, end: float) -> Iterator[tuple[int, float]]:
        """(bin, seconds) of an interval."""
        for i in range(self.at(start), self.start.size):
            seconds = min(end, self.end[i]) - max(start, self.start[i])
            if seconds <= 0 and self.start[i] > end:
                return
            yield i, max(0.0, seconds)


def laid_out(c: Case, seed: int) -> Bins:
    """Integrals of presence and of steps over each bin of a seed."""
    outcome = c.expected[seed]
    bins = Bins(c.result.timeline, seed, outcome.horizon_s)
    for row in c.came(seed):
        if row.state != "rejected":
            assert row.arrival_s is not None
            for i, seconds in bins.over(row.arrival_s, outcome.horizon_s if row.left_s is None else row.left_s):
                bins.sums["present"][i] += seconds
        if row.first_token_s is not None and row.left_s != row.first_token_s and c.setup.decode_replicas:
            end = next((at for at in (row.landed_s, row.left_s) if at is not None), outcome.horizon_s)
            for i, seconds in bins.over(row.first_token_s, end):
                bins.sums["travelling"][i] += seconds
    for steps in outcome.steps:
        for step in steps:
            for i, seconds in bins.over(step.start, min(step.end, outcome.horizon_s)):
                heights = {"running": step.running, "held": step.kv_held_at_start, "busy": 1, step.limited_by: 1}
                for name, height in heights.items():
                    bins.sums[name][i] += seconds * height
    return bins


@pytest.mark.parametrize("number", range(COUNT))
def test_levels(number: int) -> None:
    """Averages over each bin of queue, running requests and KV; what limited the busy time."""
    c = case(number)
    for seed in range(3):
        bins = laid_out(c, seed)
        width, sums, found = bins.table["width_s"].to_numpy(), bins.sums, bins.table
        np.testing.assert_allclose(width, bins.end - bins.start, atol=1e-9)
        if not width.any():
            continue
        if c.setup.policy != "static":  # whose finished members keep their slots, but don't run
            np.testing.assert_allclose(found["running"], sums["running"] / width, rtol=1e-8, atol=1e-8)
            waiting = (sums["present"] - sums["running"] - sums["travelling"]) / width
            np.testing.assert_allclose(found["queue"], waiting, rtol=1e-8, atol=1e-7)
            assert ("travelling" in found) == bool(c.setup.decode_replicas)
            if c.setup.decode_replicas:
                np.testing.assert_allclose(found["travelling"], sums["travelling"] / width, rtol=1e-8, atol=1e-7)
        if c.setup.kv_capacity_tokens is None:
            assert found["kv_usage"].isna().all()
        else:
            usage = sums["held"] / width / (c.setup.places * c.setup.kv_capacity_tokens)
            np.testing.assert_allclose(found["kv_usage"], usage, rtol=1e-8, atol=1e-8)
        busy = sums["busy"]
        for name in LIMITS:
            shares = found[f"limited_{name}"].to_numpy()
            np.testing.assert_allclose(np.nan_to_num(shares) * busy, sums[name], rtol=1e-7, atol=1e-7)
            assert np.isnan(shares[busy == 0]).all()


@pytest.mark.parametrize("number", range(COUNT))
def test_counts(number: int) -> None:
    """Arrivals by when they came, ends by when they left, the last bin for who gave up and is served to the end."""
    c = case(number)
    for seed, outcome in enumerate(c.expected):
        bins = Bins(c.result.timeline, seed, outcome.horizon_s)
        want = {name: [0] * bins.start.size for name in ("offered", "completed", "timed_out")}
        want |= {f"rejected_{reason}": [0] * bins.start.size for reason in REJECT_REASONS}
        for row in c.came(seed):
            assert row.arrival_s is not None
            want["offered"][bins.at(row.arrival_s)] += 1
            if row.state != "unfinished":
                left = outcome.horizon_s if row.left_s is None else row.left_s
                want[f"rejected_{row.reason}" if row.state == "rejected" else str(row.state)][bins.at(left)] += 1
        assert {name: bins.table[name].tolist() for name in want} == want
        assert sum(want["offered"]) == len(c.came(seed))


@pytest.mark.parametrize("number", range(0, COUNT, 3))
def test_ttft_percentiles_by_time_of_arrival(number: int) -> None:
    c = case(number)
    for seed, outcome in enumerate(c.expected):
        bins = Bins(c.result.timeline, seed, outcome.horizon_s)
        times: list[list[float]] = [[] for _ in bins.start]
        for row in outcome.requests:
            if row.state == "completed":
                assert row.arrival_s is not None
                assert row.first_token_s is not None
                times[bins.at(row.arrival_s)].append(row.first_token_s - row.arrival_s)
        for key, q in {"ttft_p50": 0.5, "ttft_p95": 0.95, "ttft_p99": 0.99}.items():
            want = [np.quantile(t, q, method="inverted_cdf") if t else np.nan for t in times]
            np.testing.assert_allclose(bins.table[key], want, rtol=1e-9, atol=1e-12)


def test_columns() -> None:
    table = case(0).result.timeline
    assert list(table.columns) == COLUMNS
    assert sorted(set(table["seed"])) == [FIRST_SEED, FIRST_SEED + 1, FIRST_SEED + 2]


@pytest.mark.parametrize(
    ("horizon", "width"), [(0.0, 0.1), (1.0, 0.1), (20.0, 0.1), (20.1, 0.2), (900.0, 5), (3600.0, 30), (1e9, 21600)]
)
def test_bins_are_round_and_at_most_two_hundred(horizon: float, width: float) -> None:
    assert bin_width(horizon) == width


def test_last_bin_ends_at_the_horizon() -> None:
    setup = Setup(base=lambda tokens: 1.0, horizon_s=30.25)
    table = result_of(setup, [[Request(30.125, 1, 1)]]).timeline
    assert table["t_s"].iloc[-1] == pytest.approx(30.2)
    assert table["width_s"].iloc[-1] == pytest.approx(0.05)
    assert table["running"].iloc[-1] == pytest.approx(1.0)
    assert table["running"].iloc[-2] == pytest.approx(0.75 / 2)


def test_kv_ramps_up_inside_a_run_of_steps() -> None:
    """One long answer, alone: each second holds one token more, though the engine logs all of it as one run."""
    setup = Setup(base=lambda tokens: 0.25, kv_capacity_tokens=1000, horizon_s=40.0)
    result = result_of(setup, [[Request(0.0, 10, 300)]])
    assert (result.log.k > 100).any()
    table = result.timeline
    held = [10 + (max(0, int((i + 0.5) * 0.2 / 0.25 + 1e-9) - 1)) for i in range(len(table))]
    np.testing.assert_allclose(table["kv_usage"].iloc[5:], np.array(held[5:]) / 1000, atol=0.0006)
    assert table["kv_usage"].iloc[100] == pytest.approx(0.0890, abs=0.0006)


def test_an_end_on_the_edge_of_a_bin_that_the_seed_has_not() -> None:
    """Without a horizon a seed's last event may be where a bin begins: it counts in the seed's last bin."""
    setup = Setup(base=lambda tokens: 0.5)
    table = result_of(setup, [[Request(0.0, 1, 2)], [Request(0.0, 1, 8)]]).timeline
    short = table[table["seed"] == FIRST_SEED]
    assert short["completed"].sum() == 1
    assert short["width_s"].sum() == pytest.approx(1.0)
    assert short["t_s"].iloc[-1] == pytest.approx(0.9)


def test_idle_bins_say_nothing_of_limits() -> None:
    setup = Setup(base=lambda tokens: 0.3, horizon_s=300.0)
    requests = [Request(t, 1, 1) for t in np.arange(0.1, 250, 37.3)]
    table = result_of(setup, [requests]).timeline
    idle = table[table["running"] == 0]
    assert len(idle) > 100
    assert idle[[f"limited_{name}" for name in LIMITS]].isna().all(axis=None)
    np.testing.assert_allclose(idle["queue"], 0.0, atol=1e-12)


def test_nothing_arrives() -> None:
    table = result_of(Setup(base=lambda tokens: 1.0, horizon_s=10.0), [[], []]).timeline
    assert len(table) == 200
    assert table[["offered", "completed", "queue", "running"]].eq(0).all(axis=None)
    assert table[["ttft_p50", "limited_kv"]].isna().all(axis=None)
