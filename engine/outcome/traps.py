"""Settings with which an autoscaler misleads itself, told where a run shows that it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.scenario import Autoscaler, Scenario
from engine.serving import Lives

Kind = Literal["never_up", "saturates", "one_request", "over_orders", "flaps", "called_off"]
"""never_up: the metric's highest value is within the tolerance of the target. saturates: it can't ask for more than a
few times what is there. one_request: a single request is enough to reach the maximum. over_orders: starting replicas
aren't counted, so a shortage is answered again at every tick. flaps: replicas left and were ordered anew within the
time that a start takes, and the rule waits less than that before it removes any. called_off: starts ended before they
were of use."""

_NO_HEADROOM = 4.0
"""A metric that reaches so many times its target can ask for all that is needed."""


@dataclass(frozen=True, slots=True)
class Trap:
    """One of them, and the figure that shows it."""

    kind: Kind
    value: float
    """never_up, saturates: the metric's highest value per target. one_request: the least target at which one request
    wouldn't do. over_orders: the most replicas on their way at once. flaps, called_off: how many replicas."""


def traps(s: Scenario, lives: Lives) -> tuple[Trap, ...]:
    """The traps that a scenario's run fell into, the gravest first; all runs together."""
    a = s.autoscaler
    found: list[Trap] = []
    if a.policy != "schedule":
        found += _saturating(s)
        starting = _most_starting(lives)
        if not a.count_starting and starting > a.max_replicas // 2:
            found.append(Trap("over_orders", starting))
    startup = a.startup.provision_s + a.startup.image_pull_s + a.startup.weights_load_s + a.startup.warmup_s
    again = _ordered_again(lives, startup)
    if again and _patience_s(a) < startup:
        found.append(Trap("flaps", again))
    off = int((np.isinf(lives.ready_s) & np.isfinite(lives.gone_s)).sum())
    return (*found, Trap("called_off", off)) if off else tuple(found)


def _saturating(s: Scenario) -> list[Trap]:
    a = s.autoscaler
    highest = {"utilization": 1.0, "kv_usage": 1.0, "running": float(s.batching.max_num_seqs)}.get(a.metric)
    if highest is None:
        return []
    reach = highest / _aim(a)
    if reach <= 1.0 + _tolerance(a):
        return [Trap("never_up", reach)]
    if a.metric == "utilization":  # busy is busy, with one request as with a hundred
        return [Trap("one_request", highest / (1.0 + _tolerance(a)))]
    return [Trap("saturates", reach)] if reach < _NO_HEADROOM else []


def _aim(a: Autoscaler) -> float:
    """The value of the metric aimed at."""
    return a.target * a.knative.target_utilization_percent / 100 if a.policy == "knative" else a.target


def _tolerance(a: Autoscaler) -> float:
    return {"hpa": a.hpa.tolerance, "keda": a.hpa.tolerance, "aibrix": a.aibrix.tolerance}.get(a.policy, 0.0)


def _patience_s(a: Autoscaler) -> float:
    """How long a rule waits, at least, before it takes away what it doesn't need any more."""
    down = a.hpa.downscale_stabilization_s if a.hpa.behavior is None else 0.0
    if a.hpa.behavior is not None:
        down = float(a.hpa.behavior.scaleDown.stabilizationWindowSeconds)
    window = 60.0 if a.metric_window_s is None else a.metric_window_s
    return {
        "hpa": down,
        "keda": down,
        "knative": max(window, a.knative.scale_down_delay_s),
        "ray_serve": a.ray_serve.downscale_delay_s,
        "aibrix": a.aibrix.cooldown_down_s,
    }.get(a.policy, np.inf)


def _ordered_again(lives: Lives, startup_s: float) -> int:
    """Replicas that were removed less than a start before others were ordered."""
    count = 0
    for seed in np.unique(lives.seed):
        mine = lives.seed == seed
        left = np.minimum(lives.drained_from_s[mine], lives.gone_s[mine])
        left = np.sort(left[np.isfinite(left)])
        ordered = np.sort(lives.ordered_s[mine & (lives.ordered_s > 0)])
        following = np.searchsorted(ordered, left, side="right")
        some = following < ordered.size
        count += int((ordered[following[some]] - left[some] < startup_s).sum())
    return count


def _most_starting(lives: Lives) -> int:
    """The most replicas of a seed that were on their way at once."""
    most = 0
    until = np.minimum(lives.ready_s, lives.gone_s)
    for seed in np.unique(lives.seed):
        mine = lives.seed == seed
        begun, ended = np.sort(lives.ordered_s[mine]), np.sort(until[mine])
        at = np.arange(begun.size) + 1 - np.searchsorted(ended, begun, side="right")
        most = max(most, int(at.max(initial=0)))
    return most
