"""docs/accuracy.md shows what cross-validation found, as it ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.machine.evidence import held_out_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


def pair(limits: list[float] | None) -> str:
    return "-" if limits is None else f"{limits[0]:g} / {limits[1]:g}"


def line(row: dict[str, Any]) -> str:
    low, high = row["ci95"]
    figures = (
        row["class"],
        f"{row['median_ape']:.1f} % ({low:.1f} to {high:.1f})",
        f"{row['p90_ape']:.1f} %",
        f"{row['signed_median']:+.1f} %",
        pair(row.get("must")),
        pair(row.get("goal")),
        str(row["deployments"]),
        f"{row['n']:,}",
    )
    return f"| {' | '.join(figures)} |"


def test_the_page_shows_the_shipped_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text[text.index("<!-- held out -->") : text.index("<!-- end -->", text.index("<!-- held out -->"))]
    assert shown.splitlines()[3:] == [line(row) for row in held_out_table()]
