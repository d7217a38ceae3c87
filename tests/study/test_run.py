"""From a scenario to its result: reproducible, cut short on request, with the same tables however steps are kept."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.scenario import Scenario
from engine.study import run, simulate
from engine.traffic import Trace, TraceError, read_trace

HEAD = b"arrival_s,prompt_tokens,output_tokens\n"


def scenario(**changes: Any) -> Scenario:
    """Two busy replicas for a minute and a half, three seeds."""
    return Scenario.from_dict(
        {
            "traffic": {"rate_rps": 8.0} if changes.get("traffic__process") != "trace" else {},
            "performance": {"kind": "linear", "overhead_s": 0.01, "token_s": 0.0001},
            "batching": {"max_num_seqs": 24, "max_num_batched_tokens": 1024, "kv_capacity_tokens": 60_000},
            "admission": {"max_outstanding": 26},
            "run": {"horizon_s": 90.0, "warmup_s": 10.0, "seeds": 3},
        }
    ).replace({path.replace("__", "."): value for path, value in changes.items()})


def trace(rows: str) -> Trace:
    return read_trace(HEAD + rows.encode())


def plain(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without the time that it took."""
    return summary | {"run": {key: value for key, value in summary["run"].items() if key != "wall_s"}}


def test_the_same_scenario_gives_the_same_result() -> None:
    first, again = simulate(scenario()), simulate(scenario())
    pd.testing.assert_frame_equal(first.requests, again.requests)
    pd.testing.assert_frame_equal(first.timeline, again.timeline)
    assert plain(first.summary()) == plain(again.summary())
    assert set(first.requests["state"]) == {"completed", "rejected", "unfinished"}, "it is no trivial case"


@pytest.mark.parametrize("routing", ["round_robin", "random"])
def test_a_seed_does_not_know_of_the_others(routing: str) -> None:
    together = simulate(scenario(fleet__routing__policy=routing)).requests
    for seed in (1, 2, 3):
        alone = simulate(scenario(fleet__routing__policy=routing, run__seeds=1, run__seed=seed)).requests
        part = together[together["seed"] == seed].reset_index(drop=True)
        pd.testing.assert_frame_equal(part, alone)


def test_steps_that_were_not_kept_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = simulate(scenario())
    monkeypatch.setattr(run, "KEEP_STEPS_OF", 0)
    made = simulate(scenario())
    pd.testing.assert_frame_equal(made.requests, kept.requests)
    pd.testing.assert_frame_equal(made.timeline, kept.timeline)
    assert plain(made.summary()) == plain(kept.summary())
    assert made.steps().lane.size == made.steps().lane.size == kept.steps().lane.size


class TestFirstAnswer:
    def test_the_beginning_of_the_whole(self) -> None:
        """Cut where the busiest seed has had 100 requests a replica; what ended before is as in the whole run."""
        whole = simulate(scenario()).requests
        result = simulate(scenario(), requests_per_lane=100)
        cut = result.scenario.run.horizon_s
        assert cut is not None
        assert 10.0 < cut < 90.0
        part = result.requests
        assert part.groupby("seed").size().max() == 200
        inside = whole[whole["arrival_s"] < cut].reset_index(drop=True)
        assert part["arrival_s"].tolist() == inside["arrival_s"].tolist()
        ended = (inside["left_s"] <= cut).to_numpy()
        pd.testing.assert_frame_equal(part[ended], inside[ended])
        assert set(part[~ended]["state"]) == {"unfinished"}

    def test_it_is_labelled(self) -> None:
        summary: Any = simulate(scenario(), requests_per_lane=100).summary()
        notes = [note for note in summary["notes"] if "first answer" in note]
        assert len(notes) == 1
        assert f"{summary['run']['horizon_s']:.0f} s" in notes[0]
        assert not simulate(scenario()).summary()["notes"]

    @pytest.mark.parametrize("changes", [{"traffic__rate_rps": 2.0}, {"run__warmup_s": 60.0}])
    def test_a_short_run_is_whole(self, changes: dict[str, Any]) -> None:
        """Few requests, or nothing much left after the warm-up: there is no point in cutting."""
        result = simulate(scenario(**changes), requests_per_lane=100)
        assert result.scenario.run.horizon_s == 90.0
        assert not result.notes


OPEN: dict[str, Any] = {"traffic__process": "trace", "run__horizon_s": None, "run__warmup_s": 0.0, "run__seeds": 1}


class TestTraces:
    def test_until_every_request_has_ended(self) -> None:
        """Steps of 1 s: the second request ends at 8 s, and nothing is left out."""
        profile = {"kind": "linear", "overhead_s": 1.0}
        result = simulate(scenario(**OPEN, performance=profile), trace("0,5,2\n5,5,3\n"))
        assert result.requests["finish_s"].tolist() == [2.0, 8.0]
        summary: Any = result.summary()
        assert summary["run"]["horizon_s"] == 8.0
        assert summary["throughput"]["output_tokens_per_s"] == 5 / 8
        json.dumps(summary, allow_nan=False)

    def test_a_single_request_at_zero(self) -> None:
        assert simulate(scenario(**OPEN), trace("0,5,2\n")).requests["state"].tolist() == ["completed"]

    @pytest.mark.parametrize("warmup", [5.0, 60.0])
    def test_a_warm_up_past_the_last_arrival(self, warmup: float) -> None:
        with pytest.raises(TraceError, match=r"run\.warmup_s: .* trace's last request"):
            simulate(scenario(**OPEN | {"run__warmup_s": warmup}), trace("0,5,2\n5,5,3\n"))

    def test_a_trace_that_is_longer_says_so(self) -> None:
        s = scenario(traffic__process="trace", run__horizon_s=4.0, run__warmup_s=0.0)
        notes = simulate(s, trace("0,5,2\n5,5,3\n")).notes
        assert len(notes) == 1, "once, not once a seed"
        assert "not simulated" in notes[0]

    def test_a_missing_trace(self) -> None:
        with pytest.raises(TraceError, match=r"traffic\.trace\.source"):
            simulate(scenario(**OPEN))


def test_nobody_comes() -> None:
    result = simulate(scenario(traffic__rate_rps=1e-6))
    assert "nothing to measure" in result.summary()["notes"][0]  # type: ignore[index]
    assert np.isfinite(result.capacity_rps or np.nan)
    assert len(result.requests) == 0


def test_rows_carry_their_class_and_seed() -> None:
    kinds = [{"name": "chat", "weight": 3.0}, {"name": "batch, at night", "weight": 1.0}]
    table = simulate(scenario(traffic__classes=kinds, run__seed=40)).requests
    assert sorted(set(table["seed"])) == [40, 41, 42]
    share = (table["class"] == "chat").mean()
    assert share == pytest.approx(0.75, abs=0.05)
    assert set(table["class"]) == {"chat", "batch, at night"}
