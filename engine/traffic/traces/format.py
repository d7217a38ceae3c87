"""What a trace format has to provide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.traffic.traces.text import Text
from engine.traffic.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class Format:
    """A way in which traces are written.

    title: whose format. first_line: what a file's first line looks like, in words. recognises: whether a first line is
    of this format. read: from the text to the trace; raises `TraceError`.
    """

    title: str
    first_line: str
    recognises: Callable[[str], bool]
    read: Callable[[Text], Trace]
