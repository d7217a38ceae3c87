"""What models of the catalogue need on its accelerators, as a problem to be packed, part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.catalog import Accelerator, Model, accelerator, bits, model, price, weight_bytes
from engine.machine import Deployment, Memory, device_memory, tensor_problems
from engine.placement.problem import Chip, Item, Problem, Used
from engine.scenario import ScenarioError

_GB = 1e9


@dataclass(frozen=True, slots=True)
class Wanted:
    """So many replicas of a model, weights in a format, each split over one of the `allowed_tp` numbers of chips."""

    model: str
    weight_dtype: str
    replicas: int
    allowed_tp: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """Accelerators of one kind: `count` of them, at a price in USD an hour each (None: the catalogue's)."""

    accelerator: str
    count: int
    price: float | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What every replica must have room for, and how chips may be used.

    A replica has room for so many `conversations` of `conversation_tokens` each, beside weights, the activations of
    its largest step, and the runtime. `gpu_memory_utilization` of a device is used, less `headroom`. `any_number`: of
    each accelerator as many as it takes. `spread`: replicas of a model on different hosts of `per_host` accelerators.
    """

    conversations: int
    conversation_tokens: float
    kv_dtype: str
    step_tokens: int
    gpu_memory_utilization: float
    headroom: float = 0.0
    any_number: bool = False
    spread: bool = False
    per_host: int = 8


@dataclass(frozen=True, slots=True)
class Parts:
    """GB of one chip: weights, KV, activations and runtime, and what stays free."""

    weights: float
    kv: float
    rest: float
    free: float


@dataclass(frozen=True, slots=True)
class Needs:
    """A problem and where its sizes are from: `memory` by (item, tp, chip), and an item's KV in GB a device there."""

    problem: Problem
    terms: Terms
    memory: Mapping[tuple[int, int, int], Memory]
    kv_gb: Mapping[tuple[int, int, int], float]

    def parts(self, used: Used) -> Parts:
        """What a chip in use holds. The free part is out of all of its memory."""
        weights = kv = rest = 0.0
        for shard in used.shards:
            key = shard.item, shard.tp, used.chip
            m = self.memory[key]
            weights += m.weights / _GB
            kv += self.kv_gb[key]
            rest += (m.activations + m.runtime) / _GB
        return Parts(weights, kv, rest, self.device_gb(used.chip) - weights - kv - rest)

    def device_gb(self, chip: int) -> float:
        """GB of one device of a type, whether or not they may be used."""
        return self.problem.chips[chip].cap / self.terms.gpu_memory_utilization

    def alone(self, item: int, chip: int) -> Alone | None:
        """A replica with chips of a type to itself, split as little as works; None where it is ruled out."""
        splits = sorted(tp for i, tp, t in self.memory if (i, t) == (item, chip))
        for tp in splits:
            m = self.memory[item, tp, chip]
            if self.problem.fits((m.weights + m.activations + m.runtime) / _GB + self.kv_gb[item, tp, chip], chip):
                kept = self.problem.headroom * m.usable
                seats = int((m.kv - kept) / m.kv_per_token / self.terms.conversation_tokens)
                used = seats * self.terms.conversation_tokens * m.kv_per_token / _GB
                rest = (m.activations + m.runtime) / _GB
                free = m.device / _GB - m.weights / _GB - used - rest
                return Alone(tp, seats, Parts(m.weights / _GB, used, rest, free))
        return None


@dataclass(frozen=True, slots=True)
class Alone:
    """A replica by itself on `tp` chips: how many conversations it has room for, and what is on each chip."""

    tp: int
    seats: int
    parts: Parts


def needs(wanted: Sequence[Wanted], offered: Sequence[Offered], terms: Terms) -> Needs:
    """The problem of placing models on accelerators. Raises `ScenarioError`: unknown names, no price."""
    models, devices = [model(one.model) for one in wanted], [accelerator(one.accelerator) for one in offered]
    memory: dict[tuple[int, int, int], Memory] = {}
    kv_gb: dict[tuple[int, int, int], float] = {}
    for i, (one, shape) in enumerate(zip(wanted, models, strict=True)):
        for t, device in enumerate(devices):
            for tp in sorted(set(one.allowed_tp)):
                if not tensor_problems(shape, device, tp):
                    m = device_memory(_deployment(one, shape, device, tp, terms))
                    memory[i, tp, t] = m
                    kv_gb[i, tp, t] = terms.conversations * terms.conversation_tokens * m.kv_per_token / _GB
    chips = tuple(_chip(one, device, terms) for one, device in zip(offered, devices, strict=True))
    sizes = {key: (m.weights + m.activations + m.runtime) / _GB + kv_gb[key] for key, m in memory.items()}
    items = tuple(_item(i, one, shape, sizes, chips) for i, (one, shape) in enumerate(zip(wanted, models, strict=True)))
    return Needs(Problem(items, chips, terms.headroom, terms.spread), terms, memory, kv_gb)


def label(name: str, weight_dtype: str) -> str:
    """What a model with its weights in a format is called: "Llama-2-13B at 8 bit"."""
    return f"{name} at {bits(weight_dtype)} bit"


def _item(
    i: int, one: Wanted, shape: Model, sizes: Mapping[tuple[int, int, int], float], chips: Sequence[Chip]
) -> Item:
    mine = {(tp, chips[t].type): gb for (j, tp, t), gb in sizes.items() if j == i}
    whole = min((tp * gb for (tp, _), gb in mine.items()), default=weight_bytes(shape, one.weight_dtype).total / _GB)
    return Item(label(one.model, one.weight_dtype), whole, one.replicas, tuple(sorted(set(one.allowed_tp))), mine)


def _chip(one: Offered, device: Accelerator, terms: Terms) -> Chip:
    found = price(device.name)
    cost = one.price if one.price is not None else found.median if found is not None else None
    if cost is None:
        raise ScenarioError.of(device.name, "", "has no list price in the catalogue", "give its price an hour")
    name = device.name if "GB" in device.name else f"{device.name} {device.memory_gib:g}GB"
    usable = terms.gpu_memory_utilization * device.memory_bytes / _GB
    return Chip(name, usable, cost, None if terms.any_number else one.count, terms.per_host)


def _deployment(one: Wanted, shape: Model, device: Accelerator, tp: int, terms: Terms) -> Deployment:
    return Deployment(
        model=shape,
        accelerator=device,
        weight_dtype=one.weight_dtype,
        kv_dtype=terms.kv_dtype,
        tp=tp,
        gpu_memory_utilization=terms.gpu_memory_utilization,
        max_num_seqs=terms.conversations,
        step_tokens=terms.step_tokens,
        context_tokens=terms.conversation_tokens,
    )
