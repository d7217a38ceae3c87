"""Who decides how many replicas there are, and how long a new one takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Strict

from engine.scenario.errors import Problem, show
from engine.scenario.fields import DAY, HOUR, WEEK, Number, Section, item, param, section

MOST_REPLICAS = 4096


def _seconds(default: float, label: str, help: str, why: str, high: float = DAY, low: float = 0.0) -> Any:
    bounds: dict[str, Any] = {"low": low, "high": high, "usual": (low, min(high, HOUR))}
    return param(float(default), label=label, help=help, why=why, unit="s", step=1, **bounds)


def _number(default: Number, label: str, unit: str, low: Number, high: Number, help: str, why: str) -> Any:
    step = 1 if isinstance(default, int) or high >= 100 else 0.05
    return param(default, label=label, help=help, why=why, unit=unit, low=low, high=high, step=step)


class Startup(Section):
    """From the decision to a useful replica: four stages, one after the other."""

    provision_s: float = _seconds(240, "Getting a machine", "Until the machine is there.", "a cloud's usual answer")
    image_pull_s: float = _seconds(120, "Pulling the image", "Until the container runs.", "a large image, not cached")
    weights_load_s: float = _seconds(
        150, "Loading weights", "Until weights are in memory.", "70 GB from a network disk"
    )
    warmup_s: float = _seconds(30, "Warming up", "Until the first request is taken.", "graph capture and a test")
    cv: float = param(
        0.0,
        label="Variation of the start",
        unit="standard deviations per mean",
        low=0.0,
        high=10.0,
        step=0.1,
        usual=(0.0, 2.0),
        help="Coefficient of variation of the whole start.",
        why="a plain number to reason about",
    )


class Policy(Section):
    """A Kubernetes scaling policy: at most this much change a period."""

    type: Literal["Pods", "Percent"] = param(
        "Percent",
        label="Kind of limit",
        choices={"Pods": "number of replicas", "Percent": "share of the present replicas"},
        help="What the value counts.",
        why="Kubernetes' downward default",
    )
    value: int = _number(
        100, "Largest change", "pods or percent", 1, 1_000_000, "Change allowed a period.", "Kubernetes"
    )
    periodSeconds: int = _number(15, "Period", "s", 1, 1800, "Length of the period.", "Kubernetes")


class Scaling(Section):
    """Kubernetes' rules for one direction, under Kubernetes' own names."""

    stabilizationWindowSeconds: int = _number(
        0, "Stabilisation window", "s", 0, 3600, "Recommendations this old still count.", "Kubernetes: none upward"
    )
    selectPolicy: Literal["Max", "Min", "Disabled"] = param(
        "Max",
        label="Which policy wins",
        choices={"Max": "the biggest change", "Min": "the smallest change", "Disabled": "no change this way"},
        help="How several policies combine.",
        why="Kubernetes",
    )
    policies: tuple[Policy, ...] = section(
        (Policy(type="Pods", value=4), Policy(type="Percent", value=100)),
        label="Policies",
        shortest=1,
        longest=16,
        help="Limits on the speed of change.",
        why="Kubernetes: four pods or all of them, whichever is more",
    )


class ScalingDown(Scaling):
    """`Scaling`, with Kubernetes' defaults for scaling down."""

    stabilizationWindowSeconds: int = _number(
        300, "Stabilisation window", "s", 0, 3600, "Recommendations this old still count.", "Kubernetes"
    )
    policies: tuple[Policy, ...] = section(
        (Policy(),),
        label="Policies",
        shortest=1,
        longest=16,
        help="Limits on the speed of change.",
        why="Kubernetes: all at once",
    )


class Behavior(Section):
    """The `behavior` block of a HorizontalPodAutoscaler; it can be pasted from a manifest."""

    scaleUp: Scaling = section(Scaling(), label="Upward", help="Rules for adding replicas.", why="Kubernetes")
    scaleDown: ScalingDown = section(
        ScalingDown(), label="Downward", help="Rules for removing replicas.", why="Kubernetes"
    )


