"""What one replica's accelerators hold: weights, activations, runtime, and the KV that is left room for.

All figures are bytes on one accelerator (the fullest), unless they say otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.catalog import kv_bytes_per_token, parameters, weight_bytes
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.exchange import ACTIVATION_BYTES
from engine.machine.parallel import kv_shards
from engine.machine.stages import Stage, stages

GIB = 2.0**30
KV_BLOCK_TOKENS = 16  # vLLM's smallest piece of KV: with less room a replica can't start


@dataclass(frozen=True, slots=True)
class Memory:
    """One accelerator's memory in bytes. `usable` = utilization * device; `kv` is what it leaves after the rest.

    `kv` may be negative: then the model doesn't fit. `kv_per_token` are the bytes of a token on this accelerator.
    """

    device: float
    usable: float
    weights: float
    activations: float
    runtime: float
    kv_per_token: float

    @property
    def kv(self) -> float:
        """Bytes left for KV."""
        return self.usable - self.weights - self.activations - self.runtime

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens whose KV a replica holds (each accelerator holds its shard of every token); 0 when nothing is left."""
        return max(0, int(self.kv / self.kv_per_token))

    @property
    def fits(self) -> bool:
        """Whether there is room for at least one block of KV."""
        return self.kv_capacity_tokens >= KV_BLOCK_TOKENS


def memory(d: Deployment, c: Constants) -> Memory:
    """The memory of one accelerator of a deployment; of a pipeline, of the stage with room for the fewest tokens.

    With operators divided between devices, of one that does attention and holds KV, unless what the others hold of the
    feed-forward parts is too large for them.
    """
    if d.sp == "operators":
        attention, feed_forward = _divided(d, c)
        return attention if feed_forward.kv >= 0 else feed_forward
    each = (_stage_memory(d, c, stage) for stage in stages(d.model, d.pp))
    return min(each, key=lambda one: one.kv / one.kv_per_token)


def _stage_memory(d: Deployment, c: Constants, stage: Stage) -> Memory:
    """Every stage holds the KV that its own layers have of every token: with fewer layers, of more tokens."""
    device = d.accelerator.memory_bytes
    shared = kv_bytes_per_token(d.model, d.kv_dtype, d.context_tokens) * (stage.layers / d.model.layers)
    return Memory(
        device=device,
        usable=d.gpu_memory_utilization * device,
        weights=_stage_weights(d, stage),
        activations=activation_bytes(d, c, sampling=stage.last),
        runtime=runtime_bytes(d, c),
        kv_per_token=shared / kv_holders(d),
    )


def _divided(d: Deployment, c: Constants) -> tuple[Memory, Memory]:
    """Memory of a device that does attention (with embedding, norms and head), and of one that does the rest."""
    (whole,) = stages(d.model, 1)
    both = _stage_memory(d, c, whole)
    sizes = weight_bytes(d.model, d.weight_dtype)
    rest = sizes.router + (sizes.dense_mlp + sizes.experts + sizes.shared_experts) / d.tp
    without_sampler = activation_bytes(d, c, sampling=False)
    return replace(both, weights=both.weights - rest), replace(both, weights=rest, activations=without_sampler)


def kv_holders(d: Deployment) -> int:
    """Among how many accelerators of a stage a token's KV is divided.

    By KV heads over a tensor-parallel group. A split context divides it further: by tokens in a ring, by heads when
    shards are swapped for heads, and then no further than there are KV heads.
    """
    if d.sp == "ulysses":
        return kv_shards(d.model, d.tp * d.cp, d.attention_dp)
    return kv_shards(d.model, d.tp, d.attention_dp) * d.cp


def weights_per_accelerator(d: Deployment) -> float:
    """Bytes of weights on the fullest accelerator: matrices divided by tp; router, norms and what can't be divided
    copied.

    Pipeline stages have their own layers. Splitting the context or the sequence divides no weights.

    Keys and values are projected for whole heads: with more accelerators than KV heads they are copied. With latent
    attention the down-projections are; with data-parallel attention all of attention is.
    """
    return max(_stage_weights(d, stage) for stage in stages(d.model, d.pp))


