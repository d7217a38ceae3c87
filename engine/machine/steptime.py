"""How long a step takes, term by term, from figures of model and accelerator and measured constants.

A step of T tokens, R requests, C tokens of context and A attention pairs lasts the sum over terms of
base[T] + seq_s * R + kv_token_s * C + pair_s * A. Every rate is a peak times a share of it that is at most 1, so that
no term is below its own roofline.

Experts that are spread over devices whole cost as much as sliced ones. The busiest device has more to do than the mean,
by how evenly tokens choose; but 92 published points of DeepSeek-R1 with ep 4 and 8 are 5 to 6 % faster than predicted
without a term for that (median), and 11 to 15 % faster with one for even chances: whole matrices make up for it.

In a pipeline a step is a pass through all stages. Each layer is worked on once, by the `tp` devices of its stage, so a
pass takes what one group of `tp` devices with all layers would take, and what passing on and every stage's host add.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.catalog import (
    KV_BYTES,
    Parts,
    active_parameters,
    active_share,
    is_sixteen_bit,
    part_dtype,
    weight_bytes,
)
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.exchange import (
    ACTIVATION_BYTES,
    all_reduce_share,
    ring_attention_bytes,
    stage_boundary_bytes,
    ulysses_bytes,
)
from engine.machine.parallel import Link, kv_shards, link
from engine.machine.stages import Hops, hops
from engine.scenario import Scale

Array = NDArray[np.float64]
Name = Literal["compute", "attention", "weights", "kv", "communication", "overhead"]


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a step's time: base[T] in seconds for T = 0.., and seconds a request, context token and pair."""

    name: Name
    base: Array
    seq_s: float = 0.0
    kv_token_s: float = 0.0
    pair_s: float = 0.0

    def seconds(self, tokens: int, requests: int, context_tokens: float, pairs: float) -> float:
        """This part of a step of T tokens, R requests, C tokens of context, A attention pairs."""
        rest = self.seq_s * requests + self.kv_token_s * context_tokens + self.pair_s * pairs
        return float(self.base[tokens]) + rest


def step_parts(
    terms: Iterable[Term], tokens: int, requests: int, context_tokens: float, pairs: float
) -> dict[str, float]:
    """Seconds of each named part of a step; their sum is the step's length."""
    return {term.name: term.seconds(tokens, requests, context_tokens, pairs) for term in terms}


def analytic_terms(
    d: Deployment, c: Constants, scale: Scale | None = None, tokens: Array | None = None
) -> tuple[Term, ...]:
    """All terms of a deployment, with base arrays for 0..d.step_tokens tokens, or for the numbers of `tokens`.

    `scale` corrects them by one measured point: `prefill` multiplies what grows with the tokens worked on (matrix
    products, attention in prompts, volume sent between devices), `tpot` the rest (reads, the head, latencies, host).
    """
    factor = scale or Scale()
    if tokens is None:
        tokens = np.arange(d.step_tokens + 1, dtype=np.float64)
    compute, weights = _products(d, c, factor, tokens)
    if d.cp > 1:
        compute = replace(compute, seq_s=compute.seq_s + _undivided_s(d, c, factor))
    return (
        compute,
        _attention(d, c, factor, tokens),
        weights,
        _kv(d, c, factor, tokens),
        _communication(d, c, factor, tokens),
        _overhead(d, c, factor, tokens),
    )


