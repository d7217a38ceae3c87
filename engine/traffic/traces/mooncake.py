"""`mooncake`: traces of the Kimi chat service, one JSON object a line; the first row is t = 0.

Keys and their meaning: github.com/kvcache-ai/Mooncake, FAST25-release/traces (Qin et al., "Mooncake", FAST 2025).
`timestamp` is in milliseconds. `hash_ids` name the prompt's blocks of 512 tokens, each together with all before it:
equal ids at the beginning are a shared prefix. Here a cache without limits, shared by everybody, holds the blocks of
every earlier row, failed ones included. Other keys are not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.traffic.traces.format import Format
from engine.traffic.traces.leading import SeenIds
from engine.traffic.traces.recording import Recording
from engine.traffic.traces.text import Block, Text, show
from engine.traffic.traces.trace import Trace, TraceError

BLOCK_TOKENS: Final = 512
_COLUMNS: Final = {
    "arrival_s": "timestamp",
    "prompt_tokens": "input_length",
    "output_tokens": "output_length",
    "cached_prefix_tokens": "hash_ids",
}
_LINE: Final = '{"timestamp": .., "input_length": .., "output_length": .., "hash_ids": [..]}'
_LONGEST_LINE: Final = 1_000_000  # bytes; the longest prompt there can be has 32,768 ids
_HUGE: Final = 1e300  # stands for numbers beyond, which are out of every range
_TOKENS: Final = "expected a whole number of tokens"


def recognises(first_line: str) -> bool:
    """Whether it begins like a JSON object; no table's header does."""
    return first_line.lstrip().startswith("{")


def read(text: Text) -> Trace:
    """Return the requests of a Mooncake trace, seconds counted from its first row."""
    recording, seen = Recording(text, "mooncake", _COLUMNS), SeenIds()
    start: np.float64 | None = None
    uncovered = rows = 0
    for block in text.blocks(header=False):
        part = _Part(block)
        if part.ids:
            time_ms, prompt, output = np.array(part.numbers, dtype=np.float64).T
            start = time_ms[0] if start is None else start
            counts = np.fromiter(map(len, part.ids), dtype=np.intp, count=len(part.ids))
            hits = BLOCK_TOKENS * seen.leading(_flat(part.ids, counts), counts)
            numbers = {"arrival_s": (time_ms - start) / 1000.0, "prompt_tokens": prompt, "output_tokens": output}
            # The last block of a prompt is rarely full, and one token is always worked on.
            numbers["cached_prefix_tokens"] = np.clip(hits, 0.0, np.maximum(prompt - 1.0, 0.0))
            recording.add(numbers, None, part)
            uncovered += int(np.count_nonzero(counts != np.ceil(prompt / BLOCK_TOKENS)))
            rows += counts.size
        if part.error:
            raise part.error
    trace = recording.trace()
    if not uncovered:
        return trace
    note = (
        f"In {uncovered:,} of {rows:,} rows of the trace hash_ids are not one id for each {BLOCK_TOKENS} tokens of the "
        "prompt: cached prefixes may be wrong."
    )
    return replace(trace, notes=(*trace.notes, note))


def _flat(ids: list[list[int]], counts: NDArray[np.intp]) -> NDArray[np.uint64]:
    return np.fromiter(chain.from_iterable(ids), dtype=np.uint64, count=int(counts.sum()))


class _Part:
    """The rows of a block up to the first that isn't as it should be: numbers, block ids, and the error about that."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self.numbers: list[tuple[float, float, float]] = []
        self.ids: list[list[int]] = []
        self.error: TraceError | None = None
        for position, line in _lines(block):
            try:
                row = _row(line)
            except _Unfit as unfit:
                self.error = TraceError(f"trace line {block.line_at(position)[0]}: {unfit}")
                return
            self.numbers.append(row[:3])
            self.ids.append(row[3])

    def fault(self, row: int, column: str, reason: str) -> TraceError:
        """Return the error that says what is wrong with one value; rows count from 0 in this part."""
        number, line = self._block.row(row)
        return TraceError(f"trace line {number}: {column}: {_shown(json.loads(line)[column])} {reason}")


class _Unfit(Exception):
    """A line that isn't a request; the message says why."""


def _lines(block: Block) -> Iterator[tuple[int, bytes]]:
    """Yield where each line that isn't empty begins in the file, and the line, one byte too long at most if long."""
    position = block.start
    while position < block.end:
        end = block.data.find(b"\n", position, block.end)
        end = block.end if end < 0 else end
        line = block.data[position : min(end, position + _LONGEST_LINE + 1)].removesuffix(b"\r")
        if line:
            yield position, line
        position = end + 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Unfit(f"a key stands twice; expected {_LINE}")
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def _row(line: bytes) -> tuple[float, float, float, list[int]]:
    """Return a line's time in milliseconds, prompt and answer in tokens, and block ids. Raises `_Unfit`."""
    if len(line) > _LONGEST_LINE:
        raise _Unfit(f"more than {_LONGEST_LINE:,} bytes are no row; expected {_LINE}")
    try:
        row = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise _Unfit(f"{show(line.decode())} is not JSON; expected {_LINE}") from error
    if type(row) is not dict:
        raise _Unfit(f"{show(line.decode())} is not a JSON object; expected {_LINE}")
    for key in _COLUMNS.values():
        if key not in row:
            raise _Unfit(f"{key} is missing; expected {_LINE}")
    return (
        _number(row, "timestamp", "a number", "expected milliseconds, 0 or more"),
        _number(row, "input_length", "a whole number", _TOKENS),
        _number(row, "output_length", "a whole number", _TOKENS),
        _ids(row["hash_ids"]),
    )


def _number(row: dict[str, Any], key: str, kind: str, hint: str) -> float:
    value = row[key]
    whole = type(value) is int or (type(value) is float and (key == "timestamp" or value.is_integer()))
    if not whole:
        raise _Unfit(f"{key}: {_shown(value)} is not {kind}; {hint}")
    if value < 0:
        raise _Unfit(f"{key}: {_shown(value)} is negative; {hint}")
    return float(min(value, _HUGE))


def _ids(value: Any) -> list[int]:
    if type(value) is list and (not value or ({*map(type, value)} == {int} and 0 <= min(value) <= max(value) < 2**64)):
        return value
    raise _Unfit(f"hash_ids: {_shown(value)} is not a list of block ids; expected whole numbers, 0 or more")


def _shown(value: Any) -> str:
    try:
        return show(json.dumps(value))
    except RecursionError:
        return "what stands there"  # lists in lists, a thousand deep


FORMAT: Final = Format("Mooncake, JSON lines", _LINE, recognises, read)
