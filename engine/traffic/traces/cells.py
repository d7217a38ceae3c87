"""What a cell of a trace's table may look like, and what to say about one that doesn't."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from engine.traffic.traces.trace import LONGEST_NAME

_NUMBER: Final = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
SPACES: Final = r" {0,99}+"
_DIGITS: Final = r"\d{1,400}+"  # more than any float has
# Spreadsheets and data frames write whole numbers as 374.0 where another cell of the column is empty.
_ZEROS: Final = r"(?:\.0{0,99}+)?"
_NAME_BYTES: Final = 4 * LONGEST_NAME  # a character takes up to four in UTF-8; characters are counted afterwards


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of cell. `plain` and `quoted` are regular expressions over bytes, without groups that capture.

    All repetitions are bounded and, within numbers, possessive (`{...}+`): however long a line, it isn't tried over and
    over, and a line that is accepted is short.
    `dtype` is what the fast parser makes of it. `kind` completes "is not", `hint` completes "expected".
    """

    plain: str
    quoted: str
    dtype: type
    kind: str
    hint: str

    def reason(self, cell: str) -> str:
        """Say what is wrong with a cell, given without its quotes; nothing when nothing is."""
        if re.fullmatch(self.plain.encode(), cell.encode()):
            return ""
        bare = cell.strip()
        if not bare:
            return f"is empty; expected {self.hint}"
        if self.dtype is float and _NUMBER.fullmatch(bare) and float(bare) < 0:
            return f"is negative; expected {self.hint}"
        return f"is not {self.kind}; expected {self.hint}"


def _number(pattern: str, kind: str, hint: str) -> Cell:
    return Cell(pattern + SPACES, f'"{SPACES}{pattern}{SPACES}"', float, kind, hint)


SECONDS: Final = _number(
    rf"\+?(?:{_DIGITS}(?:\.\d{{0,400}}+)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?",
    "a number",
    "seconds from the start, 0 or more",
)
TOKENS: Final = _number(rf"{_DIGITS}{_ZEROS}", "a whole number", "a whole number of tokens")
RANK: Final = _number(rf"[+-]?{_DIGITS}{_ZEROS}", "a whole number", "a whole number, lower is more urgent")
NAME: Final = Cell(
    plain=rf'[^",\x00-\x1f\x7f]{{1,{_NAME_BYTES}}}',
    quoted=rf'"(?:[^"\x00-\x1f\x7f]|""){{1,{_NAME_BYTES}}}"',
    dtype=object,
    kind="a class name",
    hint=f"1 to {LONGEST_NAME} printable characters",
)
WORDS: Final = Cell(
    plain=rf'[^",\x00-\x1f\x7f]{{0,{_NAME_BYTES}}}',
    quoted=rf'"(?:[^"\x00-\x1f\x7f]|""){{0,{_NAME_BYTES}}}"',
    dtype=object,
    kind="a short text",
    hint=f"up to {LONGEST_NAME} characters",
)
"""Anything that isn't looked at, and may be missing."""
_MOMENT = r"(?:19|20)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
MOMENT: Final = Cell(
    plain=_MOMENT,
    quoted=f'"{_MOMENT}"',
    dtype=object,
    kind="a date and time",
    hint="one like 2023-11-16 18:17:03.9799600",
)
