"""Single decisions of Kubernetes' HPA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hpa_limits import DOWN, UP, Change, Plain, Policy, Rules, limited, stabilized
from ..hpa_metrics import (
    TOLERANCE,
    Load,
    Number,
    average_ratio,
    by_average_value,
    by_pods,
    by_value,
    combined,
    utilization_ratio,
)
from .inputs import MOST_REPLICAS, Inputs

KINDS = ("resource", "pod", "object", "object_per_pod", "external", "external_per_pod")
PHASES = ("Running", "Pending", "Failed", "Succeeded", "Unknown")
SELECT = ("Max", "Min", "Disabled")
_FULL_PERCENT = 100
"""What a pod without a sample is taken to use of its request, unless the target is higher still."""


class Pods:
    """The pods of a case by position, sorted as Kubernetes' `groupPods` does. Samples beyond the last pod count too."""

    def __init__(self, inputs: Inputs, samples: int, by_cpu: bool) -> None:
        phase, ready = inputs.choices("phase", PHASES), inputs.flags("ready")
        deleted, hot = inputs.flags("deleted"), inputs.flags("hot")
        self.count = max(inputs.whole("current"), *(len(given) for given in (phase, ready, deleted, hot)))
        self.serving = self.ready = 0
        self.missing: list[int] = []
        self.unready: list[int] = []
        ignored = []
        for pod in range(self.count):
            its_phase, is_ready = _at(phase, pod, "Running"), _at(ready, pod, True)
            unready_cpu = by_cpu and (not is_ready or _at(hot, pod, False))
            self.serving += its_phase == "Running" and is_ready
            if _at(deleted, pod, False) or its_phase == "Failed":
                ignored.append(pod)
            elif its_phase == "Pending":
                self.unready.append(pod)
            elif pod >= samples:
                self.missing.append(pod)
            elif unready_cpu:
                self.unready.append(pod)
            else:
                self.ready += 1
        left_out = {*ignored, *self.unready}
        self.sampled = [index for index in range(samples) if index not in left_out]


def _at(values: Sequence[Any], index: int, default: Any) -> Any:
    return values[index] if index < len(values) else default


def decision(inputs: Inputs) -> dict[str, int]:
    """`k8s-hpa-v2`: one decision on one metric, or on the highest of `metrics`, each with keys of its own.

    A metric that has failed, with no sample of a ready pod or no request of some pod, leaves the replicas as they are.
    """
    current = inputs.whole("current")
    metrics = [Inputs({**inputs.values, **own.values}, own.where) for own in inputs.sections("metrics", [])]
    replicas = combined(current, [_by_metric(metric, current) for metric in metrics or [inputs]])
    return {"replicas": current if replicas is None else replicas}


def _by_metric(inputs: Inputs, current: int) -> int | None:
    kind = inputs.choice("kind", KINDS)
    levels, target = inputs.numbers("levels"), inputs.number("target", above=0)
    tolerance = inputs.number("tolerance", TOLERANCE)
    pods = Pods(inputs, len(levels), by_cpu=kind == "resource")
    if kind == "resource":
        loads = _resource_loads(inputs, pods, levels, target)
        return loads and by_pods(current, pods.ready, *loads, utilization_ratio(target), tolerance)
    if kind == "pod":
        sampled = Load(sum(levels[index] for index in pods.sampled), len(pods.sampled), len(pods.sampled))
        missing, unready = (Load(target * len(group), len(group), len(group)) for group in (pods.missing, pods.unready))
        return by_pods(current, pods.ready, sampled, missing, unready, average_ratio(target), tolerance)
    if not levels:
        return None
    value = sum(levels) if kind.startswith("external") else levels[0]
    if kind.endswith("per_pod"):
        return by_average_value(current, value, target, tolerance)
    return by_value(current, pods.serving, value, target, tolerance)


def _resource_loads(
    inputs: Inputs, pods: Pods, levels: Sequence[Number], target: Number
) -> tuple[Load, Load, Load] | None:
    """Sampled, missing and unready pods against their requests; ``None`` when a pod has no request."""
    requests = inputs.numbers("requests")
    if len(requests) < pods.count:
        return None
    known = [index for index in pods.sampled if index < len(requests)]
    sampled = Load(sum(levels[i] for i in known), sum(requests[i] for i in known), len(pods.sampled))
    full = max(_FULL_PERCENT, target)
    used = sum(requests[pod] * full // _FULL_PERCENT for pod in pods.missing)
    missing = Load(used, sum(requests[pod] for pod in pods.missing), len(pods.missing))
    return sampled, missing, Load(0, sum(requests[pod] for pod in pods.unready), len(pods.unready))


def stabilization(inputs: Inputs) -> dict[str, int]:
    """`k8s-hpa-v2 stabilization`: a wish, held back by recommendations [value, age] younger than the windows."""
    past = inputs.tuples("recommendations_value_age_s", ("value", "age_s"), [])
    aged = [(each.whole("value"), each.number("age_s")) for each in past]
    windows = inputs.number("up_window_s", UP.window_s), inputs.number("down_window_s", DOWN.window_s)
    up, down = ([value for value, age_s in aged if age_s < window_s] for window_s in windows)
    return {"replicas": stabilized(inputs.whole("current"), inputs.whole("desired"), up, down)}


def rate_limit(inputs: Inputs) -> dict[str, int]:
    """`k8s-hpa-v2 rate-limit`: a wish, held back by the policies of a direction after changes in their period."""
    up, down = UP, DOWN
    if inputs.choice("dirn", ("up", "down"), "up") == "up":
        up = Rules(UP.window_s, policies(inputs, "pol", UP), inputs.choice("sel", SELECT, "Max"))
    else:
        down = Rules(DOWN.window_s, policies(inputs, "pol", DOWN), inputs.choice("sel", SELECT, "Max"))
    changes = [Change(0.0, inputs.whole("up", 0)), Change(0.0, -inputs.whole("down", 0))]
    low, high = bounds(inputs)
    return {"replicas": limited(0.0, inputs.whole("cur"), inputs.whole("des"), low, high, changes, up, down)}


def policies(inputs: Inputs, key: str, usual: Rules) -> tuple[Policy, ...]:
    """Policies [Pods or Percent, value, period in seconds (15 if absent)]; the usual ones if the key is absent."""
    given = inputs.tuples(key, ("type", "value", "period_s"), [], optional=1)
    return (
        tuple(
            Policy(
                each.choice("type", ("Pods", "Percent")), each.number("value"), each.number("period_s", 15.0, above=0)
            )
            for each in given
        )
        or usual.policies
    )


def bounds(inputs: Inputs) -> tuple[int, int]:
    """`mn` and `mx`; absent: 1, and as many as there may be."""
    low, high = inputs.whole("mn", 1), inputs.whole("mx", MOST_REPLICAS)
    if low > high:
        raise inputs.error("mn", low, f"is above mx ({high})", "give mn at most mx")
    return low, high


def up_limit(inputs: Inputs) -> dict[str, int]:
    """`k8s-hpa legacy up-limit`: a wish without `behavior` and without a past."""
    current, most = inputs.whole("current"), inputs.whole("max", MOST_REPLICAS)
    followed = Plain(DOWN.window_s).follow(0.0, current, inputs.whole("desired"), inputs.whole("min", 1), most)
    return {"replicas": followed}
