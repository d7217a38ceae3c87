"""Every operator's case is accounted for: a test and its figures, or a reason in `docs/cases.md`."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from .build import figures

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "cases.md"


def listed(heading: str) -> list[int]:
    """The ids in the first column of the table under a heading of the page."""
    part = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [int(i) for i in re.findall(r"^\| (\d+) \|", part, re.MULTILINE)]


def test_every_case_shown_has_a_test_and_its_figures() -> None:
    sources = "\n".join(path.read_text() for path in HERE.glob("test_*_cases.py"))
    tested = {int(i) for i in re.findall(r"^def test_(\d+)_", sources, re.MULTILINE)}
    assert set(listed("Shown")) == set(figures()) == tested - set(listed("Left out"))
    assert len(figures()) >= 12


@pytest.mark.data
def test_every_case_is_shown_or_left_out(data_dir: Path) -> None:
    with (data_dir / "operator_cases.csv").open(newline="") as file:
        known = sorted(int(row["id"]) for row in csv.DictReader(file))
    assert sorted(listed("Shown") + listed("Left out")) == known
