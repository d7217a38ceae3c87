"""A long prompt among people who are in the middle of their answers: they stand still for what its chunks take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Scenario, ScenarioError
from engine.machine import replica_model
from engine.scenario import preset
from engine.study import Interference, interference
from engine.study.interference import WRITERS

STORY = preset("long-prompt").scenario


def told(tokens: int = 30_000, scenario: Scenario = STORY, **changes: Any) -> tuple[Interference, Scenario]:
    changed = scenario.replace({path.replace("__", "."): value for path, value in changes.items()})
    return interference(changed, tokens), changed


def chunk_times(s: Scenario, found: Interference, budget: int) -> tuple[list[float], list[float]]:
    """Seconds of each step that reads the prompt, by the formula of a step, and of the same step without it."""
    model = replica_model(s, found.prompt_tokens)
    with_it, without, read = [], [], 0
    while read < found.prompt_tokens:
        writers = WRITERS if s.batching.policy == "chunked" else 0
        q = min(budget - writers, found.prompt_tokens - read)
        out = int((found.tokens_s[-1] < found.read_from_s + 1e-9).sum()) + len(with_it)
        context = writers * (128 + out - 1)
        pairs = q * read + q * (q + 1) / 2
        with_it.append(
            model.base[writers + q]
            + model.seq_s * (writers + 1)
            + model.kv_token_s * (context + read)
            + model.prefill_pair_s * pairs
        )
        without.append(model.base[writers] + model.seq_s * writers + model.kv_token_s * context if writers else 0.0)
        read += q
    return with_it, without


@pytest.mark.parametrize("budget", [8192, 2048, 512])
def test_chunked_it_stalls_those_who_write_by_the_time_that_its_chunks_take(budget: int) -> None:
    found, s = told(batching__max_num_batched_tokens=budget, batching__max_num_seqs=64)
    steps, without = chunk_times(s, found, budget)
    assert found.prompt_tokens == 30_000
    assert found.steps == len(steps) == -(-30_000 // (budget - WRITERS))
    assert found.reading_s == pytest.approx(sum(steps), rel=0.01)
    assert found.stall_s == pytest.approx(sum(steps) - sum(without), rel=0.01)
    assert found.longest_s == pytest.approx(max(steps), rel=0.01)
    for times in found.tokens_s:
        gaps = np.diff(times)[(times[1:] > found.read_from_s + 1e-9) & (times[1:] <= found.first_word_s + 1e-9)]
        np.testing.assert_allclose(gaps, steps, rtol=0.01, err_msg="each of them makes one token a chunk")


def test_with_prompts_first_everybody_stands_still_for_all_of_it() -> None:
    found, s = told(batching__policy="prefill_first")
    (step,), _ = chunk_times(s, found, 30_000)
    assert found.steps == 1
    assert found.reading_s == pytest.approx(step, rel=0.01)
    assert found.stall_s == pytest.approx(step, rel=0.01)
    assert found.longest_s == pytest.approx(step + found.usual_s, rel=0.01), "and then they make a token"
    assert found.longest_s > 2.5 * told()[0].longest_s


def test_a_static_group_goes_on_and_the_newcomer_waits() -> None:
    found, _ = told(batching__policy="static")
    assert found.stall_s == 0.0
    assert found.longest_s == pytest.approx(found.usual_s, rel=0.02)
    assert found.read_from_s >= found.tokens_s[-1][-1]


def test_smaller_chunks_shorten_the_pause_and_delay_the_first_word() -> None:
    coarse, fine = told()[0], told(batching__max_num_batched_tokens=1024)[0]
    assert fine.longest_s < coarse.longest_s / 5
    assert fine.first_word_s > coarse.first_word_s
    assert coarse.usual_s == pytest.approx(fine.usual_s, rel=0.02)


@pytest.mark.parametrize("tokens", [1, 500, 30_000, 200_000])
@pytest.mark.parametrize("policy", ["chunked", "prefill_first", "static"])
def test_every_length_is_drawn(tokens: int, policy: str) -> None:
    found, _ = told(tokens, batching__policy=policy)
    assert found.prompt_tokens <= found.wanted_tokens == tokens
    assert len(found.tokens_s) == WRITERS
    assert all((np.diff(times) > 0).all() for times in found.tokens_s)
    assert all(times.size >= 24 for times in found.tokens_s)
    assert found.long_tokens_s.size == 6
    assert found.first_word_s > found.read_from_s >= 0.0
    assert sum(times.size for times in found.tokens_s) < 5_000, "a chart can show it"


def test_more_than_there_is_room_for_is_cut() -> None:
    found, _ = told(batching__kv_capacity_tokens=20_000)
    assert 15_000 < found.prompt_tokens < 20_000
    few, _ = told(batching__max_num_seqs=2)
    assert len(few.tokens_s) == 1
    reserved, _ = told(batching__kv_policy="reserve", batching__reserve_output_tokens=8)
    assert len(reserved.tokens_s[0]) >= 24


def test_pipelines_are_refused() -> None:
    with pytest.raises(ScenarioError, match="several batches under way"):
        told(parallelism__pp=2)


@pytest.mark.parametrize("changes", [{"batching__max_num_seqs": 1}, {"batching__kv_capacity_tokens": 1_000}])
def test_no_room_for_two_is_said(changes: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="no room for a long prompt"):
        told(**changes)
