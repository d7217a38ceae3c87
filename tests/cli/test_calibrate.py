"""``calibrate``: scores and constants from a table of measurements, and what it says of a bad one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.machine.constants import shipped
from tests.cli.conftest import Command
from tests.machine.calibration.conftest import COLUMNS, text_of

TABLE = [{"concurrency": n, "value": 12.0 + n / 8} for n in (4.0, 16.0, 64.0)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text_of(*TABLE, {"gpu": "Abacus"}), encoding="utf-8")
    return path


def test_evaluate_prints_scores(run: Command, table: Path) -> None:
    found = run("calibrate", "--evaluate", table).json
    assert (found["points"], found["excluded"]) == (3, {"accelerator not in the catalogue": 1})
    assert found["overall"]["deployments"] == 1


def test_fit_writes_the_same_constants_every_time(run: Command, table: Path, tmp_path: Path) -> None:
    texts = []
    for name in ("first.json", "second.json"):
        assert run("calibrate", "--fit", table, "--out", tmp_path / name).out == ""
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    found = json.loads(texts[0])
    assert list(found) == list(shipped())
    assert found["families"].keys() == shipped()["families"].keys()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("--evaluate", "none.csv"),
            "none.csv: can't be read: no such file or directory; give a CSV file of measurements",
        ),
        (("--fit", "none.csv", "--out", "x.json"), "none.csv: can't be read: no such file or directory"),
        (
            ("--fit", "none.csv", "--out", "nowhere/x.json"),
            "--out: nowhere/x.json can't be written: there is no such folder",
        ),
        (("--evaluate", "none.csv", "--out", "x.json"), "--out: x.json goes with --fit only; leave it out"),
        ((), "one of the arguments --evaluate --fit --cross-validate is required"),
    ],
)
def test_says_what_is_wrong(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("calibrate", *arguments).trouble.startswith(complaint)


def test_a_bad_cell_is_named(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text_of({}, {"value": "fast"}, columns=COLUMNS), encoding="utf-8")
    said = run("calibrate", "--evaluate", path).trouble
    assert said == f"{path}: row 2, value: 'fast' is not a number; give one, or nothing"
    path.write_text(text_of({"gpu": "Abacus"}), encoding="utf-8")
    assert "has no row that can be fitted" in run("calibrate", "--fit", path, "--out", tmp_path / "x.json").trouble
