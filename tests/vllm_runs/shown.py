"""Writes what the app shows of the recorded runs: `python -m tests.vllm_runs.shown` (reads `HEADROOM_DATA`).

Each run as it was recorded, served again with the step times fitted to it, and predicted: the model, the accelerators
and the server's settings in the app's own scenario, nothing fitted to the run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.vllm_runs.draw import TITLES
from tests.vllm_runs.recorded import RUNS, Floats, Recorded, data_folder, read
from tests.vllm_runs.replay import figures, replay, stored_profile
from tests.vllm_runs.test_prediction import settings

FILE = Path(__file__).resolve().parents[2] / "engine" / "study" / "recorded_runs.json"
EVERY = 2
"""Seconds between two points of a curve."""


def content(recorded: Recorded) -> dict[str, Any]:
    """One run of the file: figures of the three sides in seconds, and their curves every `EVERY` seconds."""
    profile = stored_profile(recorded.name)
    sides = {"fitted": replay(recorded, profile), "predicted": replay(recorded, profile, settings(recorded.name))}
    named = {name: figures(recorded, ours) for name, ours in sides.items()}
    return {
        "title": TITLES[recorded.name],
        "figures": {
            "name": [figure.name for figure in named["fitted"]],
            "recorded": [round(figure.real, 2) for figure in named["fitted"]],
            **{name: [round(figure.ours, 2) for figure in found] for name, found in named.items()},
        },
        "time_s": _thinned(recorded.tick_s, 2),
        "running": {"recorded": _thinned(recorded.running), **{k: _thinned(v.running) for k, v in sides.items()}},
        "waiting": {"recorded": _thinned(recorded.waiting), **{k: _thinned(v.waiting) for k, v in sides.items()}},
    }


def _thinned(values: Floats, digits: int = 1) -> list[float]:
    return np.round(values[::EVERY], digits).tolist()


def main() -> None:
    """Serve both runs again, and write the file."""
    runs = [content(read(data_folder(), name)) for name in RUNS]
    FILE.write_text(json.dumps(runs, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
