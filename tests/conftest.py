"""What all tests share: where the real data is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real traces, logs and measurements: HEADROOM_DATA, by default ../shared/data beside the project.

    Without it the test is skipped and says so; under CI it fails, so that a proof is never missing unnoticed.
    """
    path = Path(os.environ.get("HEADROOM_DATA") or ROOT.parent / "shared" / "data").resolve()
    if path.is_dir():
        return path
    message = f"real data not found in {path}: set HEADROOM_DATA to the folder that holds traces/"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
