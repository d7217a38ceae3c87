"""What the fleet costs, and how much of that pays for capacity that the average traffic doesn't need."""

from __future__ import annotations

from dataclasses import dataclass

from engine.machine import ReplicaModel, hourly_price
from engine.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars; ``None`` where no price is known or nothing was produced."""

    per_hour: float | None
    per_million_output_tokens: float | None
    spare_share: float | None
    """1 - offered requests per second / capacity of the fleet, at least 0."""

    def as_summary(self) -> dict[str, float | None]:
        """The summary's entry."""
        return {
            "per_hour": self.per_hour,
            "per_million_output_tokens": self.per_million_output_tokens,
            "spare_share": self.spare_share,
        }


def cost(
    s: Scenario,
    model: ReplicaModel,
    tokens_per_s: float | None,
    offered_rps: float | None,
    capacity_rps: float | None,
    paid: float,
    ready: float,
) -> Cost:
    """Cost of the scenario's fleet with ``capacity_rps`` requests per second and replica, of which ``paid`` were paid
    for and ``ready`` took requests on average."""
    price = hourly_price(s)[0]
    per_hour = None if price is None else price * model.accelerators * paid
    per_million = None
    if per_hour is not None and tokens_per_s:
        per_million = per_hour / 3600.0 / tokens_per_s * 1e6
    spare = None
    if offered_rps is not None and capacity_rps and ready:
        spare = max(0.0, 1.0 - offered_rps / (capacity_rps * ready))
    return Cost(per_hour, per_million, spare)
