"""`burstgpt`: the traces of a campus' ChatGPT and GPT-4 traffic; the first row is t = 0.

Columns and their meaning: github.com/HPMLL/BurstGPT (Wang et al., "BurstGPT", KDD 2025). Moments are seconds from
midnight of the first day. The third file has the two columns more that are optional here; sessions, models and kinds of
use are not looked at. A request that failed has 0 response tokens.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.traffic.traces.cells import SECONDS, TOKENS, WORDS
from engine.traffic.traces.format import Format
from engine.traffic.traces.recording import Recording
from engine.traffic.traces.table import columns_of, names_in, parts
from engine.traffic.traces.text import Text
from engine.traffic.traces.trace import Trace

_REQUIRED: Final = {
    "Timestamp": SECONDS,
    "Model": WORDS,
    "Request tokens": TOKENS,
    "Response tokens": TOKENS,
    "Total tokens": TOKENS,
    "Log Type": WORDS,
}
_OPTIONAL: Final = {"Session ID": WORDS, "Elapsed time": WORDS}
_COLUMNS: Final = {"arrival_s": "Timestamp", "prompt_tokens": "Request tokens", "output_tokens": "Response tokens"}
_HEADER: Final = ",".join(_REQUIRED)


def recognises(first_line: str) -> bool:
    """Whether the six columns of all releases are there, in any order."""
    return set(names_in(first_line)) >= set(_REQUIRED)


def read(text: Text) -> Trace:
    """Return the requests of a BurstGPT trace, seconds counted from its first row."""
    columns = columns_of(text, _REQUIRED, _OPTIONAL, f"{_HEADER}[,{','.join(_OPTIONAL)}]")
    recording = Recording(text, "burstgpt", _COLUMNS)
    start: np.float64 | None = None
    for part in parts(text, columns):
        numbers = {role: part.values[name].to_numpy(np.float64) for role, name in _COLUMNS.items()}
        start = numbers["arrival_s"][0] if start is None else start
        recording.add({**numbers, "arrival_s": numbers["arrival_s"] - start}, None, part)
    return recording.trace()


FORMAT: Final = Format("BurstGPT", _HEADER, recognises, read)
