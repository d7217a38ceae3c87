"""Two pools of replicas: what each can do, and what it did."""

from __future__ import annotations

from dataclasses import dataclass

from .spread import number
from .usage import Usage

POOLS = ("prefill", "decode")
"""Their names, in order: replicas that read prompts, replicas that write answers."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One of them."""

    replicas: int
    capacity_rps: float | None
    """Requests per second that one of its replicas gets through with an endless queue."""
    usage: Usage
    """Over the window, of its replicas alone."""

    def as_summary(self) -> dict[str, object]:
        """The summary's entry."""
        return {
            "replicas": self.replicas,
            "capacity_rps": number(self.capacity_rps),
            "utilization": self.usage.utilization,
            "mean_batch": self.usage.mean_batch,
            "limited_by": self.usage.limited_by,
        }
