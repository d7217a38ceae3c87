"""A model's parameters and their bytes, part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

from engine.catalog.dtypes import KV_BYTES, MXFP4_BYTES, SIXTEEN_BIT_BYTES, WEIGHT_BYTES, is_sixteen_bit
from engine.catalog.models import Model

# Quantised checkpoints keep the rest at 16 bits: embeddings, head, router and norms are small, and sensitive.
_QUANTISED = frozenset({"attention", "dense_mlp", "experts", "shared_experts"})
_QUANTISED_MXFP4 = frozenset({"experts"})


@dataclass(frozen=True, slots=True)
class Parts:
    """Parameters (or bytes, or operations) by part, each summed over all layers.

    `experts` are the routed ones, all of them. With tied embeddings `lm_head` is 0: the embedding serves as the head.
    """

    embedding: float
    lm_head: float
    attention: float
    dense_mlp: float
    experts: float
    shared_experts: float
    router: float
    norms: float

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return float(sum(getattr(self, part.name) for part in fields(self)))

    def map(self, change: Callable[[str, float], float]) -> Parts:
        """Each part replaced by change(name, value)."""
        return Parts(**{part.name: change(part.name, getattr(self, part.name)) for part in fields(self)})


@cache
def parameters(model: Model) -> Parts:
    """Parameter counts from the shapes: weight matrices and norms (biases, below 0.1 %, are left out)."""
    hidden, layers = model.hidden, model.layers
    embedding = model.vocab * hidden
    experts = shared = router = 0
    dense_layers = layers
    if model.moe is not None:
        moe = model.moe
        dense_layers = moe.dense_layers
        expert = 3 * hidden * moe.intermediate
        experts = model.moe_layers * moe.experts * expert
        shared = model.moe_layers * moe.shared_experts * expert
        router = model.moe_layers * moe.experts * hidden
    return Parts(
        embedding=embedding,
        lm_head=0 if model.tied_embeddings else embedding,
        attention=layers * _attention(model),
        dense_mlp=dense_layers * model.mlp_matrices * hidden * model.intermediate,
        experts=experts,
        shared_experts=shared,
        router=router,
        norms=(2 * layers + 1) * hidden,
    )


def _attention(model: Model) -> int:
    """Parameters of one layer's attention: projections of queries, keys, values and output."""
    hidden, heads, head_dim = model.hidden, model.heads, model.head_dim
    if model.mla is None:
        return 2 * hidden * heads * head_dim + 2 * hidden * model.kv_heads * head_dim
    mla = model.mla
    narrow = mla.q_lora_rank
    queries = hidden * heads * head_dim if narrow is None else (hidden + heads * head_dim) * narrow
    keys_down = hidden * (mla.kv_lora_rank + mla.rope_dim)
    keys_up = mla.kv_lora_rank * heads * (head_dim - mla.rope_dim + mla.v_head_dim)
    return queries + keys_down + keys_up + heads * mla.v_head_dim * hidden


def active_share(model: Model) -> float:
    """Share of the routed experts that one token uses (1 without experts)."""
    return model.moe.top_k / model.moe.experts if model.moe else 1.0


@cache
def active_parameters(model: Model) -> Parts:
    """As `parameters`, but of the routed experts only those that one token uses."""
    share = active_share(model)
    return parameters(model).map(lambda part, count: count * share if part == "experts" else count)


def part_dtype(model: Model, part: str, dtype: str) -> str:
    """The format of one part of a model served with weights of `dtype` ("bf16" for what isn't quantised).

    A model that its publisher quantised to MXFP4 has only its experts at 4 bits.
    """
    quantised = _QUANTISED_MXFP4 if _is_native_mxfp4(model, dtype) else _QUANTISED
    return dtype if part in quantised or is_sixteen_bit(dtype) else "bf16"


def _is_native_mxfp4(model: Model, dtype: str) -> bool:
    return dtype == "fp4" and model.native_dtype.startswith("mxfp4")


@cache
def weight_bytes(model: Model, dtype: str) -> Parts:
    """Bytes of each part of the weights served as `dtype`, scales included."""
    quantised = MXFP4_BYTES if _is_native_mxfp4(model, dtype) else WEIGHT_BYTES[dtype]

    def size(part: str, count: float) -> float:
        low = part_dtype(model, part, dtype) == dtype and not is_sixteen_bit(dtype)
        return count * (quantised if low else SIXTEEN_BIT_BYTES)

    return parameters(model).map(size)


def kv_bytes_per_token(model: Model, dtype: str, context_tokens: float | None = None) -> float:
    """Bytes that a token of context takes, over all layers, each element once (no copies between devices).

    A sliding layer keeps at most its window of a request. Given the length of a request, the mean over its tokens;
    without it (or below the window), every layer counts in full.
    """
    per_layer = model.kv_elements_per_layer() * KV_BYTES[dtype]
    share = 1.0
    if model.sliding_window is not None and context_tokens is not None:
        share = min(1.0, model.sliding_window / max(context_tokens, 1.0))
    return per_layer * (model.full_layers + model.sliding_layers * share)
