"""How much is known of a deployment's step times: what was measured, and how far off predictions were.

accuracy.json holds what cross-validation found (`python -m engine calibrate --cross-validate TABLE` prints it).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from engine.catalog import Accelerator, Model
from engine.machine.constants import ENGINES, class_of, family_of
from engine.machine.deployment import resolve_accelerator, resolve_model
from engine.scenario import Linear, Scenario

Status = Literal["calibrated", "extrapolated", "not calibrated"]
_AS_MUCH = 10
"""Deployments: the errors of all families weigh as much as those of so many of one's own."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What step times rest on, for one accelerator, engine and class of model (`kind`: dense or moe).

    `status`: "calibrated" when published measurements of the accelerator, and of its family with this engine and class,
    are in the fit; "extrapolated" when its family and the engine with this class are, but not together; else "not
    calibrated". Half of the predictions of deployments that the fit hadn't seen were off by at most `median_ape`
    percent, nine in ten by at most `p90_ape`; `deployments` of its kind were among them, `basis` says which count.
    """

    family: str
    engine: str
    kind: str
    status: Status
    median_ape: float
    p90_ape: float
    deployments: int
    basis: str

    @property
    def band(self) -> tuple[float, float]:
        """(low, high): factors around a predicted time between which nine measured ones in ten were.

        A prediction p % too high at worst means a measurement of 1 / (1 + p) of it; one p % too low, of 1 / (1 - p).
        """
        off = min(self.p90_ape, 90.0) / 100
        return 1 / (1 + off), 1 / (1 - off)


@cache
def _accuracy() -> Mapping[str, Any]:
    text = resources.files("engine.machine").joinpath("accuracy.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def held_out_table() -> list[dict[str, Any]]:
    """Errors on deployments left out of the fit, by class of measurement, beside what is asked for; in percent.

    Rows have `class`, `median_ape`, `p90_ape`, `signed_median`, `n`, `deployments`, `ci95`, and mostly `must`, `goal`.
    """
    table: list[dict[str, Any]] = _accuracy()["held_out"]
    return table


def evidence(accelerator: Accelerator, model: Model, engine: str) -> Evidence:
    """What is known about this accelerator with this engine and class of model."""
    known, family, kind = _accuracy(), family_of(accelerator), class_of(model)
    of_family = known["bands"].get(family, {})
    own = of_family.get(engine, {}).get(kind)
    now = any(name in of_family for name in ENGINES)
    status: Status = "not calibrated"
    if own and known["devices"].get(accelerator.name):
        status = "calibrated"
    elif of_family and known["engines"].get(f"{engine} {kind}"):
        status = "extrapolated"
    if own:
        band, basis = _shrunk(own, known["classes"][kind]), f"{kind} models with this engine on this family, and on all"
    elif now and status != "not calibrated":
        band, basis = known["classes"][kind], f"{kind} models on all families"
    else:
        band, basis = known["new_family"][kind], f"{kind} models on families of which nothing was known"
    return Evidence(family, engine, kind, status, band[0], band[1], int(band[2]), basis)


def _shrunk(own: list[float], every: list[float]) -> list[float]:
    """[median, 90th percentile, deployments] of one's own, drawn towards those of all families."""
    deployments = own[2]
    mine = deployments / (deployments + _AS_MUCH)
    median, high = (mine * few + (1 - mine) * many for few, many in zip(own[:2], every[:2], strict=True))
    return [median, high, deployments]


def replica_evidence(s: Scenario) -> Evidence | None:
    """What a scenario's step times rest on; None with a profile of the user's own."""
    if isinstance(s.performance, Linear):
        return None
    found = evidence(resolve_accelerator(s), resolve_model(s), s.performance.engine)
    # Custom figures under a known name borrow its family's constants: nobody measured that device.
    # No pipeline is among the measurements.
    unlike = s.hardware.custom is not None or s.model.custom is not None or s.parallelism.pp > 1
    return replace(found, status="extrapolated") if unlike and found.status == "calibrated" else found