class Hpa(Section):
    """Kubernetes' horizontal pod autoscaler, v2."""

    tolerance: float = _number(
        0.1, "Tolerance", "share of the target", 0.0, 10.0, "Deviation that changes nothing.", "Kubernetes"
    )
    downscale_stabilization_s: float = _seconds(
        300, "Wait before scaling down", "The highest recommendation of this time holds.", "Kubernetes"
    )
    behavior: Behavior | None = section(
        None, label="Behaviour", null="absent", help="Limits on the speed of scaling.", why="absent in most manifests"
    )


class Keda(Section):
    """KEDA: from and to zero by itself, otherwise through the HPA."""

    polling_s: float = _seconds(30, "Polling", "How often the trigger is read.", "KEDA", low=0.1)
    cooldown_s: float = _seconds(300, "Cooldown", "Idle time before scaling to zero; nothing else.", "KEDA")
    activation: float = _number(
        0.0, "Activation", "units of the metric", 0.0, 1e9, "Value above which the first replica starts.", "KEDA"
    )


class Knative(Section):
    """Knative's pod autoscaler."""

    panic_window_percent: float = _number(
        10.0, "Panic window", "% of the stable window", 1.0, 100.0, "Length of the short window.", "Knative"
    )
    panic_threshold_percent: float = _number(
        200.0, "Panic threshold", "% of capacity", 110.0, 1000.0, "Demand at which panic starts.", "Knative"
    )
    target_utilization_percent: float = _number(
        70.0, "Target utilisation", "% of the target", 1.0, 100.0, "Share of the target aimed at.", "Knative"
    )
    max_scale_up_rate: float = _number(
        1000.0, "Fastest growth", "times", 1.01, 1e6, "Factor a tick, upward.", "Knative"
    )
    max_scale_down_rate: float = _number(
        2.0, "Fastest decline", "times", 1.01, 1e6, "Factor a tick, downward.", "Knative"
    )
    scale_down_delay_s: float = _seconds(
        0, "Wait before scaling down", "The highest of this time holds.", "Knative", HOUR
    )


class RayServe(Section):
    """Ray Serve's autoscaler."""

    upscale_delay_s: float = _seconds(30, "Wait before scaling up", "How long a wish must hold.", "Ray Serve")
    downscale_delay_s: float = _seconds(600, "Wait before scaling down", "How long a wish must hold.", "Ray Serve")
    upscaling_factor: float = _number(
        1.0, "Upward damping", "times", 0.01, 100.0, "Share of the wished growth that is made.", "Ray Serve"
    )
    downscaling_factor: float = _number(
        1.0, "Downward damping", "times", 0.01, 100.0, "Share of the wished decline that is made.", "Ray Serve"
    )


class Aibrix(Section):
    """AIBrix's APA."""

    tolerance: float = _number(
        0.1, "Tolerance", "share of the target", 0.0, 10.0, "Deviation that changes nothing.", "AIBrix"
    )
    cooldown_down_s: float = _seconds(300, "Cooldown", "Least time between removals.", "AIBrix")


ScheduleStep = Annotated[
    tuple[
        Annotated[float, item(label="From", help="When the number is wanted.", unit="s", low=0.0, high=WEEK)],
        Annotated[int, item(label="Replicas", help="How many.", unit="replicas", low=0, high=MOST_REPLICAS)],
    ],
    Strict(False),
]


class Schedule(Section):
    """Replicas by the clock."""

    steps: tuple[ScheduleStep, ...] = param(
        (),
        label="Plan",
        longest=1000,
        help="A list of [moment in seconds, replicas], moments rising.",
        why="no plan unless you make one",
    )
    lead_s: float = _seconds(0, "Head start", "How long before each moment the order is given.", "on time, not early")

    def rules(self) -> Iterator[Problem]:
        for index, (before, after) in enumerate(pairwise(self.steps), start=1):
            if after[0] <= before[0]:
                yield Problem(
                    f"steps.{index}.0",
                    show(after[0]),
                    f"is not after {show(before[0])}",
                    "give the moments in rising order",
                )


