"""Comma-separated tables, read fast and judged exactly.

The columns give a grammar for a whole line, as one regular expression. It runs over millions of lines at the speed of
C, and where it stops is the first line that isn't as it should be. Everything before it can be handed to a fast parser
that is more lenient; only that one line is looked at cell by cell, to say what is wrong with it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

import pandas as pd

from engine.traffic.traces.cells import SPACES, WORDS, Cell
from engine.traffic.traces.text import Block, Text, show
from engine.traffic.traces.trace import TraceError

_LONGEST_LINE = 10_000  # characters; a real one has less than a hundred


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name in the header, what its cells look like, and whether anything is made of them."""

    name: str
    cell: Cell
    used: bool = True


class Part:
    """Consecutive rows of a table: `values` by column that is used, and what stands in the file, for messages."""

    def __init__(self, block: Block, columns: Sequence[Column]) -> None:
        self._block = block
        self._names = [column.name for column in columns]
        self.values: pd.DataFrame = pd.read_csv(
            BytesIO(block.data[block.start : block.end]),
            header=None,
            names=self._names,
            usecols=[column.name for column in columns if column.used],
            dtype={column.name: column.cell.dtype for column in columns},
            skipinitialspace=True,
            na_filter=False,
            engine="c",
        )

    def fault(self, row: int, column: str, reason: str) -> TraceError:
        """Return the error that says what is wrong with one cell; rows count from 0 in this part."""
        number, line = self._block.row(row)
        return TraceError(f"trace line {number}: {column}: {show(_cells(line)[self._names.index(column)])} {reason}")


def names_in(first_line: str) -> list[str]:
    """Return the column names in a header line, without quotes and the spaces around them."""
    try:
        return [name.strip() for name in next(csv.reader([first_line]), [])]
    except csv.Error:
        return []


def columns_of(text: Text, required: Mapping[str, Cell], optional: Mapping[str, Cell], expected: str) -> list[Column]:
    """Return the columns that the header names, in its order.

    Raises `TraceError` for one that is neither required nor optional, and for one that stands twice.
    """
    cells = {**required, **optional}
    names = names_in(text.first_line)
    for i, name in enumerate(names):
        if name not in cells or name in names[:i]:
            fault = "stands twice" if name in cells else "is not known"
            raise TraceError(f"trace line 1: column {show(name)} {fault}; expected {expected}")
    return [Column(name, cells[name], used=cells[name] is not WORDS) for name in names]


def parts(text: Text, columns: Sequence[Column]) -> Iterator[Part]:
    """Yield the rows of a table in order, a few megabytes of text at a time; `columns` are in the file's order.

    Empty lines are skipped. Raises `TraceError` for the first line that isn't as it should be, after the rows before it
    were yielded.
    """
    grammar = re.compile(_grammar(columns))
    for block in text.blocks():
        match = grammar.match(block.data, block.start, block.end)
        readable = match.end() if match else block.start
        good = block.until(readable)
        if not good.blank:
            yield Part(good, columns)
        if readable < block.end:
            raise _explain(*block.line_at(readable), columns)


def _grammar(columns: Sequence[Column]) -> bytes:
    """As many good or empty lines as there are, without a way back (`*+`), so without memory of those behind."""
    cells = (rf"{SPACES}(?:{column.cell.plain}|{column.cell.quoted})" for column in columns)
    return rf"(?:{','.join(cells)}(?:\r?\n|\r?\Z)|\r?\n)*+".encode()


def _cells(line: str) -> list[str]:
    return next(csv.reader([line], skipinitialspace=True, strict=True))


def _explain(number: int, line: str, columns: Sequence[Column]) -> TraceError:
    """Return the error for a line that doesn't follow the grammar."""
    where, expected = f"trace line {number}", "expected " + ",".join(column.name for column in columns)
    if len(line) > _LONGEST_LINE:
        return TraceError(f"{where}: {len(line):,} characters are no row; {expected}")
    try:
        cells = _cells(line)
    except csv.Error:
        fault = "has a quotation mark out of place" if '"' in line else "can't be read"
        return TraceError(f"{where}: {show(line)} {fault}; {expected}")
    if len(cells) != len(columns):
        found = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
        return TraceError(f"{where}: {found} instead of {len(columns)}; {expected}")
    for column, cell in zip(columns, cells, strict=True):
        reason = column.cell.reason(cell)
        if reason:
            return TraceError(f"{where}: {column.name}: {show(cell)} {reason}")
    return TraceError(f"{where}: {show(line)} can't be read; {expected}")
