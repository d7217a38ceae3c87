"""Kubernetes' HPA v2, second half: how far a number of replicas may be followed, and how fast.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler/horizontal.go: `normalizeDesiredReplicas` (no `behavior`)
and `normalizeDesiredReplicasWithBehaviors` (with it).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from engine.scenario import Behavior


class Limits(Protocol):
    """What a HPA remembers of its past, and what it makes of the next wish."""

    def follow(self, t_s: float, current: int, wish: int, low: int, high: int) -> int:
        """The replicas to have from `t_s` on, with `current` until now and `wish` by the metrics. It is remembered."""
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """At most `value` pods, or percent, in any `period_s`."""

    kind: str
    """``Pods`` or ``Percent``."""
    value: float
    period_s: float = 15.0


@dataclass(frozen=True, slots=True)
class Rules:
    """One direction of a `behavior`: its stabilisation window, its policies, and which of them wins."""

    window_s: float
    policies: tuple[Policy, ...]
    select: str = "Max"
    """``Max``: the biggest change; ``Min``: the smallest; ``Disabled``: none."""


UP = Rules(0.0, (Policy("Pods", 4), Policy("Percent", 100)))
"""What a `behavior` says upward unless told otherwise."""
DOWN = Rules(300.0, (Policy("Percent", 100),))
"""What it says downward."""


@dataclass(frozen=True, slots=True)
class Change:
    """Replicas added (above 0) or removed (below 0) at `t_s`; or, of a recommendation, how many were wished for."""

    t_s: float
    replicas: int


def stabilized(current: int, wish: int, up_window: Iterable[int], down_window: Iterable[int]) -> int:
    """`current`, moved no further than every recommendation of a direction's window agrees to.

    `up_window` and `down_window` hold the recommendations younger than each direction's window, without the `wish`.
    """
    up = min([wish, *up_window])
    down = max([wish, *down_window])
    return min(max(current, up), down)


def limited(
    t_s: float, current: int, wish: int, low: int, high: int, changes: Iterable[Change], up: Rules, down: Rules
) -> int:
    """`wish`, as far as the policies of its direction and the bounds let it. A change exactly a period ago is over."""
    changes = list(changes)
    if wish > current:
        return min(wish, high, max(_reach(t_s, current, changes, up, 1), current))
    if wish < current:
        return max(wish, low, min(_reach(t_s, current, changes, down, -1), current))
    return wish


def _reach(t_s: float, current: int, changes: list[Change], rules: Rules, sign: int) -> int:
    """How far the policies let a change of this sign go."""
    if rules.select == "Disabled":
        return current
    ends = [_end(policy, current - _changed(t_s, policy.period_s, changes), sign) for policy in rules.policies]
    farthest = max if (rules.select == "Max") == (sign > 0) else min
    return farthest(ends)


def _changed(t_s: float, period_s: float, changes: list[Change]) -> int:
    return sum(change.replicas for change in changes if change.t_s > t_s - period_s)


def _end(policy: Policy, base: int, sign: int) -> int:
    """Where a policy lets a period end that began with `base` replicas. Percentages are rounded in favour of growth and
    of shrinking, so that neither gets stuck."""
    if policy.kind == "Pods":
        return base + sign * int(policy.value)
    end = base * (1 + sign * policy.value / 100)
    return math.ceil(end) if sign > 0 else int(end)


def legacy_up_limit(current: int) -> int:
    """How far one decision goes without a `behavior`: twice as many, or four."""
    return max(2 * current, 4)


class Plain:
    """A HPA without `behavior`: the highest recommendation of the window holds, and growth has one limit.

    Unlike with a `behavior`, a recommendation exactly as old as the window still counts.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._wishes: deque[Change] = deque()

    def follow(self, t_s: float, current: int, wish: int, low: int, high: int) -> int:
        """See `Limits`."""
        while self._wishes and self._wishes[0].t_s < t_s - self._window_s:
            self._wishes.popleft()
        held = max([wish, *(past.replicas for past in self._wishes)])
        self._wishes.append(Change(t_s, wish))
        return max(min(held, high, legacy_up_limit(current)), low)


class Behaving:
    """A HPA with `behavior`: a window and rate policies for each direction."""

    def __init__(self, up: Rules = UP, down: Rules = DOWN) -> None:
        self._up, self._down = up, down
        self._wishes: deque[Change] = deque()
        self._changes: deque[Change] = deque()
        self._memory_s = max(up.window_s, down.window_s)
        self._period_s = max(policy.period_s for policy in (*up.policies, *down.policies))

    @classmethod
    def of(cls, behavior: Behavior) -> Behaving:
        """As a manifest has it."""
        rules = (
            Rules(
                side.stabilizationWindowSeconds,
                tuple(Policy(p.type, p.value, p.periodSeconds) for p in side.policies),
                side.selectPolicy,
            )
            for side in (behavior.scaleUp, behavior.scaleDown)
        )
        return cls(*rules)

    def follow(self, t_s: float, current: int, wish: int, low: int, high: int) -> int:
        """See `Limits`."""
        held = stabilized(current, wish, self._younger(t_s, self._up.window_s), self._younger(t_s, self._down.window_s))
        self._wishes.append(Change(t_s, wish))
        end = limited(t_s, current, held, low, high, self._changes, self._up, self._down)
        if end != current:
            self._changes.append(Change(t_s, end - current))
        self._forget(t_s)
        return end

    def _younger(self, t_s: float, window_s: float) -> list[int]:
        return [past.replicas for past in self._wishes if past.t_s > t_s - window_s]

    def _forget(self, t_s: float) -> None:
        while self._wishes and self._wishes[0].t_s <= t_s - self._memory_s:
            self._wishes.popleft()
        while self._changes and self._changes[0].t_s <= t_s - self._period_s:
            self._changes.popleft()