class Autoscaler(Section):
    """The control loop, its rule, and what a start costs in time."""

    policy: Literal["none", "hpa", "knative", "keda", "ray_serve", "aibrix", "schedule"] = param(
        "none",
        label="Autoscaler",
        choices={
            "none": "a fixed number of replicas",
            "hpa": "Kubernetes HPA",
            "knative": "Knative",
            "keda": "KEDA",
            "ray_serve": "Ray Serve",
            "aibrix": "AIBrix",
            "schedule": "by the clock",
        },
        help="Whose rule decides.",
        why="first see what fixed replicas do",
    )
    metric: Literal["outstanding", "queue", "rate", "kv_usage", "utilization", "running"] = param(
        "outstanding",
        label="Metric",
        choices={
            "outstanding": "requests running and waiting, per replica",
            "queue": "requests waiting, per replica",
            "rate": "requests per second, per replica",
            "kv_usage": "share of KV in use",
            "utilization": "busy fraction",
            "running": "requests running, per replica",
        },
        help="What the rule looks at.",
        why="grows with the overload; others saturate",
    )
    target: float = param(
        32.0,
        label="Target",
        unit="units of the metric",
        low=1e-6,
        high=1e9,
        log=True,
        usual=(0.1, 512.0),
        help="The value of the metric aimed at.",
        why="a replica that is busy, not full",
    )
    interval_s: float | None = param(
        None,
        label="Interval",
        unit="s",
        low=0.01,
        high=HOUR,
        log=True,
        usual=(0.1, 120.0),
        null="the rule's own",
        help="How often the rule decides.",
        why="each rule has its own",
    )
    metric_window_s: float | None = param(
        None,
        label="Averaging window",
        unit="s",
        low=0.01,
        high=DAY,
        log=True,
        usual=(1.0, 600.0),
        null="the rule's own",
        help="Time over which the metric is averaged.",
        why="each rule has its own",
    )
    min_replicas: int = param(
        1,
        label="Fewest replicas",
        unit="replicas",
        low=0,
        high=MOST_REPLICAS,
        step=1,
        usual=(0, 64),
        help="Never fewer than this.",
        why="something must be there to answer",
    )
    max_replicas: int = param(
        16,
        label="Most replicas",
        unit="replicas",
        low=1,
        high=MOST_REPLICAS,
        step=1,
        usual=(1, 128),
        help="Never more than this.",
        why="budgets end somewhere",
    )
    count_starting: bool = param(
        True,
        label="Counts starting replicas",
        help="Whether replicas that are still starting count as present.",
        why="otherwise the same shortage is answered again and again",
    )
    startup: Startup = section(Startup(), label="Start of a replica", help="How long help takes.", why="nine minutes")
    hpa: Hpa = section(Hpa(), label="HPA", help="Settings of policy hpa, and of keda.", why="Kubernetes' defaults")
    keda: Keda = section(Keda(), label="KEDA", help="Settings of policy keda.", why="KEDA's defaults")
    knative: Knative = section(Knative(), label="Knative", help="Settings of policy knative.", why="Knative's defaults")
    ray_serve: RayServe = section(
        RayServe(), label="Ray Serve", help="Settings of policy ray_serve.", why="Ray Serve's defaults"
    )
    aibrix: Aibrix = section(Aibrix(), label="AIBrix", help="Settings of policy aibrix.", why="AIBrix's defaults")
    schedule: Schedule = section(Schedule(), label="Schedule", help="Settings of policy schedule.", why="no plan")

    def rules(self) -> Iterator[Problem]:
        if self.min_replicas > self.max_replicas:
            yield Problem(
                "min_replicas",
                show(self.min_replicas),
                f"is above max_replicas ({self.max_replicas})",
                "give a min_replicas that is at most max_replicas",
                (self.max_replicas,),
            )
