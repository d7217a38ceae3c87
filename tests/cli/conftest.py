"""Running the command line inside the test's own process, and a small scenario for it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main

SMALL: dict[str, Any] = {
    "name": "small",
    "traffic": {
        "rate_rps": 2.0,
        "classes": [
            {
                "prompt_tokens": {"dist": "constant", "value": 100},
                "output_tokens": {"dist": "constant", "value": 20},
            }
        ],
    },
    "performance": {"kind": "linear", "overhead_s": 0.01},
    "run": {"horizon_s": 30, "warmup_s": 5, "seeds": 2},
}


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as strict JSON, of a command that worked and had nothing to complain of."""
        assert (self.status, self.err) == (0, "")

        def refuse(name: str) -> None:
            pytest.fail(f"{name} is not JSON")

        return json.loads(self.out, parse_constant=refuse)

    @property
    def trouble(self) -> str:
        """The complaint of a command that refused its input: one to three lines, and nothing on standard output."""
        assert (self.status, self.out) == (2, "")
        assert 1 <= len(self.err.splitlines()) <= 3
        assert self.err.endswith("\n")
        assert "Traceback" not in self.err
        return self.err.removesuffix("\n")


Command = Callable[..., Answer]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """``run("validate", path)``; ``stdin`` holds the bytes on standard input."""

    def run_(*arguments: object, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))
        status = main([str(argument) for argument in arguments])
        return Answer(status, *capsys.readouterr())

    return run_


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file with the small scenario."""
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    return path
