"""A fleet that does what its controller says: replicas take a fixed time to start and leave at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.scenario import Autoscaler
from engine.serving import Controller, Reading, controller

Load = Callable[[float], float]
"""The metric's total at a moment."""


def build(policy: str, replicas: int = 1, **settings: Any) -> Controller:
    """A controller of a scenario's `autoscaler` section."""
    return controller(Autoscaler.model_validate({"policy": policy, **settings}), replicas)


def drive(
    it: Controller, replicas: int, total: Load, until_s: float, startup_s: float = 0.0, short: Load | None = None
) -> list[tuple[float, int]]:
    """(moment, replicas) of every tick at which the number wanted changes."""
    ready, starting = replicas, list[float]()
    found, wanted = [], replicas
    t_s = it.next_tick_s()
    while t_s <= until_s:
        ready += sum(at <= t_s for at in starting)
        starting = [at for at in starting if at > t_s]
        wish = it.decide(Reading(t_s, ready, len(starting), total(t_s), (short or total)(t_s)))
        if wish != wanted:
            found.append((t_s, wish))
        wanted = wish
        present = ready + len(starting)
        starting += [t_s + startup_s] * (wish - present)
        gone = max(present - wish, 0)
        kept = max(len(starting) - gone, 0)
        ready -= gone - (len(starting) - kept)
        starting = starting[:kept]
        if not startup_s:
            ready, starting = ready + len(starting), []
        t_s = it.next_tick_s(t_s)
    return found


def step(at_s: float, before: float, after: float) -> Load:
    """A load that changes once."""
    return lambda t_s: before if t_s < at_s else after
