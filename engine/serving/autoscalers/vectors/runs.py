"""Cases that are a run: one answer a step, each depending on those before."""

from __future__ import annotations

from ..hpa_limits import DOWN, UP, Behaving, Rules
from ..knative import Decider, Spec
from ..ray_serve import Delay
from .hpa import SELECT, bounds, policies
from .inputs import Inputs

SYNC_S = 15.0
"""Seconds between the wishes of a HPA."""


def behavior(inputs: Inputs) -> list[int]:
    """`k8s-hpa-v2 behavior`: the replicas after each wish, `behavior` in effect, from `start` on."""
    limits = Behaving(_rules(inputs, "up", UP), _rules(inputs, "down", DOWN))
    low, high = bounds(inputs)
    current, answers = inputs.whole("start"), []
    for index, wish in enumerate(inputs.wholes("desired_each_15s")):
        current = limits.follow(index * SYNC_S, current, wish, low, high)
        answers.append(current)
    return answers


def _rules(inputs: Inputs, direction: str, usual: Rules) -> Rules:
    window_s = inputs.number(f"{direction}w", usual.window_s)
    return Rules(window_s, policies(inputs, direction, usual), inputs.choice(f"{direction}sel", SELECT, usual.select))


def knative(inputs: Inputs) -> list[int]:
    """`knative-kpa`: the decision of each step, `spec` with Knative's defaults."""
    spec, usual = inputs.section("spec"), Spec()
    decider = Decider(
        Spec(
            target=spec.number("target", usual.target, above=0),
            max_up_rate=spec.number("up", usual.max_up_rate, above=0),
            max_down_rate=spec.number("down", usual.max_down_rate, above=0),
            panic_threshold=spec.number("panic", usual.panic_threshold),
            stable_window_s=spec.number("stable", usual.stable_window_s),
            activation_scale=spec.whole("activation", usual.activation_scale),
            reachable=spec.flag("reachable", usual.reachable),
            scale_down_delay_s=spec.number("delay", usual.scale_down_delay_s),
        ),
        spec.number("panic_time", None),
        spec.whole("max_panic", 0),
    )
    return [
        decider.decide(step.number("t"), step.whole("ready"), step.number("stable"), step.number("panic"))
        for step in inputs.sections("steps")
    ]


def ray_delay(inputs: Inputs) -> list[int]:
    """`ray-serve delay`: the replicas asked for after each step [t, wish], from `start` on."""
    delay = Delay(
        inputs.number("upscale_delay_s", 30.0),
        inputs.number("downscale_delay_s", 600.0),
        inputs.number("downscale_to_zero_delay_s", None),
    )
    asked_for, answers = inputs.whole("start"), []
    for step in inputs.tuples("steps", ("t", "desired")):
        asked_for = delay.grant(step.number("t"), step.whole("desired"), asked_for)
        answers.append(asked_for)
    return answers
