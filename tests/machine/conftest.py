"""Short ways to a scenario and to a deployment."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.catalog import accelerator, model
from engine.machine.constants import Constants, constants_for
from engine.machine.deployment import Deployment
from engine.machine.parallel import link
from engine.scenario import Scenario


@pytest.fixture(scope="session")
def scenario() -> Callable[..., Scenario]:
    """scenario({"parallelism.tp": 2, ...}): the default scenario with some keys set."""

    def build(changes: dict[str, Any] | None = None) -> Scenario:
        document: dict[str, Any] = {}
        for path, value in (changes or {}).items():
            *sections, key = path.split(".")
            inside = document
            for section in sections:
                inside = inside.setdefault(section, {})
            inside[key] = value
        return Scenario.from_dict(document)

    return build


@pytest.fixture(scope="session")
def deploy() -> Callable[..., Deployment]:
    """deploy(model, accelerator, tp=..., ...): a deployment without a scenario."""

    def build(model_name: str, accelerator_name: str, **changes: Any) -> Deployment:
        plain = Deployment(
            model=model(model_name),
            accelerator=accelerator(accelerator_name),
            weight_dtype="bf16",
            kv_dtype="bf16",
            tp=1,
            gpu_memory_utilization=0.92,
            max_num_seqs=256,
            step_tokens=2048,
            context_tokens=1260.0,
        )
        return replace(plain, **changes)

    return build


@pytest.fixture(scope="session")
def constants_of() -> Callable[..., Constants]:
    """constants_of(deployment, engine="vllm"): its constants, without overrides."""

    def build(d: Deployment, engine: str = "vllm") -> Constants:
        joined = link(d.accelerator, d.tp) if d.tp > 1 else None
        return constants_for(d.model, d.accelerator, d.weight_dtype, engine, joined is not None and joined.pcie)

    return build
