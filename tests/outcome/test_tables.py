"""The summary and the table of requests: exactly the keys, columns and blanks that users were told of."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.outcome import QUANTILES
from tests.outcome.cases import COUNT, FIRST_SEED, case, result_of
from tests.reference.model import Request, Setup

KEYS: dict[str, Any] = {
    "requests": ["offered", "first_attempts", "completed", "rejected", "timed_out", "unfinished", "retries"],
    "rejected_by_reason": ["throttled", "rate_limited", "no_replica", "too_long", "queue_full", "shed", "codel"],
    "preemptions": int,
    "latency_s": {name: ["mean", *QUANTILES, "max", "ci95"] for name in ("ttft", "tpot", "itl", "e2e", "queue")},
    "slo": list,
    "throughput": ["requests_per_s", "output_tokens_per_s", "goodput_per_s"],
    "replica": {
        "capacity_rps": float,
        "kv_capacity_tokens": int,
        "weights_bytes": float,
        "utilization": float,
        "mean_batch": float,
        "limited_by": ["max_num_seqs", "kv", "token_budget", "none"],
    },
    "autoscaler": None,
    "cost": ["per_hour", "per_million_output_tokens", "spare_share"],
    "wasted": ["tokens", "busy_s"],
    "notes": list,
    "run": ["seeds", "horizon_s", "warmup_s", "wall_s", "simulated_requests"],
}
COLUMNS = [
    "seed", "request", "attempt", "arrival_s", "class", "priority", "replica", "prompt_tokens", "output_tokens",
    "cached_prefix_tokens", "scheduled_s", "first_token_s", "finish_s", "left_s", "state", "reason", "max_itl_s",
    "preemptions",
]  # fmt: skip
POOL = {name: KEYS["replica"][name] for name in ("capacity_rps", "utilization", "mean_batch", "limited_by")}
APART: dict[str, Any] = KEYS | {"pools": dict.fromkeys(("prefill", "decode"), POOL | {"replicas": int})}
"""Keys with two pools."""
SLO = [
    {"name": "first", "metric": "ttft", "threshold_s": 1.5},
    {"name": "longest", "metric": "max_itl", "threshold_s": 0.9, "target": 1.0},
]


def check_keys(found: Any, wanted: Any) -> None:
    """Exactly the wanted keys, all the way down."""
    if isinstance(wanted, dict):
        assert set(found) == set(wanted)
        for key, inner in wanted.items():
            check_keys(found[key], inner)
    elif isinstance(wanted, list):
        assert set(found) == set(wanted)
    elif wanted is list:
        assert isinstance(found, list)


class TestSummary:
    @pytest.mark.parametrize("number", range(0, COUNT, 5))
    def test_keys_and_plain_json(self, number: int) -> None:
        c = case(number)
        summary: Any = result_of(c.setup, c.requests, c.warmup_s, slo=SLO).summary()
        check_keys(summary, APART if c.setup.decode_replicas else KEYS)
        assert json.loads(json.dumps(summary, allow_nan=False)) == summary
        assert [entry["name"] for entry in summary["slo"]] == ["first", "longest"]
        for entry in summary["slo"]:
            assert list(entry) == ["name", "attainment", "ci95", "budget_burned", "met"]
        assert summary["autoscaler"] is None
        if not summary["requests"]["timed_out"]:
            assert summary["wasted"] == {"tokens": 0, "busy_s": 0.0}

    def test_without_promises(self) -> None:
        assert case(0).result.summary()["slo"] == []

    def test_one_seed_has_no_intervals(self) -> None:
        c = case(0)
        summary: Any = result_of(c.setup, c.requests[:1], slo=SLO).summary()
        assert [entry["ci95"] for entry in summary["latency_s"].values()] == [None] * 5
        assert [entry["ci95"] for entry in summary["slo"]] == [None, None]
        more: Any = result_of(c.setup, c.requests, slo=SLO).summary()
        assert set(more["latency_s"]["ttft"]["ci95"]) == {"mean", *QUANTILES}

    @pytest.mark.parametrize("seeds", [1, 2])
    def test_nobody_comes(self, seeds: int) -> None:
        setup = Setup(base=lambda tokens: 1.0, horizon_s=10.0)
        summary: Any = result_of(setup, [[]] * seeds, warmup_s=2.0, slo=SLO).summary()
        check_keys(summary, KEYS)
        json.dumps(summary, allow_nan=False)
        assert set(summary["requests"].values()) == {0}
        for entry in summary["latency_s"].values():
            assert {entry[key] for key in ("mean", *QUANTILES, "max")} == {None}
        assert summary["throughput"] == dict.fromkeys(summary["throughput"], 0.0)
        assert [entry["attainment"] for entry in summary["slo"]] == [None, None]
        assert set(summary["replica"]["limited_by"].values()) == {None}
        assert (summary["replica"]["utilization"], summary["replica"]["mean_batch"]) == (0.0, None)
        assert summary["cost"]["per_million_output_tokens"] is None

    def test_all_refused(self) -> None:
        setup = Setup(base=lambda tokens: 1.0, horizon_s=10.0, kv_capacity_tokens=5)
        summary: Any = result_of(setup, [[Request(1.0, 9, 9)] * 3], slo=SLO).summary()
        json.dumps(summary, allow_nan=False)
        assert summary["rejected_by_reason"] == dict.fromkeys(KEYS["rejected_by_reason"], 0) | {"too_long": 3}
        assert [(entry["attainment"], entry["met"]) for entry in summary["slo"]] == [(0.0, False), (0.0, False)]
        assert [entry["budget_burned"] for entry in summary["slo"]] == [pytest.approx(20.0), None]

    def test_without_a_horizon_it_is_the_last_event(self) -> None:
        """Seeds end at 4 and 8 s: the mean is shown, and windows are the seeds' own."""
        setup = Setup(base=lambda tokens: 1.0)
        result = result_of(setup, [[Request(1.0, 1, 3)], [Request(5.0, 1, 3)]], warmup_s=0.5)
        assert result.summary()["run"]["horizon_s"] == 6.0  # type: ignore[index]
        assert result.usage.window_s.tolist() == [3.5, 7.5]
        assert result.throughput["requests_per_s"] == pytest.approx(2 / 11)


