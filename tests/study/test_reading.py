"""Chunks and cached prefixes: what they change, and what stays the same."""

from __future__ import annotations

import pytest

from engine import Scenario
from engine.scenario import preset
from engine.study import cached_shares, chunk_sizes, with_cached, with_chunks

SMALL = Scenario.from_dict(
    {
        "traffic": {"rate_rps": 4.0},
        "model": {"name": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16"},
        "hardware": {"accelerator": "A100-SXM4-80GB"},
        "parallelism": {"tp": 1},
        "fleet": {"replicas": 1},
        "run": {"horizon_s": 100, "seeds": 4, "warmup_s": 10},
    }
)


def test_the_sizes_are_those_that_the_seats_allow_and_the_scenarios_own() -> None:
    assert chunk_sizes(SMALL) == (256, 512, 1024, 2048, 4096, 8192, 16384)
    own = SMALL.replace({"batching.max_num_batched_tokens": 3000, "batching.max_num_seqs": 600})
    assert chunk_sizes(own) == (1024, 2048, 3000, 4096, 8192, 16384)
    assert chunk_sizes(SMALL.replace({"batching.policy": "prefill_first"})) == ()


def test_smaller_chunks_shorten_the_pauses() -> None:
    fine, coarse = with_chunks(SMALL, 512), with_chunks(SMALL, 8192)
    assert fine.pause_s < 0.6 * coarse.pause_s
    assert fine.gap_s["p50"] <= fine.gap_s["p99"] <= fine.pause_s
    assert fine.changes == {"batching.max_num_batched_tokens": 512}
    assert (fine.runs, fine.horizon_s) == (coarse.runs, coarse.horizon_s)
    assert fine.first_word_s["p50"] <= fine.first_word_s["p95"]


def test_the_present_size_is_the_present_scenario() -> None:
    assert with_chunks(SMALL, SMALL.batching.max_num_batched_tokens).gap_s == with_cached(SMALL, 0.0).gap_s


def test_what_is_cached_need_not_be_read() -> None:
    assert cached_shares(SMALL)[0] == 0.0
    plain, half, most = (with_cached(SMALL, share) for share in (0.0, 0.5, 0.75))
    assert half.changes == {"traffic.classes.0.cached_prefix_tokens": 578}
    assert most.first_word_s["p50"] < half.first_word_s["p50"] < plain.first_word_s["p50"]
    assert plain.capacity_rps is not None
    assert half.capacity_rps is not None
    assert half.capacity_rps > 1.1 * plain.capacity_rps


def test_every_class_has_its_share_cached() -> None:
    found = with_cached(
        preset("long-prompt").scenario.replace({"run.horizon_s": 60, "run.warmup_s": 10, "run.seeds": 2}), 0.5
    )
    assert found.changes == {
        "traffic.classes.0.cached_prefix_tokens": 200,
        "traffic.classes.1.cached_prefix_tokens": 15_000,
    }


def test_where_there_is_no_mean_there_is_no_share() -> None:
    empirical = {"prompt_tokens": {"dist": "empirical", "values": [10, 20], "weights": [1, 1]}}
    s = SMALL.replace({"traffic.classes": [empirical]})
    assert cached_shares(s) == ()
    with pytest.raises(ValueError, match="no mean"):
        with_cached(s, 0.5)
