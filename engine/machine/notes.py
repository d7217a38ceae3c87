"""What a reader must know about how a deployment was read."""

from __future__ import annotations

from collections.abc import Iterator

from engine.catalog import bits
from engine.machine.deployment import Deployment
from engine.machine.memory import Memory
from engine.machine.stages import stages
from engine.machine.steptime import computes_natively


def deployment_notes(d: Deployment, held: Memory, kv_capacity_tokens: int | None) -> Iterator[str]:
    """Sentences on formats that the accelerator lacks, on sliding windows, on a KV capacity that memory can't hold.

    `kv_capacity_tokens` is the one that the user gave, if any.
    """
    device = d.accelerator.name
    if d.weight_dtype == "bf16" and not d.accelerator.has_bf16:
        yield f"{device} has no bf16: weights are taken as fp16, which has the same size and speed."
    if not computes_natively(d, d.weight_dtype):
        stored = f"stored at {bits(d.weight_dtype)} bit, computed at 16"
        yield f"{device} has no faster arithmetic for {d.weight_dtype}: weights are {stored}."
    if kv_capacity_tokens is not None and kv_capacity_tokens > held.kv_capacity_tokens:
        yield (
            f"batching.kv_capacity_tokens is {kv_capacity_tokens:,}, but the memory left holds "
            f"{held.kv_capacity_tokens:,} tokens."
        )
    if d.cp > 1:
        yield (
            f"A context is split over {d.cp} devices: prompts are read in parallel and KV is shared out, the weights "
            f"are copied {d.cp} times, and decoding is no faster."
        )
    if d.sp == "megatron":
        yield "Activations are sharded inside tensor parallel: room for more KV; as much is sent, in as much time."
    if d.ep > 1:
        yield _experts_note(d)
    if d.sp == "operators":
        each = "One device does" if d.tp == 1 else f"{d.tp} devices do"
        yield (
            f"{each} attention, as many the feed-forward parts; the whole input passes between them twice in every "
            "layer. One batch at a time: while one group works the other waits."
        )
    if d.pp > 1:
        yield _pipeline_note(d)
    if d.model.sliding_layers and d.model.sliding_window is not None:
        yield _window_note(d, d.model.sliding_window)


def _experts_note(d: Deployment) -> str:
    said = f"Whole experts are spread over {d.ep} devices"
    if not d.attention_dp:
        return f"{said}, which share attention: as fast as slices of every expert in published measurements."
    return (
        f"{said}, each of which attends to its own requests, with all of attention's weights; seats and tokens a step "
        "are those of all together, dealt out evenly. So a prompt that is alone is read too soon here: in truth by one."
    )


def _pipeline_note(d: Deployment) -> str:
    sizes = [stage.layers for stage in stages(d.model, d.pp)]
    said = f"The {d.model.layers} layers lie in {d.pp} stages"
    if min(sizes) < max(sizes):
        said += f" of {min(sizes)} to {max(sizes)}, which count as equally slow"
    return f"{said}; no pipeline was among the measurements that step times are fitted to."


def _window_note(d: Deployment, window: int) -> str:
    layers = f"{d.model.sliding_layers} of {d.model.layers} layers of {d.model.name} see {window:,} tokens"
    if d.context_tokens is None:
        return f"{layers}; a trace's lengths aren't known beforehand, so they count as if they saw everything."
    if not d.windowed:
        return f"{layers}, and requests typically stay below: they count as if they saw everything."
    return f"{layers}: a token's KV is reckoned for a request of {d.context_tokens:,.0f} tokens, the mean here."
