"""Models: the shapes of decoder-only transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Self

from engine.catalog.columns import Column, check, from_text, read_table, unknown_name
from engine.catalog.errors import CatalogError, Fault

_COLUMNS = {
    "model": Column("text"),
    "layers": Column("whole", needed=True, low=1),
    "hidden": Column("whole", needed=True, low=1),
    "intermediate": Column("whole", needed=True, low=1),
    "heads": Column("whole", needed=True, low=1),
    "kv_heads": Column("whole", low=1),
    "head_dim": Column("whole", low=1),
    "vocab": Column("whole", needed=True, low=1),
    "sliding_window": Column("whole", low=1),
    "sliding_layers": Column("whole", low=0),
    "moe_experts": Column("whole", low=1),
    "moe_top_k": Column("whole", low=1),
    "moe_intermediate": Column("whole", low=1),
    "moe_shared_experts": Column("whole", low=0),
    "moe_first_dense_layers": Column("whole", low=0),
    "mla_kv_lora_rank": Column("whole", low=1),
    "mla_rope_dim": Column("whole", low=0),
    "mla_q_lora_rank": Column("whole", low=1),
    "mla_v_head_dim": Column("whole", low=1),
    "mlp_matrices": Column("whole", low=2),
    "tied_embeddings": Column("flag"),
    "max_context": Column("whole", low=1),
    "native_dtype": Column("text"),
    "params_total_b": Column("number", low=0),
    "params_active_b": Column("number", low=0),
    "source": Column("text"),
    "params_source": Column("text"),
    "note": Column("text"),
}
# A user may paste a whole row of a model table; these follow from the shapes.
_IGNORED = (
    "attention",
    "full_attention_layers",
    "params_total_from_shape_b",
    "params_active_from_shape_b",
    "kv_bytes_per_token_fp16",
    "kv_bytes_per_token_fp16_full_layers_only",
)


@dataclass(frozen=True, slots=True)
class Moe:
    """Mixture of experts. `intermediate` is one expert's width; `dense_layers` have an ordinary MLP instead."""

    experts: int
    top_k: int
    intermediate: int
    shared_experts: int
    dense_layers: int


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention: KV is one vector of kv_lora_rank + rope_dim elements a token and layer.

    Without `q_lora_rank` queries are projected directly.
    """

    kv_lora_rank: int
    rope_dim: int
    q_lora_rank: int | None
    v_head_dim: int


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder-only transformer's shape. Dimensions in elements; `sliding_layers` of the `layers` see only a window.

    `mlp_matrices` is 3 with a gated MLP, 2 without. `max_context` in tokens; None: not known.
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    sliding_window: int | None
    sliding_layers: int
    moe: Moe | None
    mla: Mla | None
    mlp_matrices: int
    tied_embeddings: bool
    max_context: int | None
    native_dtype: str
    source: str
    note: str

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts."""
        return self.layers - self.moe.dense_layers if self.moe else 0

    @property
    def full_layers(self) -> int:
        """Layers whose attention sees the whole context."""
        return self.layers - self.sliding_layers

    def kv_elements_per_layer(self) -> int:
        """Elements that one token leaves in one layer's KV cache."""
        if self.mla is not None:
            return self.mla.kv_lora_rank + self.mla.rope_dim
        return 2 * self.kv_heads * self.head_dim

    @classmethod
    def _of(cls, values: Mapping[str, Any], name: str) -> Self:
        heads, hidden = values["heads"], values["hidden"]
        head_dim = values.get("head_dim", hidden // heads)
        return cls(
            name=name,
            layers=values["layers"],
            hidden=hidden,
            intermediate=values["intermediate"],
            heads=heads,
            kv_heads=values.get("kv_heads", heads),
            head_dim=head_dim,
            vocab=values["vocab"],
            sliding_window=values.get("sliding_window"),
            sliding_layers=values.get("sliding_layers", 0),
            moe=_moe(values),
            mla=_mla(values, head_dim),
            mlp_matrices=values.get("mlp_matrices", 3),
            tied_embeddings=values.get("tied_embeddings", False),
            max_context=values.get("max_context"),
            native_dtype=values.get("native_dtype", ""),
            source=values.get("source", ""),
            note=values.get("note", ""),
        )


def _moe(values: Mapping[str, Any]) -> Moe | None:
    if "moe_experts" not in values:
        return None
    return Moe(
        experts=values["moe_experts"],
        top_k=values["moe_top_k"],
        intermediate=values["moe_intermediate"],
        shared_experts=values.get("moe_shared_experts", 0),
        dense_layers=values.get("moe_first_dense_layers", 0),
    )


def _mla(values: Mapping[str, Any], head_dim: int) -> Mla | None:
    if "mla_kv_lora_rank" not in values:
        return None
    rope = values["mla_rope_dim"]
    # DeepSeek's values have the width of the queries' part without position.
    value_dim = values.get("mla_v_head_dim", head_dim - rope)
    return Mla(values["mla_kv_lora_rank"], rope, values.get("mla_q_lora_rank"), value_dim)


def _contradictions(values: Mapping[str, Any]) -> list[Fault]:
    """What is wrong with columns that are fine one by one."""
    faults: list[Fault] = []

    def need(column: str, because: str, reason: str = "is missing") -> None:
        faults.append(Fault(column, "" if column not in values else str(values[column]), reason, because))

    if "moe_experts" in values:
        for column in ("moe_top_k", "moe_intermediate"):
            if column not in values:
                need(column, "give it with moe_experts")
        if values.get("moe_top_k", 0) > values["moe_experts"]:
            need("moe_top_k", f"give at most {values['moe_experts']}", "is above moe_experts")
        if values.get("moe_first_dense_layers", 0) > values["layers"]:
            need("moe_first_dense_layers", f"give at most {values['layers']}", "is above layers")
    if "mla_kv_lora_rank" in values and "mla_rope_dim" not in values:
        need("mla_rope_dim", "give it with mla_kv_lora_rank")
    if "mla_rope_dim" in values and values["mla_rope_dim"] >= values.get("head_dim", values["mla_rope_dim"] + 1):
        need("mla_rope_dim", "it is a part of head_dim: give less", "is not below head_dim")
    if values.get("sliding_layers", 0) > values["layers"]:
        need("sliding_layers", f"give at most {values['layers']}", "is above layers")
    if values.get("sliding_layers", 0) and "sliding_window" not in values:
        need("sliding_window", "give it with sliding_layers")
    if values["heads"] % values.get("kv_heads", values["heads"]):
        need("kv_heads", f"give a divisor of the {values['heads']} heads", "does not divide heads")
    if "head_dim" not in values and values["hidden"] < values["heads"]:
        need("head_dim", "hidden is below heads, so it can't be derived: give it")
    return faults


@cache
def models() -> Mapping[str, Model]:
    """Every model of the catalogue by name, in the table's order."""
    rows = [from_text(row, _COLUMNS) for row in read_table("models.csv")]
    return MappingProxyType({row["model"]: Model._of(row, row["model"]) for row in rows})


def model(name: str) -> Model:
    """The model of this name; CatalogError with the nearest names when there is none."""
    known = models()
    if name not in known:
        raise unknown_name("model", name, known)
    return known[name]


def model_from_columns(row: Mapping[str, Any], name: str = "custom") -> Model:
    """A model from a row's columns (names of models.csv); CatalogError names the bad ones.

    Needed: layers, hidden, intermediate, heads, vocab. Left out: kv_heads as heads, head_dim hidden / heads, a gated
    MLP, embeddings not tied, no experts, no sliding window. A row's own `model` wins over `name`.
    """
    values = check(row, _COLUMNS, _IGNORED)
    faults = _contradictions(values)
    if faults:
        raise CatalogError(faults)
    return Model._of(values, values.get("model", name))
