"""What the app shows of published measurements: each beside what was predicted without its block.

`python -m engine.machine.calibration.shown TABLE.csv` writes ../published.json, which the app reads instead of the
table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.machine.calibration.rows import Point
from engine.machine.calibration.training import HeldOut, Training, by_block, cross_validate
from engine.machine.constants import class_of, family_of

FILE = Path(__file__).resolve().parent.parent / "published.json"

NAMES: dict[str, Callable[[Point], str]] = {
    "source": lambda p: p.source,
    "model": lambda p: p.model.name,
    "accelerator": lambda p: p.accelerator.name,
    "family": lambda p: family_of(p.accelerator),
    "kind": lambda p: class_of(p.model),
    "engine": lambda p: p.engine,
    "published_engine": lambda p: p.published_engine,
    "weight_dtype": lambda p: p.deployment.weight_dtype,
    "load": lambda p: p.load,
    "metric": lambda p: p.metric,
}
"""Columns of words: the file has each word once, and numbers into that list."""
NUMBERS: dict[str, Callable[[Point], float]] = {
    "tp": lambda p: p.deployment.tp,
    "prompt": lambda p: p.prompt,
    "output": lambda p: p.output,
    "seqs": lambda p: p.seqs,
    "measured": lambda p: p.value,
}


def columns(held: HeldOut) -> dict[str, Any]:
    """The file's content: `words` by column, `rows` by column. Values in seconds or tokens a second, 4 digits.

    `known` is 0 where nothing of the family, or nothing of the engine, was left to learn from.
    """
    words: dict[str, list[str]] = {}
    rows: dict[str, list[Any]] = {}
    for name, of in NAMES.items():
        column = [of(point) for point in held.points]
        words[name] = sorted(set(column))
        index = {word: number for number, word in enumerate(words[name])}
        rows[name] = [index[word] for word in column]
    for name, number_of in NUMBERS.items():
        rows[name] = [_short(number_of(point)) for point in held.points]
    ratios = (held.errors + 1).tolist()
    rows["predicted"] = [_short(point.value * ratio) for point, ratio in zip(held.points, ratios, strict=True)]
    rows["known"] = held.known.astype(int).tolist()
    return {"words": words, "rows": rows}


def _short(value: float) -> float | int:
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded == int(rounded) else rounded


def text(content: dict[str, Any]) -> str:
    """The file: a line a column."""
    parts = (
        f' "{part}": {{\n'
        + ",\n".join(f'  "{name}": {json.dumps(column, separators=(",", ":"))}' for name, column in columns.items())
        + "\n }"
        for part, columns in content.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(table: str) -> None:
    """Predict every block of a table by constants fitted to the others, and write the file."""
    FILE.write_text(text(columns(cross_validate(Training.read(table), by_block))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
