"""Recorded traffic: readers of trace files.

A new format is one file with a `FORMAT` like that of `azure` plus one line in `FORMATS`.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Final

from engine.traffic.traces import azure, burstgpt, mooncake, requests
from engine.traffic.traces.format import Format
from engine.traffic.traces.text import Text, load, show
from engine.traffic.traces.trace import Trace, TraceError

FORMATS: Final = MappingProxyType[str, Format](
    {
        "requests": requests.FORMAT,
        "azure": azure.FORMAT,
        "burstgpt": burstgpt.FORMAT,
        "mooncake": mooncake.FORMAT,
    }
)


def read_trace(data: bytes | Path, format: str = "auto") -> Trace:
    """Return the trace in a file, given as its bytes or its path; `auto` recognises the format by the first line.

    The text is UTF-8, with or without a byte order mark, with Unix or Windows line ends. Raises `TraceError` with one
    line that names the first line at fault (the file's first is 1), what is wrong there and what was expected.
    """
    if format != "auto" and format not in FORMATS:
        raise TraceError(f"traffic.trace.format: {format!r} is not known; expected auto, {', '.join(FORMATS)}")
    text = load(data)
    return FORMATS[_recognised(text) if format == "auto" else _confirmed(text, format)].read(text)


def _recognised(text: Text) -> str:
    for name, format in FORMATS.items():
        if format.recognises(text.first_line):
            return name
    known = " or ".join(f"{format.first_line} ({name})" for name, format in FORMATS.items())
    raise TraceError(f"trace line 1: {show(text.first_line)} is the header of no known format; expected {known}")


def _confirmed(text: Text, name: str) -> str:
    if not FORMATS[name].recognises(text.first_line):
        raise TraceError(
            f"trace line 1: {show(text.first_line)} is not the header of format {name}; "
            f"expected {FORMATS[name].first_line}, or traffic.trace.format auto"
        )
    return name


__all__ = ["FORMATS", "Format", "Trace", "TraceError", "read_trace"]
