"""Two recorded vLLM runs, served again with a profile fitted to each: the rules of batching make the real curves.

The profiles come from `fit.py`. `docs/accuracy.md` shows the figures, written by `draw.py`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.vllm_runs import draw
from tests.vllm_runs.draw import Replays, replays
from tests.vllm_runs.recorded import RUNS
from tests.vllm_runs.replay import CORRELATED_ABOVE, correlation, figures, reaches, replay, stored, stored_profile

pytestmark = pytest.mark.data

AGAIN = "write it again with `python -m tests.vllm_runs.draw`"
TOLD_APART = {"reserve", "static"}
"""Rules that can't be fitted to the runs. `prefill_first` can: prompts are a small part of their work."""


@pytest.fixture(scope="module")
def runs(data_dir: Path) -> Replays:
    return replays(data_dir)


@pytest.mark.parametrize("name", RUNS)
def test_the_recording_is_whole(runs: Replays, name: str) -> None:
    recorded, _ = runs[name]
    assert recorded.arrival_s.size == 300
    assert (np.diff(recorded.arrival_s) >= 0).all()
    times = (recorded.arrival_s, recorded.queued_s, recorded.scheduled_s, recorded.first_token_s, recorded.finish_s)
    for earlier, later in pairwise(times):
        assert (earlier <= later + 1e-6).all()
    assert recorded.kv_capacity_tokens == (41408 if name.startswith("RTX4090") else None)


@pytest.mark.parametrize("name", RUNS)
def test_makespan_and_percentiles(runs: Replays, name: str) -> None:
    recorded, ours = runs[name]
    assert ours.completed == recorded.arrival_s.size
    found = figures(recorded, ours)
    print(draw.figures_table(recorded, ours))
    assert [f.name for f in found] == ["makespan", "TTFT p50", "TTFT p95", "E2E p50", "E2E p95"]
    assert [f.within for f in found] == [0.01, 0.06, 0.06, 0.06, 0.06]
    assert not [f for f in found if abs(f.difference) > f.within]


@pytest.mark.parametrize("name", RUNS)
def test_running_and_waiting_follow_the_recorded_curves(runs: Replays, name: str) -> None:
    recorded, ours = runs[name]
    assert CORRELATED_ABOVE == 0.95
    assert correlation(ours.running, recorded.running) > CORRELATED_ABOVE
    assert correlation(ours.waiting, recorded.waiting) > CORRELATED_ABOVE


def test_the_full_kv_cache_preempts_as_many(runs: Replays) -> None:
    """Requests that have begun and don't run, at each tick: the pile of preempted ones, known from the time stamps."""
    recorded, ours = runs["RTX4090_Llama-3.1-8B"]
    assert ours.preemptions > 0
    assert correlation(ours.kv_usage, recorded.kv_usage) > CORRELATED_ABOVE
    begun = [
        np.array([((scheduled <= t) & (finish > t)).sum() for t in recorded.tick_s]) - running
        for scheduled, finish, running in (
            (ours.scheduled_s, ours.finish_s, ours.running),
            (recorded.scheduled_s, recorded.finish_s, recorded.running),
        )
    ]
    assert begun[1].max() == 18
    assert begun[0].max() == pytest.approx(18, abs=2)
    assert begun[0].mean() == pytest.approx(begun[1].mean(), abs=0.5)


@pytest.mark.parametrize("name", RUNS)
def test_the_choice_of_clock_does_not_matter(runs: Replays, name: str) -> None:
    """Arrivals as the front end stamped them, or as the scheduler did up to a step later."""
    recorded, _ = runs[name]
    assert reaches(recorded, replay(recorded, stored_profile(name), arrival_s=recorded.queued_s))


@pytest.mark.parametrize("name", RUNS)
def test_no_coefficient_is_better_than_the_data_sheet(name: str) -> None:
    run = stored()[name]
    for profile in (run["profile"], *(rule["profile"] for rule in run["other_rules"])):
        assert not [key for key, least in run["least"].items() if profile[key] < least]


@pytest.mark.parametrize("name", RUNS)
def test_other_rules_do_not_fit(runs: Replays, name: str) -> None:
    """Six coefficients can't make up for a wrong rule, even fitted under it."""
    recorded, _ = runs[name]
    others = [rule for rule in stored()[name]["other_rules"] if TOLD_APART & set(rule["changes"].values())]
    assert others
    for rule in others:
        assert not reaches(recorded, draw.other_replay(recorded, rule)), rule["changes"]


def test_the_page_shows_these_figures(runs: Replays) -> None:
    page = draw.PAGE.read_text()
    assert page == draw.filled(page, draw.blocks(runs)), AGAIN
    for name, pair in runs.items():
        assert f"(img/{draw.image(name).name})" in page
        assert draw.image(name).read_text() == draw.svg(*pair), AGAIN
