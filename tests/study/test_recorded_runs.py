"""What the app shows of the recorded runs is what the recordings and the engine say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.study import SIDES, recorded_runs
from tests.vllm_runs.recorded import RUNS, read
from tests.vllm_runs.shown import FILE, content


def test_both_runs_are_there() -> None:
    assert len(recorded_runs()) == len(RUNS)
    for run in recorded_runs():
        for panel in (run.running, run.waiting):
            assert {panel[side].shape for side in SIDES} == {run.time_s.shape}
        assert abs(run.figures["makespan"]["fitted"] / run.figures["makespan"]["recorded"] - 1) < 0.01
        assert np.corrcoef(run.running["fitted"], run.running["recorded"])[0, 1] > 0.95


@pytest.mark.data
@pytest.mark.parametrize(("position", "name"), list(enumerate(RUNS)), ids=RUNS)
def test_the_file_is_up_to_date(data_dir: Path, position: int, name: str) -> None:
    assert content(read(data_dir, name)) == json.loads(FILE.read_text())[position], (
        "the constants or the engine changed: run `python -m tests.vllm_runs.shown`"
    )
