"""All controls as values: the sidebar's, and with them the engine settings. No Streamlit here.

A control's key is the path of the setting that it shows, or its own where it stands for several. A value that equals
what the scenario shows already changes nothing, so rounding for display never alters a scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from engine.catalog import accelerators, models
from engine.machine import accelerators_of
from engine.scenario import Scenario, describe
from ui.control import Control, Value, help_of, number, stops, with_value
from ui.promise_settings import terms
from ui.settings import settings

POLICY = "batching.policy"
POOLS = ("batching.disaggregated.prefill_replicas", "batching.disaggregated.decode_replicas")
"""With two pools their sizes take the place of the number of replicas."""
_CHIPS = (1, 2, 4, 8, 16)
_PLAIN = {"ttft": "First word", "e2e": "Last word", "tpot": "Word gap", "max_itl": "Longest gap",
          "queue": "Wait in the queue"}  # fmt: skip


@lru_cache(maxsize=64)
def controls(base: Scenario) -> dict[str, Control]:
    """The controls for a scenario, by key: the sidebar's in its order, then the promise's and the engine's settings.

    A trace brings its own rate and lengths.

    Remembered: don't change what comes back.
    """
    found = [_model(base), _weights(base), _accelerator(base), _chips(base), number("fleet.replicas", base)]
    found += [number(pool, base) for pool in POOLS]
    if base.traffic.process not in ("trace", "closed"):
        found.append(number("traffic.rate_rps", base))
    if base.traffic.process == "closed":
        found.append(number("traffic.closed.users", base))
    if base.traffic.process in ("poisson", "gamma", "deterministic"):
        found.append(_burstiness(base))
    if base.traffic.process != "trace":
        found += [c for what in ("prompt_tokens", "output_tokens") if (c := _length(what, base)) is not None]
    if base.slo:
        found += [_threshold(base), _target(base)]
    return {control.key: control for control in found} | terms(base) | settings(base)


def apply(base: Scenario, values: Mapping[str, Value]) -> Scenario:
    """The scenario that the controls' values stand for. Raises `ScenarioError` when they don't go together."""
    changes: dict[str, Any] = {}
    for key, control in controls(base).items():
        if key in values and values[key] != control.value:
            changes.update(control.changes(values[key]))
    return base.replace(changes) if changes else base


def _burstiness(base: Scenario) -> Control:
    """One control for three processes: 0 is clockwork, 1 is Poisson, anything else gamma."""
    info = describe("traffic.cv")
    process = base.traffic.process
    value = {"deterministic": 0.0, "poisson": 1.0}.get(process, base.traffic.cv)

    def changes(new: float) -> dict[str, Any]:
        if new == 0.0:
            return {"traffic.process": "deterministic"}
        if new == 1.0 and process != "gamma":
            return {"traffic.process": "poisson"}
        return {"traffic.process": "gamma", "traffic.cv": new}

    return Control(
        key="burstiness",
        kind="slider",
        label=info.label,
        help="How clumped arrivals are (coefficient of variation of the gaps between them): 0 is clockwork, 1 is "
        "people who don't know of each other (Poisson), more is burstier. Accepts a number from 0 to 20.",
        value=value,
        changes=changes,
        low=0.0,
        high=info.high,
        step=info.step or 0.1,
        stops=with_value((0.0, *stops(info)), value),
    )


def burstiness_word(value: float) -> str:
    """What a burstiness feels like."""
    steps = ((0.05, "like clockwork"), (0.85, "rather even"), (1.25, "independent"), (2.5, "clumped"), (4.5, "bursty"))
    return next((word for top, word in steps if value < top), "very bursty")


def _length(what: str, base: Scenario) -> Control | None:
    """The mean length of the first class; None for a distribution that has no single figure for it."""
    length = getattr(base.traffic.classes[0], what)
    setting = {"lognormal": "mean", "geometric": "mean", "constant": "value"}.get(length.dist)
    if setting is None:
        return None
    name = "Prompt" if what == "prompt_tokens" else "Answer"
    several = f" of {base.traffic.classes[0].name}" if len(base.traffic.classes) > 1 else ""
    return number(f"traffic.classes.0.{what}.{setting}", base, f"{name} length{several} (tokens)")


def _threshold(base: Scenario) -> Control:
    info, objective = describe("slo.0.threshold_s"), base.slo[0]
    return Control(
        key="slo.0.threshold_s",
        kind="box",
        label=f"{_PLAIN[objective.metric]} within (s)",
        help=help_of(info),
        value=float(objective.threshold_s),
        changes=lambda new: {"slo.0.threshold_s": new},
        low=info.low,
        high=info.high,
        step=0.1 if objective.metric in ("ttft", "e2e", "queue") else 0.01,
    )


def _target(base: Scenario) -> Control:
    info = describe("slo.0.target")
    return Control(
        key="target_percent",
        kind="box",
        label="% of requests",
        help="Share of requests that must be in time; 100 leaves no error budget. Accepts a number from 0 to 100.",
        value=round(base.slo[0].target * 100, 6),
        changes=lambda new: {"slo.0.target": round(new / 100, 12)},
        low=0.0,
        high=100.0,
        step=(info.step or 0.005) * 100,
    )


def _model(base: Scenario) -> Control:
    name = base.model.name
    mine = base.model.custom is not None
    names = {row: row for row in models()}
    return Control(
        key="model.name",
        kind="choice",
        label=describe("model.name").label,
        help="What is served. Figures from its published configuration.",
        value=name,
        changes=lambda new: {"model.name": new, "model.custom": None},
        choices={name: f"{name} (yours)" if mine else name} | {k: v for k, v in names.items() if k != name},
    )


def _weights(base: Scenario) -> Control:
    info = describe("model.weight_dtype")
    return Control(
        key="model.weight_dtype",
        kind="choice",
        label=info.label,
        help=help_of(info),
        value=base.model.weight_dtype,
        changes=lambda new: {"model.weight_dtype": new},
        choices={choice.value: choice.value for choice in info.choices},
    )


def _accelerator(base: Scenario) -> Control:
    name = base.hardware.accelerator
    mine = base.hardware.custom is not None
    return Control(
        key="hardware.accelerator",
        kind="choice",
        label=describe("hardware.accelerator").label,
        help="The chips, all of one kind. Figures from their data sheets.",
        value=name,
        changes=lambda new: {"hardware.accelerator": new, "hardware.custom": None},
        choices={name: f"{name} (yours)" if mine else name} | {k: k for k in _accelerators() if k != name},
    )


@cache
def _accelerators() -> tuple[str, ...]:
    """Those whose speed is known."""
    return tuple(name for name, row in accelerators().items() if row.fp16_tflops is not None)


def _chips(base: Scenario) -> Control:
    """How many share a layer: by tensor parallel, with its experts' spread, or with every chip's attention its own."""
    p = base.parallelism
    now = max(p.tp, p.ep)
    groups = accelerators_of(base) // now
    split = {"parallelism.tp": p.tp, "parallelism.ep": p.ep}
    paths = [path for path, ways in split.items() if ways > 1] or ["parallelism.tp"]
    return Control(
        key="parallelism.tp",
        kind="choice",
        label="Per replica",
        help=help_of(describe("parallelism.tp")),
        value=now,
        changes=lambda new: dict.fromkeys(paths, new),
        choices={many: f"{many * groups} chip{'s' if many * groups > 1 else ''}" for many in sorted({*_CHIPS, now})},
    )
