"""The command line as a process of its own: exit statuses and streams as a shell sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.conftest import SMALL

ROOT = Path(__file__).resolve().parents[2]


def engine(*arguments: object, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    """``python -m engine`` with everything captured; warnings would be seen on standard error."""
    command = [sys.executable, "-W", "always", "-m", "engine", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, check=False, timeout=120, env=environment, **settings)


def test_a_whole_run(tmp_path: Path) -> None:
    table = tmp_path / "requests.csv"
    done = engine("simulate", "-", "--requests", table, "--set", "name=Ü", input=json.dumps(SMALL).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    summary = json.loads(done.stdout)
    assert summary["run"]["simulated_requests"] == len(table.read_text().splitlines()) - 1


def test_bad_input(tmp_path: Path) -> None:
    done = engine("simulate", "missing.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == [
        "missing.json can't be read: no such file or directory; give a scenario file"
    ]


def test_a_reader_that_has_had_enough() -> None:
    """Closing the pipe early is no fault: no complaint, and no traceback at exit."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "engine", "presets", "monday"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=120, cwd=ROOT)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
