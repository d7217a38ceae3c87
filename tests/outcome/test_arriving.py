"""What arrived, as the traffic page has it: the requests of the run itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from engine import Result, Scenario, simulate
from engine.outcome import SHARES, Arriving, arriving
from engine.outcome.story import story
from engine.scenario import preset
from engine.traffic import read_trace

FAST = {"performance": {"kind": "linear", "overhead_s": 0.001}}


@cache
def clumped(cv: float) -> tuple[Result, Arriving]:
    s = preset("average-lies").scenario.replace({**FAST, "traffic.cv": cv, "run.seeds": 8})
    result = simulate(s)
    return result, arriving(result)


def test_the_average_lies_only_when_clumped() -> None:
    """The same mean rate, another worst minute: gaps with a variation of 3 clump counts by 9, in long windows."""
    (_, even), (_, lies) = clumped(1.0), clumped(3.0)
    assert lies.clumps.rate_rps == pytest.approx(even.clumps.rate_rps, rel=0.03)
    assert even.clumps.dispersion[10.0] == pytest.approx(1.0, abs=0.15)
    assert lies.clumps.dispersion[60.0] == pytest.approx(9.0, rel=0.35)
    assert lies.clumps.gap_cv == pytest.approx(3.0, rel=0.1)
    assert lies.clumps.worst is not None
    assert even.clumps.worst is not None
    assert lies.clumps.worst - 1 > 1.5 * (even.clumps.worst - 1)


def test_seconds_and_minutes_are_the_first_run_s() -> None:
    result, found = clumped(3.0)
    a = result.run.attempts
    first = a.arrival_s[a.seed_index == 0]
    assert (found.seconds.width_s, found.slices.width_s) == (1.0, 60.0)
    assert np.array_equal(found.second_rps, np.histogram(first, np.arange(901))[0])
    assert np.array_equal(found.slice_rps * 60, np.histogram(first, np.arange(0, 901, 60))[0])
    assert found.worst_at_s == 60 * found.slice_rps.argmax()


def test_a_long_run_shows_the_highest_seconds() -> None:
    s = preset("average-lies").scenario.replace({**FAST, "run.horizon_s": 3600.0, "run.seeds": 1})
    result = simulate(s)
    found = arriving(result)
    each = np.histogram(result.run.attempts.arrival_s, np.arange(3601))[0]
    assert (found.seconds.width_s, found.second_rps.size) == (4.0, 900)
    assert np.array_equal(found.second_rps, each.reshape(-1, 4).max(axis=1))


def test_lengths_and_their_cells() -> None:
    result, found = clumped(3.0)
    a = result.run.attempts
    assert found.prompt is not None
    assert found.output is not None
    assert found.joint is not None
    assert found.prompt.mean == pytest.approx(a.prompt_tokens.mean())
    assert found.prompt.cv == pytest.approx(a.prompt_tokens.std() / a.prompt_tokens.mean())
    for share in (0.5, 0.9, 0.99):
        exact = np.quantile(a.output_tokens, share, method="inverted_cdf")
        assert found.output.quantile(share) == pytest.approx(exact, rel=0.05)
    assert found.prompt.tokens[-1] == a.prompt_tokens.max()
    assert (np.diff(SHARES) > 0).all()
    assert found.joint.share.sum() == pytest.approx(1.0)
    assert found.joint.share.sum(axis=0).size == found.joint.prompt_edges.size - 1
    assert found.joint.rank_correlation == pytest.approx(0.0, abs=0.05)


def test_long_prompts_with_long_answers() -> None:
    rows = "".join(f"{t},{10 + t * 7 % 100},{20 + 2 * (t * 7 % 100)}\n" for t in range(200))
    s = Scenario.from_dict({**FAST, "traffic": {"process": "trace"}, "run": {"horizon_s": None, "warmup_s": 0.0}})
    result = simulate(s, read_trace(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode()))
    found = arriving(result)
    assert found.joint is not None
    assert found.joint.rank_correlation == pytest.approx(1.0)
    assert found.clumps.span_s == 199.0, "up to the last arrival, not to the last answer"
    a = result.run.attempts
    assert stats.spearmanr(a.prompt_tokens, a.output_tokens).statistic == pytest.approx(1.0)


def test_retries_are_not_traffic() -> None:
    s = preset("retry-storm").scenario.replace({"run.seeds": 1, "run.horizon_s": 200.0})
    result = simulate(s)
    assert (result.run.attempts.attempt > 0).any()
    assert arriving(result).clumps.requests == (result.run.attempts.attempt == 0).sum()


def test_nothing_arrives() -> None:
    s = preset("monday").scenario.replace({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}, "run.seeds": 1})
    found = arriving(simulate(s))
    assert (found.prompt, found.output, found.joint, found.clumps.worst) == (None, None, None, None)
    assert found.worst_at_s == 0.0


def test_the_story_has_it() -> None:
    result, found = clumped(1.0)
    assert story(result).arriving.clumps == found.clumps
