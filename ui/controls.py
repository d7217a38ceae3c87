"""The sidebar's controls as values: what each shows of a scenario, and what it changes in one. No Streamlit here.

A control's key is the path of the setting that it shows, or its own where it stands for several. A value that equals
what the scenario shows already changes nothing, so rounding for display never alters a scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

from engine.catalog import accelerators, models
from engine.scenario import ParamInfo, Scenario, describe

Value = float | int | str
Kind = Literal["slider", "box", "choice"]

_MANTISSAS = (1, 1.1, 1.2, 1.35, 1.5, 1.7, 2, 2.2, 2.5, 2.7, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 9)
_CHIPS = (1, 2, 4, 8, 16)
_PLAIN = {"ttft": "First word", "e2e": "Last word", "tpot": "Gap between words", "max_itl": "Longest gap",
          "queue": "Wait in the queue"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Control:
    """One control: how it looks, and what it means for the scenario that it was made for.

    `stops` are a slider's positions, `choices` the values of a list with their words. `changes` maps a value to the
    settings that it sets.
    """

    key: str
    kind: Kind
    label: str
    help: str
    value: Value
    changes: Callable[[Any], dict[str, Any]]
    low: float | None = None
    high: float | None = None
    step: float = 1.0
    stops: tuple[float, ...] = ()
    choices: Mapping[Any, str] | None = None

    @property
    def whole(self) -> bool:
        """Whether it takes whole numbers only."""
        return isinstance(self.value, int)

    def nearest_stop(self, value: float) -> float:
        """The slider's position for a value."""
        return min(self.stops, key=lambda stop: abs(stop - value))


@lru_cache(maxsize=64)
def controls(base: Scenario) -> dict[str, Control]:
    """The controls for a scenario, by key, in the sidebar's order. A trace brings its own rate and lengths.

    Remembered: don't change what comes back.
    """
    found = [_model(base), _weights(base), _accelerator(base), _chips(base), _number("fleet.replicas", base)]
    if base.traffic.process not in ("trace", "closed"):
        found.append(_number("traffic.rate_rps", base))
    if base.traffic.process in ("poisson", "gamma", "deterministic"):
        found.append(_burstiness(base))
    if base.traffic.process != "trace":
        found += [c for what in ("prompt_tokens", "output_tokens") if (c := _length(what, base)) is not None]
    if base.slo:
        found += [_threshold(base), _target(base)]
    return {control.key: control for control in found}


def apply(base: Scenario, values: Mapping[str, Value]) -> Scenario:
    """The scenario that the controls' values stand for. Raises `ScenarioError` when they don't go together."""
    changes: dict[str, Any] = {}
    for key, control in controls(base).items():
        if key in values and values[key] != control.value:
            changes.update(control.changes(values[key]))
    return base.replace(changes) if changes else base


def _help(info: ParamInfo, more: str = "") -> str:
    parts = [info.help, more]
    if info.low is not None:
        parts.append(f"Accepts {info.accepted}.")
    if info.flag:
        parts.append(f"In the engine: `{info.flag}`.")
    return " ".join(part for part in parts if part)


def _number(path: str, base: Scenario, label: str = "", key: str = "") -> Control:
    info = describe(path)
    value = _get(base, path)
    whole = info.form == "integer"
    return Control(
        key=key or path,
        kind="slider",
        label=label or info.label,
        help=_help(info),
        value=int(value) if whole else float(value),
        changes=lambda new: {path: new},
        low=info.low,
        high=info.high,
        step=info.step or (10.0 if info.unit == "tokens" else 1.0 if whole else 0.1),
        stops=_with(stops(info), value),
    )


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
        stops=_with((0.0, *stops(info)), value),
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
    return _number(f"traffic.classes.0.{what}.{setting}", base, f"{name} length{several} (tokens)")


def _threshold(base: Scenario) -> Control:
    info, objective = describe("slo.0.threshold_s"), base.slo[0]
    return Control(
        key="slo.0.threshold_s",
        kind="box",
        label=f"{_PLAIN[objective.metric]} within (s)",
        help=_help(info),
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
        help=_help(info),
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
    info, now = describe("parallelism.tp"), base.parallelism.tp
    return Control(
        key="parallelism.tp",
        kind="choice",
        label="Per replica",
        help=_help(info),
        value=now,
        changes=lambda new: {"parallelism.tp": new},
        choices={many: f"{many} chip{'s' if many > 1 else ''}" for many in sorted({*_CHIPS, now})},
    )


def stops(info: ParamInfo) -> tuple[float, ...]:
    """A slider's positions over a setting's usual range: by ratio or by step, both ends included."""
    low, high = info.usual or (info.low or 0.0, info.high or 1.0)
    if info.log:
        inside = [_round(m * 10**e) for e in range(-6, 9) for m in _MANTISSAS]
    else:
        step = info.step or 1.0
        inside = [_round(low + i * step) for i in range(round((high - low) / step) + 1)]
    numbers = {low, high, *(n for n in inside if low <= n <= high)}
    if info.form == "integer":
        return tuple(sorted({round(n) for n in numbers}))
    return tuple(sorted({float(round(n)) if info.unit == "tokens" else float(n) for n in numbers}))


def position(value: float) -> str:
    """What stands at a slider's position. Streamlit tells positions apart by this text: no two may be alike."""
    return f"{value:,.6g}"


def _with(positions: tuple[float, ...], value: float) -> tuple[float, ...]:
    """A slider's positions, and the value that it starts from where that lies visibly between them."""
    inside = positions[0] < value < positions[-1] and position(value) not in map(position, positions)
    return tuple(sorted({*positions, value})) if inside else positions


def _round(number: float) -> float:
    return float(f"{number:.6g}")


def _get(base: Scenario, path: str) -> Any:
    found: Any = base
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    return found