class TestRequests:
    @pytest.mark.parametrize("number", range(COUNT))
    def test_rows_are_those_of_the_reference(self, number: int) -> None:
        c = case(number)
        table = c.result.requests
        apart = ["decode_replica", "landed_s", "resumed_s"] if c.setup.decode_replicas else []
        assert list(table.columns) == [*COLUMNS, *apart]
        rows = list(c.rows())
        assert table["seed"].tolist() == [FIRST_SEED + seed for seed, _, _ in rows]
        assert table["request"].tolist() == [i for seed in range(3) for i in range(len(c.came(seed)))]
        assert set(table["attempt"]) <= {0}
        assert set(table["class"]) <= {"all"}
        assert table["output_tokens"].tolist() == [c.output(request) for _, request, _ in rows]
        for name in ("priority", "prompt_tokens"):
            assert table[name].tolist() == [getattr(request, name) for _, request, _ in rows]
        cached = [min(request.cached_prefix_tokens, request.prompt_tokens - 1) for _, request, _ in rows]
        assert table["cached_prefix_tokens"].tolist() == cached
        assert table["replica"].fillna(-1).tolist() == [-1 if r.replica is None else r.replica for _, _, r in rows]
        for name in ("preemptions", "state"):
            assert table[name].tolist() == [getattr(row, name) for _, _, row in rows]
        assert table["reason"].fillna("").tolist() == [row.reason or "" for _, _, row in rows]
        if apart:
            writers = [-1 if r.writer is None else r.writer for _, _, r in rows]
            assert table["decode_replica"].fillna(-1).tolist() == writers
        for name in ("arrival_s", "scheduled_s", "first_token_s", "finish_s", "left_s", "max_itl_s", *apart[1:]):
            want = [np.nan if getattr(row, name) is None else getattr(row, name) for _, _, row in rows]
            np.testing.assert_allclose(table[name], want, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("number", range(0, COUNT, 6))
    def test_csv_gives_back_every_number(self, number: int) -> None:
        table = case(number).result.requests
        text = table.to_csv(index=False)
        back = pd.read_csv(io.StringIO(text))
        pd.testing.assert_frame_equal(back, table, check_dtype=False, check_exact=True)
        absent = table.isna().sum().sum()
        assert text.count("nan") == 0
        lines = [line.split(",") for line in text.splitlines()[1:]]
        assert sum(cell == "" for line in lines for cell in line) == absent

    def test_blank_where_absent(self) -> None:
        """A refused, a waiting, a decoding and a complete request; the refused one never had a replica."""
        setup = Setup(base=lambda tokens: 1.0, max_num_seqs=2, horizon_s=5.5, kv_capacity_tokens=100)
        requests = [Request(0.0, 1, 2), Request(0.0, 1, 9), Request(0.0, 90, 90), Request(4.5, 1, 1)]
        bare = result_of(setup, [requests])
        a = bare.run.attempts
        replica = np.where(a.reason > 0, -1, a.replica).astype(np.int32)
        run = dataclasses.replace(bare.run, attempts=dataclasses.replace(a, replica=replica))
        table = dataclasses.replace(bare, run=run).requests
        assert table["state"].tolist() == ["completed", "unfinished", "rejected", "unfinished"]
        assert table.isna().sum(axis=1).tolist() == [1, 3, 5, 5]
        rows = table.to_csv(index=False).splitlines()
        assert rows[1] == "5,0,0,0.0,all,0,0,1,2,0,0.0,1.0,2.0,2.0,completed,,1.0,0"
        assert rows[2] == "5,1,0,0.0,all,0,0,1,9,0,0.0,1.0,,,unfinished,,1.0,0"
        assert rows[3] == "5,2,0,0.0,all,0,,90,90,0,,,,0.0,rejected,too_long,,0"
        assert rows[4] == "5,3,0,4.5,all,0,0,1,1,0,5.0,,,,unfinished,,,0"

    def test_nobody_comes(self) -> None:
        table = result_of(Setup(base=lambda tokens: 1.0, horizon_s=1.0), [[]]).requests
        assert (list(table.columns), len(table)) == (COLUMNS, 0)
