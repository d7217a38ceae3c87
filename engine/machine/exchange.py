"""What the devices of a group send one another, in bytes, and what a pipeline of them leaves idle.

Collectives are counted as rings send them: every figure is what one device sends. Activations and the keys and values
that travel between devices are 16 bit.
"""

from __future__ import annotations

from engine.catalog import Model

ACTIVATION_BYTES = 2.0  # activations are 16 bit whatever the weights are


def all_gather_share(devices: int) -> float:
    """Of a tensor that every device shall have in full, or its sum in part (reduce-scatter): (n - 1) / n."""
    return (devices - 1) / devices


def all_reduce_share(devices: int) -> float:
    """Of a tensor to be summed everywhere: a reduce-scatter and an all-gather, 2 (n - 1) / n."""
    return 2 * all_gather_share(devices)


def all_to_all_share(devices: int) -> float:
    """Of a device's own tensor that goes to the others: all but the nth that it keeps."""
    return (devices - 1) / devices


def stage_boundary_bytes(model: Model, tokens: float) -> float:
    """Bytes from one pipeline stage to the next for a step of so many tokens: their activations, once."""
    return tokens * model.hidden * ACTIVATION_BYTES


def ring_attention_bytes(model: Model, tokens: float, devices: int) -> float:
    """Bytes that a device sends in one layer when a prompt is split over devices and keys and values go round.

    n - 1 hops of its own share of the tokens (Liu et al. 2023, ring attention). Small with few KV heads.
    """
    return (devices - 1) * tokens / devices * model.kv_elements_per_layer() * ACTIVATION_BYTES


def ulysses_bytes(model: Model, tokens: float, devices: int) -> float:
    """Bytes that a device sends in one layer when shards of the sequence are swapped for heads and back.

    All-to-all of queries, keys, values and output of its share of the tokens (Jacobs et al. 2023, DeepSpeed-Ulysses):
    it falls with the number of devices.
    """
    elements = 2 * model.heads * model.head_dim + model.kv_elements_per_layer()
    return all_to_all_share(devices) * tokens / devices * elements * ACTIVATION_BYTES


def megatron_bytes(model: Model, tokens: float, devices: int) -> float:
    """Bytes that a device sends in one layer when activations are sharded inside tensor parallel.

    Two all-gathers and two reduce-scatters take the place of two all-reduces of the same volume (Korthikanti et al.
    2022): it saves activation memory, not traffic.
    """
    return 4 * all_gather_share(devices) * tokens * model.hidden * ACTIVATION_BYTES


def bubble_over_ideal(stages: int, microbatches: int, interleave: int = 1) -> float:
    """Idle time of a pipeline, filling and emptying it, over its busy time: (p - 1) / (v m) (Narayanan et al. 2021)."""
    return (stages - 1) / (interleave * microbatches)


def bubble_share(stages: int, microbatches: int, interleave: int = 1) -> float:
    """The same as a share of the whole time, (p - 1) / (v m + p - 1) (Huang et al. 2019, GPipe, for v = 1)."""
    idle = bubble_over_ideal(stages, microbatches, interleave)
    return idle / (1 + idle)
