"""A trace file's bytes as checked text: one encoding, one kind of line, a first line to recognise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from engine.traffic.traces.trace import MOST_ROWS, TraceError

MOST_BYTES: Final = 2**30
_BLOCK_BYTES: Final = 4 * 2**20  # large enough for vectorised reading, small against the file
_SHOWN: Final = 80  # characters of a line or cell in a message
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Text:
    """A file in UTF-8. Its first line starts at byte `start`, its second at `body`.

    `line_ends` counts the line ends after the first line. `first_line` is shortened where it is very long.
    """

    data: bytes
    first_line: str
    start: int
    body: int
    line_ends: int
    sha256: str

    @property
    def most_rows(self) -> int:
        """No fewer than the rows that there are: the first line may be one, and the last may lack its end."""
        return self.line_ends + 2

    def blocks(self, header: bool = True) -> Iterator[Block]:
        """Cut what follows the first line into blocks; without a header the first line, too."""
        return _blocks(self.data, self.body, 2) if header else _blocks(self.data, self.start, 1)


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file, from byte `start` to `end`; the first of them is line `line` (the file's first is 1)."""

    data: bytes
    start: int
    end: int
    line: int

    @property
    def blank(self) -> bool:
        """Whether all lines are empty."""
        return not self.data[self.start : self.end].strip()

    def until(self, end: int) -> Block:
        """Return the lines before byte `end` of the file."""
        return Block(self.data, self.start, end, self.line)

    def row(self, index: int) -> tuple[int, str]:
        """Return the number and the text of the `index`-th line that isn't empty (from 0); slow, for messages."""
        lines = self.data[self.start : self.end].split(b"\n")
        filled = ((i, text) for i, raw in enumerate(lines) if (text := raw.removesuffix(b"\r")))
        for _ in range(index):
            next(filled)
        i, text = next(filled)
        return self.line + i, text.decode()

    def line_at(self, position: int) -> tuple[int, str]:
        """Return the number and the text of the line that starts at byte `position` of the file."""
        end = self.data.find(b"\n", position, self.end)
        raw = self.data[position : self.end if end < 0 else end]
        return self.line + self.data.count(b"\n", self.start, position), raw.removesuffix(b"\r").decode()


def load(source: bytes | Path) -> Text:
    """Read a file, or take its bytes, and check that it is text with something in it. Raises `TraceError`."""
    data = _bytes_of(source)
    start = len(_BOM) if data.startswith(_BOM) else 0
    if not data[start : start + 1_000_000].strip():
        raise TraceError("trace: the file is empty; expected a header line and one line per request")
    _check_encoding(data, start)
    first_end = data.find(b"\n", start)
    first_end = len(data) if first_end < 0 else first_end
    line_ends = data.count(b"\n", first_end + 1)
    if line_ends > MOST_ROWS:
        raise TraceError(
            f"trace: {line_ends:,} lines are above {MOST_ROWS:,}, the most requests that a run may have; cut the file"
        )
    # A header is short; of anything longer a message needs the beginning only.
    first_line = data[start : min(first_end, start + 10_000)].decode(errors="replace").removesuffix("\r")
    return Text(data, first_line, start, first_end + 1, line_ends, sha256(data).hexdigest())


def show(text: str) -> str:
    """Return a text quoted for a message, shortened where it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _blocks(data: bytes, start: int, line: int) -> Iterator[Block]:
    """Cut data from byte `start`, where line `line` starts, into blocks of whole lines, a few megabytes each."""
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK_BYTES) + 1 or len(data)
        yield Block(data, start, end, line)
        line += data.count(b"\n", start, end)
        start = end


def _check_encoding(data: bytes, start: int) -> None:
    if data.isascii():
        return
    for block in _blocks(data, start, 1):
        try:
            data[block.start : block.end].decode()
        except UnicodeDecodeError as error:
            line = block.line + data.count(b"\n", block.start, block.start + error.start)
            byte = data[block.start + error.start]
            raise TraceError(
                f"trace line {line}: byte 0x{byte:02x} is not UTF-8 text; expected a text file saved as UTF-8"
            ) from error


def _bytes_of(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        size, data = len(source), source
    else:
        try:
            size = source.stat().st_size
            data = source.read_bytes() if size <= MOST_BYTES else b""
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise TraceError(f"trace: {str(source)!r} can't be read ({reason}); give the path of a file") from error
    if size > MOST_BYTES:
        raise TraceError(f"trace: {size:,} bytes are above {MOST_BYTES:,}; cut the file")
    return data
