"""`azure`: the traces that Azure published of two LLM services; the first row is t = 0.

Columns and their meaning: github.com/Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md (Patel et al.,
"Splitwise", ISCA 2024). Moments have seven digits after the second; a zone, as in the traces of 2024, is taken into
account, and without one all are in the same zone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.traffic.traces.cells import MOMENT, TOKENS
from engine.traffic.traces.format import Format
from engine.traffic.traces.recording import Recording
from engine.traffic.traces.table import Column, names_in, parts
from engine.traffic.traces.text import Text
from engine.traffic.traces.trace import Trace

_CELLS: Final = {"TIMESTAMP": MOMENT, "ContextTokens": TOKENS, "GeneratedTokens": TOKENS}
_COLUMNS: Final = {"arrival_s": "TIMESTAMP", "prompt_tokens": "ContextTokens", "output_tokens": "GeneratedTokens"}


def recognises(first_line: str) -> bool:
    """Whether exactly the three columns are there, in any order."""
    return sorted(names_in(first_line)) == sorted(_CELLS)


def read(text: Text) -> Trace:
    """Return the requests of an Azure trace, seconds counted from its first row."""
    recording = Recording(text, "azure", _COLUMNS)
    start: np.int64 | None = None
    for part in parts(text, [Column(name, _CELLS[name]) for name in names_in(text.first_line)]):
        moment_ns = _nanoseconds(part.values["TIMESTAMP"])
        if moment_ns.size:
            start = moment_ns[0] if start is None else start
            # Differences of whole nanoseconds are exact; only the division rounds.
            numbers = {"arrival_s": (moment_ns - start) / 1e9}
            for role in ("prompt_tokens", "output_tokens"):
                numbers[role] = part.values[_COLUMNS[role]].to_numpy(np.float64)[: moment_ns.size]
            recording.add(numbers, None, part)
        if moment_ns.size < len(part.values):
            raise part.fault(moment_ns.size, "TIMESTAMP", f"is not in the calendar; expected {MOMENT.hint}")
    return recording.trace()


def _nanoseconds(cells: pd.Series) -> NDArray[np.int64]:
    """Return the moments in nanoseconds since 1970, up to the first that doesn't exist."""
    moments = pd.to_datetime(cells, format="ISO8601", utc=True, errors="coerce").dt.tz_localize(None)
    missing = moments.isna().to_numpy()
    end = int(missing.argmax()) if missing.any() else missing.size
    return np.asarray(moments.to_numpy("datetime64[ns]")[:end].view(np.int64))


FORMAT: Final = Format("Azure LLM inference trace", ",".join(_CELLS), recognises, read)
