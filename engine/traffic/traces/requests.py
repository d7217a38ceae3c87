"""`requests`: one line a request, under the names that this project uses; times are as given."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.traffic.traces.cells import NAME, RANK, SECONDS, TOKENS
from engine.traffic.traces.format import Format
from engine.traffic.traces.recording import Recording
from engine.traffic.traces.table import columns_of, names_in, parts
from engine.traffic.traces.text import Text
from engine.traffic.traces.trace import Trace

_REQUIRED: Final = {"arrival_s": SECONDS, "prompt_tokens": TOKENS, "output_tokens": TOKENS}
_OPTIONAL: Final = {"cached_prefix_tokens": TOKENS, "priority": RANK, "class": NAME}
_HEADER: Final = f"{','.join(_REQUIRED)}[,{','.join(_OPTIONAL)}]"


def recognises(first_line: str) -> bool:
    """Whether the required columns are there; they and the optional ones may come in any order."""
    return set(names_in(first_line)) >= set(_REQUIRED)


def read(text: Text) -> Trace:
    """Return the requests of a table with a column for each property of a request."""
    columns = columns_of(text, _REQUIRED, _OPTIONAL, _HEADER)
    names = [column.name for column in columns]
    recording = Recording(text, "requests", {name: name for name in names})
    for part in parts(text, columns):
        numbers = {name: part.values[name].to_numpy(np.float64) for name in names if name != "class"}
        classes = part.values["class"].to_numpy(np.object_) if "class" in names else None
        recording.add(numbers, classes, part)
    return recording.trace()


FORMAT: Final = Format("a plain table of requests", _HEADER, recognises, read)
