"""JSON that a person can read and compare line by line: one line for what has no structure inside."""

from __future__ import annotations

import json
from typing import Any

_WIDEST = 118


def readable(value: Any, indent: int = 0) -> str:
    """JSON text; an object or list that fits on a line stands on one."""
    flat = json.dumps(value, ensure_ascii=False)
    pad = " " * (indent + 1)
    if not isinstance(value, dict | list) or not value or len(flat) + indent <= _WIDEST:
        return flat
    if isinstance(value, list):
        inside = (readable(entry, indent + 1) for entry in value)
        return "[\n" + ",\n".join(pad + entry for entry in inside) + f"\n{' ' * indent}]"
    entries = (f"{pad}{json.dumps(key)}: {readable(entry, indent + 1)}" for key, entry in value.items())
    return "{\n" + ",\n".join(entries) + f"\n{' ' * indent}}}"
