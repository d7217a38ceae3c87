"""Pipeline parallelism: which layers lie in which stage, and over which links a batch passes on."""

from __future__ import annotations

from dataclasses import dataclass

from engine.catalog import Accelerator, Model, Parts
from engine.machine.parallel import Link, link
from engine.scenario import Problem

_NETWORK_BYTES_PER_S = 50e9
"""400 Gb/s an accelerator and direction, as in NVIDIA's DGX H100 (eight ConnectX-7; its user guide, chapter 1)."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers ``first`` up to ``first + layers - 1`` of a model."""

    first: int
    layers: int
    last: bool  # of the stages

    def of(self, model: Model, parts: Parts) -> Parts:
        """What the stage has of each part of a model. Dense layers come before those with experts.

        The first stage has the embedding, the last one the head: with tied embeddings both have the embedding.
        """
        dense = model.layers if model.moe is None else model.moe.dense_layers
        end = self.first + self.layers
        in_dense = max(0, min(end, dense) - min(self.first, dense))
        share = {
            "embedding": float(self.first == 0 or (self.last and model.tied_embeddings)),
            "lm_head": float(self.last),
            "dense_mlp": in_dense / max(dense, 1),
            "attention": self.layers / model.layers,
            "norms": self.layers / model.layers,
        }
        in_moe = (self.layers - in_dense) / max(model.layers - dense, 1)
        return parts.map(lambda part, size: size * share.get(part, in_moe))


def stages(model: Model, pp: int) -> tuple[Stage, ...]:
    """The stages of a model. Layers that are over go to the last stages but one, which has the head (as in vLLM's
    `get_pp_indices`)."""
    each, over = divmod(model.layers, pp)
    sizes = [each + (1 if pp - 1 - over <= index < pp - 1 else 0) for index in range(pp)]
    return tuple(Stage(sum(sizes[:index]), size, index == pp - 1) for index, size in enumerate(sizes))


def stage_problems(model: Model, pp: int) -> list[Problem]:
    """Why a model can't be split into so many stages, in words; empty when it can."""
    if pp <= model.layers:
        return []
    reason = f"is more stages than {model.name} has layers, {model.layers}"
    return [Problem("parallelism.pp", str(pp), reason, f"give at most {model.layers}", (model.layers,))]


@dataclass(frozen=True, slots=True)
class Hops:
    """Boundaries between stages: ``count`` of them over a link of so many bytes a second."""

    count: int
    bytes_per_s: float


def hops(accelerator: Accelerator, tp: int, pp: int) -> tuple[Hops, ...]:
    """Where a batch passes from stage to stage: over the link inside a host, and over the network between hosts.

    As many stages share a host as the link can join. The network isn't faster than the PCIe on which its adapter is.
    """
    together = next((k for k in range(pp, 1, -1) if link(accelerator, tp * k)), 1)
    inside = link(accelerator, tp * together) if together > 1 else None
    across = -(-pp // together) - 1
    network = min(_NETWORK_BYTES_PER_S, (accelerator.pcie_gb_per_s or float("inf")) * 1e9)
    found = [] if inside is None else [Hops(pp - 1 - across, inside.bytes_per_s)]
    return tuple(found + ([Hops(across, network)] if across else []))


def joining_link(accelerator: Accelerator, tp: int, pp: int) -> Link | None:
    """The link whose constants a replica's exchanges have: that of its tensor-parallel groups, without them that
    between stages on a host; None with a single device, or where only a network joins them."""
    if tp > 1:
        return link(accelerator, tp)
    return next((found for k in range(pp, 1, -1) if (found := link(accelerator, k))), None)
