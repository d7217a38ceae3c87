"""Single decisions of KEDA, Ray Serve and AIBrix."""

from __future__ import annotations

from ..aibrix import apa
from ..keda import FALLBACKS, fallback
from ..ray_serve import cold_start, wanted
from .inputs import Inputs


def keda_fallback(inputs: Inputs) -> dict[str, int | None]:
    """`keda fallback`: metric per target of a trigger that failed; ``None``, no metric, before it has failed enough.

    `failures` in a row and `failure_threshold` are numbers; any words stand for too many.
    """
    counted = not isinstance(inputs.values.get("failures"), str | None)
    if counted and inputs.number("failures") <= inputs.number("failure_threshold", 3):
        return {"metric_over_target": None}
    behavior = inputs.choice("behavior", FALLBACKS, FALLBACKS[0])
    return {"metric_over_target": fallback(behavior, inputs.whole("current"), inputs.whole("fallback_replicas"))}


def ray_desired(inputs: Inputs) -> dict[str, int | bool]:
    """`ray-serve desired`: the wish before any delay; with no replica running, the cold start's."""
    running, requests = inputs.whole("running"), inputs.number("total_requests")
    up = inputs.number("up", 1.0, above=0)
    if not running:
        asked_for = inputs.whole("target_num_replicas", 0)
        return {"desired": cold_start(requests, up, asked_for), "cold_start": requests > 0}
    target, down = inputs.number("target", 2.0, above=0), inputs.number("down", 1.0, above=0)
    return {"desired": wanted(running, requests, target, up, down), "cold_start": False}


def aibrix(inputs: Inputs) -> dict[str, int]:
    """`aibrix-apa`: one decision, with AIBrix's defaults."""
    replicas = apa(
        inputs.whole("current"),
        inputs.number("use_per_pod"),
        inputs.number("target", above=0),
        inputs.number("up_tol", 0.1),
        inputs.number("down_tol", 0.1),
        inputs.number("max_up_rate", 2.0, above=0),
        inputs.number("max_down_rate", 2.0, above=0),
    )
    return {"replicas": replicas}
