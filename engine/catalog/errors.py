"""What is wrong with a name or a row, for the caller to put under its own field's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `column` is empty when it is the name that is unknown; `value` is the offending value as text."""

    column: str
    value: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        first = " ".join(part for part in (self.value, self.reason) if part)
        where = f"{self.column}: " if self.column else ""
        return f"{where}{first}; {self.remedy}"


class CatalogError(ValueError):
    """An unknown name, or columns that don't describe a model or an accelerator. `faults` has one entry a fault."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)