def _stage_weights(d: Deployment, stage: Stage) -> float:
    sizes = stage.of(d.model, weight_bytes(d.model, d.weight_dtype))
    copied = sizes.router + sizes.norms + _copied_attention(d) * (stage.layers / d.model.layers)
    return (sizes.total - copied) / d.tp + copied + _more_experts(d, sizes.experts)


def _more_experts(d: Deployment, experts: float) -> float:
    """Bytes by which whole experts on the device with the most of them exceed its share of all `experts` bytes."""
    if d.model.moe is None or d.model.moe.experts % d.ep == 0:
        return 0.0
    return experts / d.tp * (-(-d.model.moe.experts // d.ep) * d.ep / d.model.moe.experts - 1)


def _copied_attention(d: Deployment) -> float:
    """Bytes of attention weights that every accelerator has in full (for KV heads: the excess over its share)."""
    m = d.model
    if d.attention_dp:
        return weight_bytes(m, d.weight_dtype).attention
    per_weight = weight_bytes(m, d.weight_dtype).attention / parameters(m).attention
    if m.mla is not None:
        down = m.hidden * (m.mla.kv_lora_rank + m.mla.rope_dim + (m.mla.q_lora_rank or 0))
        return per_weight * m.layers * down
    if d.tp <= m.kv_heads:
        return 0.0
    projections = per_weight * m.layers * 2 * m.hidden * m.kv_heads * m.head_dim
    # x copied in full and the rest divided by tp must come to one head's share of the projections.
    return projections * (1 / m.kv_heads - 1 / d.tp) / (1 - 1 / d.tp)


def activation_bytes(d: Deployment, c: Constants, sampling: bool = True) -> float:
    """Peak bytes of activations in the largest step.

    The residual stream and one layer's input for every token; on top either the widest layer's intermediate values,
    or, when those are gone, the sampler's workspace for as many requests as a step can serve, whichever is larger; of a
    pipeline's stages only the last one samples. Checked against a real engine's start-up log in the tests. Each device
    of a split context has its share of the tokens; with activations sharded inside tensor parallel (`megatron`) each
    has its share of the residual stream.
    """
    m, tokens = d.model, d.step_tokens / d.cp
    stream = 2 * tokens * m.hidden * ACTIVATION_BYTES / (d.tp if d.sp == "megatron" else 1)
    layer = tokens * max(_mlp_width(d), _attention_width(d)) * ACTIVATION_BYTES
    sampler = min(d.max_num_seqs, d.step_tokens) * m.vocab * c.logits_bytes if sampling else 0.0
    return stream + max(layer, sampler)


def _mlp_width(d: Deployment) -> float:
    """Elements a token of the widest MLP on one accelerator: both halves of a gate and their product."""
    m = d.model
    dense = m.mlp_matrices * m.intermediate / d.tp
    if m.moe is None:
        return dense
    routed = m.moe.top_k * (3 * m.moe.intermediate / d.tp + m.hidden)
    shared = 3 * m.moe.shared_experts * m.moe.intermediate / d.tp
    return max(dense if m.moe.dense_layers else 0.0, routed + shared)


def _attention_width(d: Deployment) -> float:
    """Elements a token of attention on one accelerator: queries, keys, values and output."""
    m = d.model
    heads = m.heads / d.tp
    if m.mla is not None:
        return heads * (2 * m.head_dim + 2 * m.mla.v_head_dim) + m.kv_elements_per_layer()
    return 2 * heads * m.head_dim + m.kv_elements_per_layer() / kv_shards(m, d.tp, d.attention_dp)


def runtime_bytes(d: Deployment, c: Constants) -> float:
    """Bytes that no tensor shows: kept by the driver, context and graphs, buffers of the communication library."""
    fixed = c.runtime_gib + (c.comm_gib if d.accelerators > 1 else 0.0)
    return c.driver_share * d.accelerator.memory_bytes + fixed * GIB