def _products(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> tuple[Term, Term]:
    return _overlapped(_compute(d, c, scale, tokens), _weights(d, c, scale, tokens), c.overlap)


def _undivided_s(d: Deployment, c: Constants, scale: Scale) -> float:
    """Seconds a request, in products, that a split context doesn't save.

    The base shares every token out over the devices, as it is with a chunk's. A decoding request has one token, which
    is no shorter on several. So each request brings back what sharing saved, as it is in a step in which all seats
    decode: such a step lasts as long as on one device, one with fewer hardly longer, and none is shorter.
    """
    full = np.array([float(min(d.max_num_seqs, d.step_tokens))])
    one, split = (sum(term.base[0] for term in _products(e, c, scale, full)) for e in (replace(d, cp=1), d))
    return float((one - split) / full[0])


def _overlapped(compute: Term, weights: Term, overlap: float) -> tuple[Term, Term]:
    """Matrix products, in which arithmetic and reading the weights partly overlap: (c^p + w^p)^(1/p).

    p = 1 is one after the other, a large p the longer of both alone. Each term keeps its share of the time.
    """
    if overlap == 1.0:
        return compute, weights
    apart = compute.base + weights.base
    longer = np.maximum(np.maximum(compute.base, weights.base), 1e-300)
    together = longer * ((compute.base / longer) ** overlap + (weights.base / longer) ** overlap) ** (1 / overlap)
    saved = np.where(apart > 0, together / np.maximum(apart, 1e-300), 1.0)
    return replace(compute, base=compute.base * saved), replace(weights, base=weights.base * saved)


def peak(d: Deployment, dtype: str) -> float:
    """Peak operations per second of one accelerator for weights of a format.

    Where it has no units for the format, or slower ones than at 16 bits, weights are only stored that way and are
    computed at 16 bits. int4 always is: its checkpoints quantise weights only.
    """
    sixteen = d.accelerator.peak_flops("bf16")
    if sixteen is None:
        raise ValueError(f"{d.accelerator.name} has no 16-bit arithmetic rate")
    return max(sixteen, d.accelerator.peak_flops(dtype) or 0.0)


def computes_natively(d: Deployment, dtype: str) -> bool:
    """Whether weights of this format are multiplied by units of their own format."""
    return is_sixteen_bit(dtype) or peak(d, dtype) > peak(d, "bf16")


def is_block_fp8(d: Deployment) -> bool:
    """Whether the weights are served in the block-wise fp8 that their publisher chose."""
    return d.weight_dtype == "fp8" and d.model.native_dtype.startswith("fp8 (block")


def _rate(d: Deployment, c: Constants, dtype: str) -> float:
    """Operations per second that the group's matrix products reach with weights of a format."""
    if is_sixteen_bit(dtype):
        return d.tp * peak(d, "bf16") * c.eta_c16
    if not computes_natively(d, dtype):
        return d.tp * peak(d, "bf16") * c.eta_c16 * c.weight_only_compute
    block = c.block_fp8_compute if is_block_fp8(d) else 1.0
    return d.tp * peak(d, dtype) * c.eta_c * block


def token_flops(d: Deployment) -> Parts:
    """Operations of one token in the layers' matrix products, by part: two a weight it passes.

    The embedding is a lookup, norms are negligible, and the head is computed only for a request's newest token.
    """
    unused = {"embedding", "lm_head", "norms"}
    return active_parameters(d.model).map(lambda part, count: 0.0 if part in unused else 2 * count)


def experts_touched(d: Deployment, c: Constants, tokens: Array) -> Array:
    """Share of all routed experts that a step of each number of tokens touches.

    1 - (1 - k/E)^T if routing were even, fewer by `moe_touched` because it isn't, but never fewer than the k that one
    token needs.
    """
    share = active_share(d.model)
    even = -np.expm1(tokens * np.log1p(-share)) if share < 1 else np.ones_like(tokens)
    return np.maximum(c.moe_touched * even, np.where(tokens > 0, share, 0.0))


def head_flops(d: Deployment) -> float:
    """Operations of the head for one request that emits a token."""
    return 2.0 * d.model.vocab * d.model.hidden


def _compute(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> Term:
    flops = token_flops(d)

    def seconds(part: str, amount: float) -> float:
        slower = c.moe_compute if part == "experts" else 1.0
        return amount * slower / _rate(d, c, part_dtype(d.model, part, d.weight_dtype))

    token_s = scale.prefill * flops.map(seconds).total
    head_s = scale.tpot * head_flops(d) / _rate(d, c, "bf16")
    return Term("compute", token_s / d.cp * tokens, seq_s=head_s)


def pair_flops(d: Deployment) -> float:
    """Operations of one layer for one pair of tokens (one attends to the other): scores and weighted sum."""
    m = d.model
    value_dim = m.head_dim if m.mla is None else m.mla.v_head_dim
    return 2.0 * m.heads * (m.head_dim + value_dim)


def _attention(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> Term:
    """Attention inside prompts. A sliding layer outgrown by the context attends to a window for each token."""
    m = d.model
    pair_s = pair_flops(d) / (d.tp * d.cp * peak(d, "bf16") * c.eta_a)
    if d.windowed and m.sliding_window is not None:
        token_s = pair_s * m.sliding_layers * m.sliding_window
        return Term("attention", scale.prefill * token_s * tokens, pair_s=scale.prefill * pair_s * m.full_layers)
    return Term("attention", np.zeros_like(tokens), pair_s=scale.prefill * pair_s * m.layers)


def weights_read(d: Deployment, c: Constants, tokens: Array) -> tuple[Array, float]:
    """Bytes of weights, over the whole group, that a step of each number of tokens reads once for everybody.

    The first are in the weights' format, the second what a quantised checkpoint keeps at 16 bits. All of a dense
    model, but for an input embedding of its own, of which only the tokens' rows are looked up; of routed experts those
    touched. With data-parallel attention every device reads all of attention.
    """
    sizes = weight_bytes(d.model, d.weight_dtype)
    if d.attention_dp:
        sizes = sizes.map(lambda part, size: size * d.tp if part == "attention" else size)
    kept = sizes.map(lambda part, size: 0.0 if part_dtype(d.model, part, d.weight_dtype) == d.weight_dtype else size)
    unread = 0.0 if d.model.tied_embeddings else sizes.embedding
    wide = kept.total - (unread if kept.embedding else 0.0)
    narrow = sizes.total - unread - wide
    if d.model.moe is None:
        return np.full_like(tokens, narrow), wide
    return narrow - sizes.experts * (1.0 - experts_touched(d, c, tokens)), wide


def _weights(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> Term:
    narrow, wide = weights_read(d, c, tokens)
    block = c.block_fp8_reads if is_block_fp8(d) else 1.0
    at_peak = narrow / (c.eta_m * block) + wide / c.eta_m16
    return Term("weights", scale.tpot * at_peak / (d.tp * d.accelerator.bandwidth_bytes_per_s))


def kv_layer_bytes(d: Deployment) -> float:
    """Bytes that a token of context adds to one layer's KV, each element once."""
    return d.model.kv_elements_per_layer() * KV_BYTES[d.kv_dtype]


def decode_flops(d: Deployment) -> float:
    """Operations of one layer for one token of context of a decoding request.

    With latent attention the up-projections are absorbed into queries and output, which then work on the latent
    vector: 2 * heads * (2 * rank + rope) operations.
    """
    m = d.model
    return pair_flops(d) if m.mla is None else 2.0 * m.heads * (2 * m.mla.kv_lora_rank + m.mla.rope_dim)


def _kv(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> Term:
    """Reading KV. With latent attention the kernel's arithmetic comes on top; without, it hides behind the reading.

    Devices of a split context hold a part of it each, but a decoding request gains nothing from that: what reading in
    parallel saves goes into passing its query round and gathering the partial results (Yang et al. 2024 measure
    decoding to be no faster under context parallelism). Swapped for heads, it is read by heads.
    """
    m = d.model
    readers = kv_shards(m, d.tp * d.cp if d.sp == "ulysses" else d.tp, d.attention_dp)
    read_s = kv_layer_bytes(d) / (readers * d.accelerator.bandwidth_bytes_per_s * c.eta_kv)
    compute_s = decode_flops(d) / (d.tp * peak(d, "bf16"))
    layer_s = scale.tpot * (max(read_s, compute_s) if m.mla is None else read_s + compute_s / c.eta_mla)
    none = np.zeros_like(tokens)
    if d.windowed and m.sliding_window is not None:
        window_s = layer_s * m.sliding_layers * m.sliding_window
        return Term("kv", none, seq_s=window_s, kv_token_s=layer_s * m.full_layers)
    return Term("kv", none, kv_token_s=layer_s * m.layers)


def _communication(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> Term:
    """Exchanges of the tokens' activations by rings. An exchange's latency grows with the devices that it joins."""
    base, seq_s = np.zeros_like(tokens), 0.0
    joined = link(d.accelerator, d.tp) if d.tp > 1 else None
    if joined is not None:
        volume_s = reduced_bytes(d) / (joined.bytes_per_s * c.eta_link)
        volume_s *= scale.prefill
        # As with products: a chunk's tokens are shared out, a decoding request's one isn't.
        base = base + scale.tpot * exchanges(d) * _latency_s(joined, c, d.tp) + volume_s / d.cp * tokens
        seq_s = volume_s * (1 - 1 / d.cp)
    if d.cp > 1:
        base = base + _context_exchange(d, c, scale, tokens)
    if d.pp > 1:
        base = base + _passing_on(d, c, scale, tokens, hops(d.accelerator, d.tp, d.pp))
    if d.sp == "operators":
        back_and_forth = [replace(hop, count=2 * d.model.layers) for hop in hops(d.accelerator, d.tp, 2)]
        base = base + _passing_on(d, c, scale, tokens, back_and_forth)
    return Term("communication", base, seq_s=seq_s)


def _latency_s(joined: Link, c: Constants, devices: int) -> float:
    """Seconds of an exchange however small it is."""
    return c.alpha_s if joined.pcie else c.alpha_s * (1 + np.log2(devices / 2))


def _context_exchange(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> Array:
    """Seconds of what the devices of a split context send one another.

    In a ring keys and values go round while attention works on what has come: only what attention inside a chunk of
    so many tokens doesn't hide counts, and one exchange a layer for the partial results. Swapping shards for heads is
    two exchanges a layer, in plain sight.
    """
    joined = link(d.accelerator, d.tp * d.cp)
    if joined is None:
        raise ValueError(f"no link joins {d.tp * d.cp} {d.accelerator.name}")
    rate = joined.bytes_per_s * c.eta_link
    latency_s = scale.tpot * d.model.layers * _latency_s(joined, c, d.cp)
    if d.sp == "ulysses":
        swapped_s = scale.prefill * d.model.layers * ulysses_bytes(d.model, 1.0, d.cp) / d.tp / rate
        return 2 * latency_s + swapped_s * tokens
    ring_s = d.model.layers * ring_attention_bytes(d.model, 1.0, d.cp) / kv_shards(d.model, d.tp) / rate
    hidden = d.model.layers * pair_flops(d) / (d.tp * d.cp * peak(d, "bf16") * c.eta_a) * tokens * (tokens + 1) / 2
    return latency_s + scale.prefill * np.maximum(ring_s * tokens - hidden, 0.0)


def _passing_on(d: Deployment, c: Constants, scale: Scale, tokens: Array, between: Sequence[Hops]) -> Array:
    """Seconds of a pass's hops from stage to stage, or from attention to the feed-forward part of a layer and on.

    A hop takes the latency of the smallest exchange between two devices, and its share of the link's rate.
    """
    token_s = sum(hop.count * stage_boundary_bytes(d.model, 1.0) / (hop.bytes_per_s * c.eta_link) for hop in between)
    return scale.tpot * c.alpha_s * sum(hop.count for hop in between) + scale.prefill * token_s * tokens


def exchanges(d: Deployment) -> int:
    """All-reduces of a forward pass: after attention and after the MLP of each layer.

    Where attention is data-parallel it needs none; tokens go to the experts and back, as much as one all-reduce.
    """
    return (1 if d.attention_dp else 2) * d.model.layers


def reduced_bytes(d: Deployment) -> float:
    """Bytes that one device sends for one token in a forward pass: 2 (n-1)/n of its activations an all-reduce."""
    return exchanges(d) * all_reduce_share(d.tp) * d.model.hidden * ACTIVATION_BYTES


def _overhead(d: Deployment, c: Constants, scale: Scale, tokens: Array) -> Term:
    """Host work. Every stage, and either group that operators are divided between, has a host process of its own,
    which prepares each pass; a layer is launched once."""
    hosts = 2 if d.sp == "operators" else d.pp
    step_s = c.ov_s * hosts + c.layer_s * d.model.layers + c.moe_s * d.model.moe_layers
    return Term("overhead", np.full_like(tokens, scale.tpot * step_s), seq_s=scale.tpot * c.seq_s)
