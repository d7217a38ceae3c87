"""The engine's settings as controls, under the names that they have there. No Streamlit here.

Only settings whose behaviour is built; an empty box is what the scenario writes as null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.scenario import ParamInfo, Scenario, describe
from ui.control import Control, get, help_of

RATE_LIMIT = "admission.rate_limit.rate_rps"
SHED = "admission.shed.ttft_s"
DISCIPLINE = "admission.discipline.kind"
THROTTLE = "traffic.client.throttle.k"
FAN_OUT = "traffic.client.fan_out"
POLICY = "autoscaler.policy"
COUNT_STARTING = "autoscaler.count_starting"
GROUPS: dict[str, tuple[str, ...]] = {
    "Batching": (
        "batching.policy",
        "batching.max_num_seqs",
        "batching.max_num_batched_tokens",
        "batching.max_model_len",
        "batching.batch_wait_s",
        "batching.disaggregated.transfer_gbps",
        "batching.disaggregated.transfer_latency_s",
    ),
    "Layout": ("parallelism.pp", "parallelism.cp", "parallelism.ep", "parallelism.sp"),
    "Memory": (
        "batching.gpu_memory_utilization",
        "batching.kv_policy",
        "batching.kv_capacity_tokens",
        "batching.watermark",
        "batching.reserve_output_tokens",
    ),
    "Admission": (
        "admission.max_outstanding",
        "admission.max_queued_tokens",
        "admission.queue_timeout_s",
        RATE_LIMIT,
        SHED,
        DISCIPLINE,
        "fleet.routing.policy",
    ),
    "Client": (
        "traffic.client.timeout_s",
        "traffic.client.ttft_timeout_s",
        "traffic.client.on_timeout",
        "traffic.client.max_retries",
        "traffic.client.backoff_s",
        "traffic.client.retry_budget_ratio",
        "traffic.client.retry_layers",
        THROTTLE,
        FAN_OUT,
    ),
    "Autoscaler": (
        POLICY,
        "autoscaler.metric",
        "autoscaler.target",
        "autoscaler.interval_s",
        "autoscaler.metric_window_s",
        "autoscaler.min_replicas",
        "autoscaler.max_replicas",
        COUNT_STARTING,
    ),
    "Start of a replica": (
        "autoscaler.startup.provision_s",
        "autoscaler.startup.image_pull_s",
        "autoscaler.startup.weights_load_s",
        "autoscaler.startup.warmup_s",
        "autoscaler.startup.cv",
    ),
}
"""What the expander shows, column by column."""
ARRIVALS: dict[str, tuple[str, ...]] = {
    "mmpp": ("traffic.mmpp.burst_ratio", "traffic.mmpp.burst_fraction", "traffic.mmpp.mean_burst_s"),
    "trace": ("traffic.trace.speed", "traffic.trace.resample", "traffic.trace.block_s"),
}
"""What the traffic page shows on top, by the process that it has a meaning for."""

ONLY_WITH: dict[str, str] = dict.fromkeys(
    ("batching.disaggregated.transfer_gbps", "batching.disaggregated.transfer_latency_s"), "disaggregated"
)
"""Settings that only one batching policy looks at, and which: they are shown with it."""

_NAMES = {
    RATE_LIMIT: "rate_limit",
    SHED: "shed",
    DISCIPLINE: "discipline",
    THROTTLE: "throttle",
    "fleet.routing.policy": "routing",
    POLICY: "autoscaler",
}
"""Where the last part of the path alone says too little."""
_STEPS = ((100_000.0, 10_000.0), (1_000.0, 256.0), (100.0, 16.0), (10.0, 1.0))
"""A step that a click on a box's plus and minus makes, from each value on."""


def settings(base: Scenario) -> dict[str, Control]:
    """The controls by key, in the order of the groups."""
    paths = [path for group in GROUPS.values() for path in group]
    if base.traffic.process in ("trace", "closed"):  # which say themselves what comes when
        paths.remove(FAN_OUT)
    paths += ARRIVALS.get(base.traffic.process, ())
    return {path: _SPECIAL.get(path, _setting)(path, base) for path in paths}


def name_of(path: str) -> str:
    """What engineers call a setting: the engine's flag, else the scenario's own key."""
    return describe(path).flag or _NAMES.get(path) or path.rpartition(".")[2]


def _setting(path: str, base: Scenario) -> Control:
    info, value = describe(path), get(base, path)
    if info.form == "choice":
        return _choice(info, value)
    return _box(path, info, value, lambda new: {path: new}, info.null or "")


def _choice(info: ParamInfo, value: str) -> Control:
    return Control(
        key=info.path,
        kind="choice",
        label=_label(info),
        help=_words(info) + info.help,
        value=value,
        changes=lambda new: {info.path: new},
        choices={c.value: f"{c.value}: {c.word}" for c in info.choices},
    )


def _box(
    path: str, info: ParamInfo, value: float | None, changes: Callable[[Any], dict[str, Any]], null: str
) -> Control:
    whole = info.form == "integer"
    return Control(
        key=path,
        kind="box",
        label=_label(info),
        help=_words(info) + help_of(info, f"Empty: {null}." if null else ""),
        value=value if value is None or whole else float(value),
        changes=changes,
        low=info.low,
        high=info.high,
        step=info.step or _step(info, value),
        null=null,
        whole=whole,
    )


def _step(info: ParamInfo, value: float | None) -> float:
    least = 1.0 if info.form == "integer" else 0.1
    about = value if value is not None else (info.usual or (0.0, 0.0))[0]
    return next((step for top, step in _STEPS if about >= top), least)


def _part(path: str, base: Scenario) -> Control:
    """A number of a section that may be absent: an empty box switches it off, a number on."""
    section, _, key = path.rpartition(".")
    info, now = describe(path), get(base, section)

    def changes(new: float | None) -> dict[str, Any]:
        if new is None:
            return {section: None}
        if now is not None:
            return {path: new}
        more = {"burst": max(1.0, new)} if path == RATE_LIMIT else {}  # one second's worth may pass at once
        return {section: {key: new} | more}

    return _box(path, info, None if now is None else getattr(now, key), changes, describe(section).null or "")


def _discipline(path: str, base: Scenario) -> Control:
    """The order of the queue, another one with its usual figures."""
    info, now = describe(path), get(base, path)
    return replace(_choice(info, now), changes=lambda new: {path.rpartition(".")[0]: {"kind": new}})


def _switch(path: str, base: Scenario) -> Control:
    """Yes or no, as a list of two: undo, links and twins then treat it like any other."""
    info, now = describe(path), get(base, path)
    return Control(
        key=path,
        kind="choice",
        label=_label(info),
        help=_words(info) + info.help,
        value="yes" if now else "no",
        changes=lambda new: {path: new == "yes"},
        choices={"yes": "yes", "no": "no"},
    )


_SPECIAL = {RATE_LIMIT: _part, SHED: _part, THROTTLE: _part, DISCIPLINE: _discipline, COUNT_STARTING: _switch}


def _label(info: ParamInfo) -> str:
    name, unit = name_of(info.path), info.unit.partition(" of ")[0]
    return f"`{name}`" if not unit or name.endswith((f"_{unit}", f"-{unit}")) else f"`{name}` {unit}"


def _words(info: ParamInfo) -> str:
    """Before the help: the flag alone isn't everybody's word."""
    return f"{info.label}. "
